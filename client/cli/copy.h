/* SPDX-License-Identifier: ISC */
/*
 * execctl cp: many files, some at a time.
 */
#ifndef COPY_H
#define COPY_H

#include <sys/stat.h>

#include "queue.h"
#include "transfer.h"

#define COPY_ACTIVE 16 /* transfers at a time */

/* Of a file, beside its content. */
struct facts {
	bool has_mode, has_time;
	mode_t mode; /* 07777 */
	int64_t modified_ms;
};

struct late; /* copy_keep.c */
struct copy_item;
TAILQ_HEAD(copy_items, copy_item);

struct copy {
	struct ctl *ctl;
	bool to_server;
	bool recursive;
	bool preserve; /* modes and times, -p */
	mode_t umask;
	TAILQ_HEAD(, late) late; /* what is done last */
	unsigned int unkept;	 /* modes, times */
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
void copy_download(struct copy *c, const char *from, const char *to,
    const struct facts *facts);
/* Says what went wrong with one file; the others go on. */
void copy_failed(struct copy *c, const char *what, const char *why);
void copy_skipped(struct copy *c, const char *what, const char *why);

/* copy_tree.c: a directory and everything in it */
void copy_upload_tree(struct copy *c, const char *from, const char *to);
void copy_download_tree(struct copy *c, const char *from, const char *to,
    const struct facts *facts);

/* copy_keep.c: modes, times and links */
void copy_unkept(struct copy *c, const char *what, const char *why);
/* Of an answer with details, or an entry of one. */
void facts_of_remote(struct facts *f, const struct json_value *metadata);
void facts_of_local(struct facts *f, const struct stat *st);
/* Permission bits to set. */
mode_t facts_mode(struct copy *c, const struct facts *f, const char *path);
/* Of the descriptor, or of the path where fd is -1. 0 or -errno. */
int keep_local_time(int fd, const char *path, const struct facts *f);
void keep_remote_mode(struct copy *c, const char *path, mode_t mode);
/* A link with that text, or the facts of a directory (target NULL), when all
 * else is done. */
void copy_later(struct copy *c, const char *path, const char *target,
    const struct facts *f);
void copy_finish(struct copy *c);

#endif
