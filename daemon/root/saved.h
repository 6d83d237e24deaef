/* SPDX-License-Identifier: ISC */
/*
 * The state of this program, for the version that takes over by execve(2). Each
 * module lists its fields once, in one function. The same function writes them,
 * reads them, and says which descriptors stay open.
 *
 * The next version may have more fields. It reads older states according to
 * their version: if (s->version >= 2) SAVE(s, new_field);
 */
#pragma once

#include "base.h"

/* Raised with each change of a list of fields. */
#define SAVED_VERSION 8
#define SAVED_OLDEST  5 /* the oldest that this program reads */

enum saved_mode {
	SAVED_WRITE,
	SAVED_READ,
	SAVED_KEEP,  /* descriptors stay open over this execve, */
	SAVED_GUARD, /* and over no other */
};

struct saved {
	enum saved_mode mode;
	uint32_t version;
	FILE *file;
	bool failed;
};

/* A number or a bool. The size is also written, and compared. */
#define SAVE(s, field) saved_field(s, &(field), sizeof(field))
void saved_field(struct saved *s, void *field, size_t size);

/* Bytes of a fixed number. */
void saved_bytes(struct saved *s, void *bytes, size_t n);

/* A string in an array. */
void saved_text(struct saved *s, char *text, size_t size);

/* A descriptor, or -1. */
void saved_fd(struct saved *s, int *fd);

/* Returns a sealed file in memory with the state of all modules, or -errno. */
int saved_write(void);

/* Reads such a file into all modules, and closes it. Returns 0, -EPROTO with
 * *version if this program does not read that version, or -errno if the file is
 * no state. */
int saved_read(int fd, uint32_t *version);

/* For SAVED_KEEP and SAVED_GUARD only. */
void saved_descriptors(enum saved_mode mode);
