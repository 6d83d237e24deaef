/* SPDX-License-Identifier: ISC */
/*
 * The format of tar(1), as far as a copy of many files needs it: what GNU tar
 * writes with --format=gnu, and, to write, the extended header of POSIX (pax)
 * for a time of modification. It knows no file and no server.
 */
#pragma once

#include "buf.h"

#define TAR_BLOCK 512 /* bytes; everything is padded to a multiple of it */

enum tar_type {
	TAR_FILE = '0',
	TAR_SYMLINK = '2',
	TAR_DIRECTORY = '5',
};

struct tar_entry {
	enum tar_type type;
	const char *name;
	const char *target; /* the text of a link; otherwise NULL */
	mode_t mode;	    /* permission bits */
	size_t size;	    /* of the content that follows */
	const struct timespec *modified; /* NULL: none */
};

/* Appends the headers of one entry. Its content, and tar_pad(), follow. */
void tar_put_entry(struct buf *b, const struct tar_entry *e);
/* Fills up the last block of a content of so many bytes. */
void tar_pad(struct buf *b, size_t size);
/* Appends the end of the archive. */
void tar_put_end(struct buf *b);

/* --- Reading ------------------------------------------------------------- */

#define TAR_NAME_MAX 8192 /* bytes; a path has at most 4096 */

struct tar_reader {
	/* An entry begins. Its name ends with a NUL. */
	void (*entry)(void *arg, enum tar_type type, const char *name);
	/* A part of the entry's content. */
	void (*content)(void *arg, const void *data, size_t len);
	/* All of its content was there. */
	void (*end)(void *arg);
	void *arg;

	/* private */
	uint8_t block[TAR_BLOCK];
	size_t have; /* bytes of a header */
	char name[TAR_NAME_MAX + 1];
	size_t name_len;	/* of what came before the header; 0: nothing */
	bool long_name;		/* the content is such a name */
	bool inside;		/* an entry has begun */
	uint64_t left, padding; /* bytes of content, and then of padding */
};

/* Takes the next bytes of the stream. Returns 0, or -EBADMSG if this is no
 * archive, or one that an entry of this size or name does not belong to. */
int tar_read(struct tar_reader *r, const void *data, size_t len);
