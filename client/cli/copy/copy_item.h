/* SPDX-License-Identifier: ISC */
/*
 * One file that is copied, to the server or from it: its holes, and the name,
 * mode and time that it gets when it is complete.
 */
#ifndef COPY_ITEM_H
#define COPY_ITEM_H

#include "copy.h"

/* One file. It embeds both kinds of transfer and uses one. */
struct copy_item {
	TAILQ_ENTRY(copy_item) link; /* copy.items */
	struct copy *copy;
	char *from, *to;    /* owned */
	int fd;		    /* the local file; owned */
	struct facts facts; /* of the source */
	bool replaces;	    /* an existing file keeps its mode */
	mode_t kept_mode;   /* of that local file */
	char *temporary;    /* name until it is complete; owned */
	char *final;	  /* then an upload's name: `to` without links; owned */
	uint64_t counted; /* its part of copy.bytes */
	struct upload upload;
	struct download download;
};

struct copy_item *copy_item_new(
    struct copy *c, const char *from, const char *to);
void copy_item_free(struct copy_item *i);

/* Shows that so many bytes of it are copied. */
void copy_item_count(struct copy_item *i, uint64_t offset);

/* The end of it: a failure, or what a transfer came to. Both free it. */
void copy_item_failed(struct copy_item *i, const char *why);
void copy_item_done(struct copy_item *i, int code, const char *message);

/* Removes an incomplete file on the server. */
void copy_remove(
    struct copy *c, const char *path, execd_answer_fn *fn, void *arg);

#endif
