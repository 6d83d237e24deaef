/* SPDX-License-Identifier: ISC */
/*
 * The format of tar(1), as far as a copy of many files needs it: what GNU tar
 * writes with --format=gnu, and the extended header of POSIX (pax) for a time
 * of modification. It knows no file and no server.
 */
#ifndef TAR_H
#define TAR_H

#include <sys/stat.h>
#include <time.h>

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

#endif
