/* SPDX-License-Identifier: ISC */
/*
 * The copy of many files: how many at a time, the progress that is shown, what
 * belongs to a file besides its content, and what becomes of the files under
 * way when a signal ends the copy.
 */
#pragma once

#include <sys/stat.h>

#include "queue.h"
#include "transfer.h"

#define COPY_ACTIVE 16 /* transfers at a time */

/* What is known of a file besides its content. */
struct facts {
	bool has_mode, has_time;
	bool attributes; /* an access control list or extended attributes */
	mode_t mode;	 /* 07777 */
	int64_t modified_ms;
};

struct late; /* defined in copy.c */
struct copy_item;
struct remote_entry;
TAILQ_HEAD(copy_items, copy_item);

struct copy {
	struct execctl *ctl;
	bool to_server;
	bool recursive;
	bool preserve; /* modes and times, -p */
	mode_t umask;
	TAILQ_HEAD(, late) late; /* done at the end; owned */
	unsigned int unkept;	 /* modes and times that were not kept */
	unsigned int active;
	struct copy_items items; /* transfers under way */
	int signal;		 /* the signal that ended it; 0: none */
	unsigned int removing;	 /* answers copy_give_up() waits for */
	bool told_in_place, told_replaces;
	char *staging; /* an incomplete directory there; owned; or NULL */
	uint64_t files, bytes; /* finished; bytes also of those under way */
	uint64_t size; /* of the only file, for a percentage; 0: unknown */
	unsigned int failed, skipped;
	int code;     /* the worst exit status */
	bool stop;    /* nothing more can succeed */
	bool in_tree; /* what is copied now belongs to a directory */
	/* A source that is a pipe or a device has the descriptor of a file with
	 * its content here, and any other has -1. When a source is copied, its
	 * descriptor is `spool`, and copy_upload() owns it. */
	int *spooled, spool;
	struct unbundle *unbundle; /* takes small files; NULL: nobody */
	bool shows;		   /* there is a screen */
	int64_t began_ms, shown_ms;
	bool showing; /* progress is on the screen */
};

/* Prepares the copy. Blocks SIGINT, SIGTERM and SIGHUP: the loop reads them,
 * and they stop the copy. Returns 0, or an exit status after a message. */
int copy_begin(struct copy *c);
/* Removes incomplete files here and on the server. It waits at most two seconds
 * for the server's answers, and names what may be left there. Returns false if
 * something may. */
bool copy_give_up(struct copy *c);

/* Waits until at most `active` requests and transfers are under way, or a
 * signal came. */
void copy_wait(struct copy *c, unsigned int active);
/* Start the copy of one file. The path on the server is absolute. */
void copy_upload(struct copy *c, const char *from, const char *to);
void copy_download(struct copy *c, const char *from, const char *to,
    const struct facts *facts);
/* copy_into.c: writes into what has no name of its own that could be given to
 * another file: a FIFO, a device, a file that was deleted. */
void copy_download_into(struct copy *c, const char *from, const char *to);
/* Report a problem with one file. The copy of the others continues. */
void copy_failed(struct copy *c, const char *what, const char *why);
void copy_skipped(struct copy *c, const char *what, const char *why);

/* Shows the progress, if it is time for it; what: the file under way. */
void copy_show(struct copy *c, const char *what);
/* Leaves a line on the screen: what was copied, how much, and how fast. */
void copy_show_end(struct copy *c, const char *what);
/* Counts a file or a link, and names it with --verbose. from is NULL for a
 * link. */
void copied(struct copy *c, const char *from, const char *to);

/* copy_tree.c: copies a directory and everything in it; copy_upload_each() in
 * any case file by file */
void copy_upload_tree(struct copy *c, const char *from, const char *to);
void copy_upload_each(struct copy *c, const char *from, const char *to);
/* Copies a link as what it leads to, if that is a file, otherwise as a link. */
void copy_upload_link(struct copy *c, const char *from, const char *to);
/* bundle.c: copies the tree as one stream. Returns false if it copied nothing,
 * because a stream is not possible or not worth it. */
bool copy_bundle(struct copy *c, const char *from, const char *to);
/* unbundle.c: likewise from the server. Between the first and the last function
 * the second one takes files; the last one copies them all. The first returns
 * NULL if the server cannot do it. */
struct unbundle *unbundle_new(struct copy *c, const char *from);
bool unbundle_take(struct unbundle *u, const struct remote_entry *e,
    const char *from, const char *to);
void unbundle_end(struct unbundle *u);
void copy_download_tree(struct copy *c, const char *from, const char *to,
    const struct facts *facts);

/* --- Modes, times and links --------------------------------------------- */
void copy_unkept(struct copy *c, const char *what, const char *why);
/* Reads the facts from the result of fs/getMetadata or from an entry of
 * fs/readDirectory. What the server did not send is marked as missing. */
void facts_of_remote(struct facts *f, const struct json_value *metadata);
void facts_of_local(struct facts *f, const struct stat *st);
/* Returns the permission bits to set. With -p, reports bits that are not
 * kept. */
mode_t facts_mode(struct copy *c, const struct facts *f, const char *path);
/* With -p, reports attributes that are not kept. */
void facts_attributes(struct copy *c, const struct facts *f, const char *path);
/* Sets the modification time of the descriptor, or of the path if fd is -1.
 * Returns 0 or -errno. */
int keep_local_time(int fd, const char *path, const struct facts *f);
void keep_remote_mode(struct copy *c, const char *path, mode_t mode);
/* Queues work for copy_finish(): a symbolic link with the text `target`, or the
 * facts of a directory if target is NULL. */
void copy_later(struct copy *c, const char *path, const char *target,
    const struct facts *f);
void copy_finish(struct copy *c);

/* What is said of a target that is neither a file nor a directory. */
#define COPY_SPECIAL                                                           \
	"it is a FIFO, a device or a socket, which is not replaced by a file"

/* Tells whether the path is there, and is neither a file, nor a directory, nor
 * a link to one of them, nor a link to nothing. */
bool is_special(const char *path);

/* --- What is in a directory of the server (copy_tree.c) ------------------ */
struct remote_entry {
	char *name;   /* owned */
	char *target; /* of a link, if the server sent it; owned */
	bool directory, file, link;
	bool detailed;
	uint64_t size; /* with details */
	struct facts facts;
	struct listing *ahead; /* of copy_tree.c; owned; or NULL */
};

struct remote_directory {
	struct remote_directory *up; /* of the caller */
	struct remote_entry *entries;
	size_t n;
};

/* Asks for the list, and orders it by name. Returns false if there is none. */
bool remote_directory_list(
    struct copy *c, const char *path, struct remote_directory *d);
const struct remote_entry *remote_directory_find(
    const struct remote_directory *d, const char *name);
void remote_directory_clear(struct remote_directory *d);

/* --- copy_item.c -------------------------------------------------------- */

/*
 * Copies one file to the server or from it. Knows where the file has holes, and
 * gives it its name, mode and time when it is complete.
 */

/* One file. It embeds both kinds of transfer and uses one. */
struct copy_item {
	TAILQ_ENTRY(copy_item) link; /* copy.items */
	struct copy *copy;
	bool in_tree;	    /* of a directory that is copied */
	char *from, *to;    /* owned */
	int fd;		    /* the local file; owned */
	struct facts facts; /* of the source */
	bool keeps;	    /* fs/move keeps what is there besides content */
	bool hidden;	    /* it has mode 0600 until it is complete */
	char *temporary;    /* its name until it is complete; owned */
	bool named;	    /* that is its own name already */
	bool replaces;	    /* something has its name */
	char *final;	  /* then an upload's name: `to` without links; owned */
	uint64_t counted; /* its part of copy.bytes */
	bool ends_in_hole; /* the file here, which has yet to get its size */
	struct upload upload;
	struct download download;
	struct output out; /* copy_into.c */
};

struct copy_item *copy_item_new(
    struct copy *c, const char *from, const char *to);
void copy_item_free(struct copy_item *i);

/* Returns a new name in the directory of `path`, so that a rename can give the
 * file its own name in one step. The caller frees it. */
char *temporary_beside(const char *path);

/* Begins a file here, under its temporary name; if all of its content is there
 * already, and nothing has its name, under that. Returns NULL after a failure
 * that was reported. The next function writes to it, and returns 0 or -errno.
 * The last one gives it its name, unless code is another one than 0, and frees
 * it. */
struct copy_item *copy_item_local(struct copy *c, const char *from,
    const char *to, const struct facts *facts, bool whole);
int copy_item_write(void *item, const void *data, size_t len);
/* Writes all of it to a descriptor that blocks. Returns 0 or -errno. */
int write_piece(int fd, const char *data, size_t len);
void copy_item_written(void *item, int code, const char *message);

/* Shows that so many bytes of it are copied. */
void copy_item_count(struct copy_item *i, uint64_t offset);

/* End it: after a failure, or with the result of its transfer. Both free it. */
void copy_item_failed(struct copy_item *i, const char *why);
void copy_item_done(struct copy_item *i, int code, const char *message);

/* Removes an incomplete file on the server. */
void copy_remove(
    struct copy *c, const char *path, execd_answer_fn *fn, void *arg);
