/* SPDX-License-Identifier: ISC */
/*
 * What this program knows, for the version of it that takes over by execve(2).
 * Each module lists its fields once, in one function; the same function writes
 * them, reads them, and says which descriptors stay open.
 *
 * The next version may know more. It reads older layouts by the version:
 *
 *	if (s->version >= 2)
 *		SAVE(s, what_is_new);
 */
#ifndef SAVED_H
#define SAVED_H

#include <stdbool.h>

#include "buf.h"

/* Raised with each change of any list of fields. */
#define SAVED_VERSION 2
#define SAVED_OLDEST  2 /* that this program reads */

enum saved_mode {
	SAVED_WRITE,
	SAVED_READ,
	SAVED_KEEP,  /* descriptors stay open over the execve, */
	SAVED_GUARD, /* and not over any other */
};

struct saved {
	enum saved_mode mode;
	uint32_t version;
	struct buf out;
	struct buf_reader in;
};

/* A number or a bool. The size is written, too, and compared. */
#define SAVE(s, field) saved_field(s, &(field), sizeof(field))
void saved_field(struct saved *s, void *field, size_t size);

/* Bytes without a size of their own. */
void saved_bytes(struct saved *s, void *bytes, size_t n);

/* A string in an array. */
void saved_text(struct saved *s, char *text, size_t size);

/* A descriptor, or -1. */
void saved_fd(struct saved *s, int *fd);

bool saved_failed(const struct saved *s);

/* A sealed file in memory with the state of all modules, or -errno. */
int saved_write(void);

/* Reads such a file into all modules. 0; -EPROTO: *version is not one that
 * this program reads; or -errno: it is none at all. */
int saved_read(int fd, uint32_t *version);

/* Only SAVED_KEEP and SAVED_GUARD. */
void saved_descriptors(enum saved_mode mode);

#endif
