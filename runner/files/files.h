/* SPDX-License-Identifier: ISC */
/*
 * The file helper: serves the fs/ methods of one connection, in order, as the
 * session's user (doc/protocol.md section 10). The runner starts it with its
 * channel on CONTROL_FD; it ends with that channel.
 */
#pragma once

#include <dirent.h>

#include "params.h"
#include "request.h"

/* Tells whether a file that lstat(2) found is no entry for a client, as
 * placeholder_is(). */
typedef bool files_hides_fn(int at, const char *path, const struct stat *st);

extern files_hides_fn *files_hides;

/*
 * Serves until the runner closes the channel. in_sandbox: the process is
 * confined by the policy that its requests name. Returns the exit code.
 */
int files_run(struct event_base *base, bool in_sandbox, files_hides_fn *hides);

/* Acts on decoded parameters and answers. The return value is ignored. */
typedef int file_fn(struct request *r, const struct fs_params *p);

#define METHOD(name, wire, family, when, repeat)
#define FILE_METHOD(name, wire, family, use, repeat) file_fn file_##name;
#define HTTP_METHOD(name, wire)
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD

/*
 * Answers "TEXT (os error N)": with -32004 for ENOENT, -32600 for EACCES, EPERM
 * and EINVAL, otherwise -32603 (section 3). err is -errno. Returns 0.
 */
int reply_file_error(struct request *r, int err);

/* Answers with -32600 "path `PATH` is not a file". */
int reply_not_a_file(struct request *r, const char *path);

/* Answers {} if err is 0, otherwise the error. */
int reply_done(struct request *r, int err);

/*
 * Opens a regular file and nothing else. A FIFO, device or socket is never
 * waited for or touched. flags are those of open(2); O_CLOEXEC and O_NONBLOCK
 * need not be given. Returns a descriptor, -errno, or -ENOTSUP if it is no
 * regular file; -EISDIR for a directory that `flags` ask to write. A relative
 * path begins at `dir`. With O_NOFOLLOW a link counts as no regular file.
 */
#define OPEN_DEVICE (1 << 30) /* also permits a character device: /dev/null */
int open_regular(int dir, const char *path, int flags, struct stat *st);

/* Reads a whole regular file. Returns 0, -EFBIG if it has more than max bytes,
 * or an error of open_regular(). */
int read_regular(const char *path, struct buf *b, size_t max);

/* Like mkdir -p; a link to a directory counts as one. Returns 0 or -errno. */
int make_directories(const char *path);

/*
 * The names in a directory, without "." and "..", ordered by their bytes. Call
 * names_free() after names_read(), whether it returned 0 or -errno.
 */
struct names {
	char **all; /* owned */
	size_t count, cap;
};
int names_read(DIR *d, struct names *n);
void names_add(struct names *n, const char *name);
void names_free(struct names *n);

/*
 * Flags for openat() that open a directory, never a link to one: OPEN_LISTED to
 * read it, OPEN_PASSED only to go on from it.
 */
#define OPEN_LISTED                                                            \
	(O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define OPEN_PASSED (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/*
 * The path from the top of a tree down to where a walk is now. Every step
 * starts at an open directory and follows no link, so nobody who changes the
 * tree meanwhile can lead the walk out of it. Only the lowest directory is
 * open, so the depth is not limited. The way up is "..", which is accepted only
 * if it is the directory the walk came from.
 */
struct descent_level {
	dev_t device;
	ino_t inode;
	struct names names;
	size_t next; /* index in names */
};
struct descent {
	struct descent_level *levels; /* owned */
	size_t depth, cap;
	int fd; /* owned; -1 at depth 0 */
};

/*
 * Goes down into fd. Takes fd and the names over. Returns 0, or -errno with
 * both freed.
 */
int descent_enter(struct descent *d, int fd, struct names *names);
/*
 * Goes up. Returns 0 or -errno; -ESTALE if the directory was moved elsewhere.
 */
int descent_leave(struct descent *d);
/* Returns the next name in the lowest directory, or NULL. */
const char *descent_next(struct descent *d);
/* Returns the name that descent_next() returned last. */
const char *descent_name(const struct descent *d);
void descent_clear(struct descent *d);

/* Reads the names in the directory fd; fd stays open. */
int names_read_fd(int fd, struct names *n);

/*
 * The runner sets HOME, because in a sandbox there may be no other way to know.
 * Returns "/" if it is not set.
 */
const char *file_user_home(void);

/*
 * Returns CODEX_HOME with its links resolved, or ~/.codex. The caller owns it.
 * NULL: CODEX_HOME names nothing; the answer is FILE_NO_CODEX_HOME, with it.
 */
char *file_codex_home(void);
#define FILE_NO_CODEX_HOME                                                     \
	"CODEX_HOME points to \"%s\", but that path does not exist"

/* For an offset: where the descriptor stands, which goes on from there. */
#define AT_POSITION ((off_t)-1)

/* Reads what is there, at most n bytes. Returns the bytes read or -errno. */
ssize_t read_at(int fd, void *p, size_t n, off_t offset);

/* Writes all n bytes. Returns 0 or -errno. */
int write_at(int fd, const void *p, size_t n, off_t offset);

/*
 * Closes the handles that are still open. The helper ends with its connection.
 */
void file_handles_clear(void);

/* --- directory_walk.c --------------------------------------------------- */

/*
 * Walks a tree breadth first, the entries of each directory by name, and enters
 * no directory twice.
 */

/* What is told of a tree; either returns false to end the walk. */
struct directory_visitor {
	/* A regular file or a directory. Other entries are left out. */
	bool (*entry)(void *ctx, const char *path, bool directory);
	bool (*error)(void *ctx, const char *path, int err); /* err: -errno */
	void *ctx;
};

/* Returns true if the tree has more than the limits permit to tell. */
bool directory_walk(const char *top, const struct fs_walk_options *options,
    const struct directory_visitor *visitor);
