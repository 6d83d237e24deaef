/* SPDX-License-Identifier: ISC */
/*
 * Keeps the content of a long request in a file without a name instead of in
 * memory. The runner decodes the content into it as it comes, and the file
 * helper copies it to its place.
 */
#ifndef SPOOL_H
#define SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* For one session at a time; further requests are held in memory. */
#define SPOOLS_MAX 4

struct spool {
	int fd;		 /* owned; -1: it could not be received */
	uint64_t bytes;	 /* completely written */
	unsigned *count; /* counts the spools; or NULL */
};

/*
 * Makes an empty spool, which is counted in *count until it is freed. Returns
 * NULL with errno.
 */
struct spool *spool_new(unsigned *count);

/* Makes a spool of a file that another program wrote. Takes fd over. */
struct spool *spool_adopt(int fd);

void spool_free(struct spool *s); /* NULL is fine */

/*
 * Appends n bytes. After an error nothing of them counts. Returns 0 or -errno.
 */
int spool_write(struct spool *s, const void *p, size_t n);

/* Copies the content to fd, from fd's position on. Returns 0 or -errno. */
int spool_copy(const struct spool *s, int fd);

/* Like write(2) to sock; the spool's descriptor goes with the first byte. */
ssize_t spool_send(const struct spool *s, int sock, const void *p, size_t n);

#endif
