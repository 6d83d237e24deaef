/* SPDX-License-Identifier: ISC */
/*
 * The content of a long request in a file without a name, instead of in
 * memory: on its way from the runner, which decodes it as it comes, to the
 * file helper, which puts it where it belongs.
 */
#ifndef SPOOL_H
#define SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of one session at a time; beyond it requests are held in memory. */
#define SPOOLS_MAX 4

struct spool {
	int fd;		 /* owned; -1: it did not arrive */
	uint64_t bytes;	 /* written whole */
	unsigned *count; /* NULL, or where it counts */
};

/* An empty one, which counts in *count while it is there. NULL with errno. */
struct spool *spool_new(unsigned *count);

/* One that another program wrote; fd is taken over. */
struct spool *spool_adopt(int fd);

void spool_free(struct spool *s); /* NULL is fine */

/* Appends all of it, or nothing that counts. 0 or -errno. */
int spool_write(struct spool *s, const void *p, size_t n);

/* All of it to fd, which stands where it shall begin. 0 or -errno. */
int spool_copy(const struct spool *s, int fd);

/* write(2) with the spool's descriptor beside the first byte. */
ssize_t spool_send(const struct spool *s, int sock, const void *p, size_t n);

#endif
