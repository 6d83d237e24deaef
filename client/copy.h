/*
 * execctl cp: many files, some at a time.
 */
#ifndef COPY_H
#define COPY_H

#include "queue.h"
#include "transfer.h"

#define COPY_ACTIVE 16 /* transfers at a time */

struct copy_item;
TAILQ_HEAD(copy_items, copy_item);

struct copy {
	struct ctl *ctl;
	bool to_server;
	bool recursive;
	unsigned int active;
	struct copy_items items; /* those under way */
	int signal;		 /* that ended it; 0: none */
	unsigned int removing;	 /* answers of copy_give_up() */
	bool told_in_place;
	uint64_t files, bytes; /* done; bytes also of those under way */
	uint64_t size; /* of the one file, for a percentage; 0: unknown */
	unsigned int failed, skipped;
	int code;  /* the worst exit status */
	bool stop; /* nothing more can succeed */
	int64_t shown_ms;
	bool showing; /* progress is on the screen */
};

/* Before anything else; signals end the copy from then on. 0, or an exit
 * status after saying why. */
int copy_begin(struct copy *c);
/* Takes away what is incomplete, here and on the server, as far as the server
 * answers within two seconds. */
void copy_give_up(struct copy *c);

/* Waits until another transfer may begin. */
void copy_wait(struct copy *c, unsigned int active);
/* One file; both paths are absolute or of this machine. */
void copy_upload(struct copy *c, const char *from, const char *to);
void copy_download(struct copy *c, const char *from, const char *to);
/* Says what went wrong with one file; the others go on. */
void copy_failed(struct copy *c, const char *what, const char *why);
void copy_skipped(struct copy *c, const char *what, const char *why);

/* copy_tree.c: a directory and everything in it */
void copy_upload_tree(struct copy *c, const char *from, const char *to);
void copy_download_tree(struct copy *c, const char *from, const char *to);

#endif
