/* SPDX-License-Identifier: ISC */
/*
 * The file helper: serves the fs/ methods of one connection, in order, as
 * the session's user (doc/protocol.md section 10). Started by the runner with
 * its channel on CONTROL_FD; ends with it.
 */
#ifndef FILES_H
#define FILES_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "params.h"
#include "request.h"

struct event_base;

/* Serves until the runner goes. in_sandbox: the process is confined to the
 * policy that its requests name. Returns the exit code. */
int files_run(struct event_base *base, bool in_sandbox);

/* Acts on decoded params and answers; the value is ignored. */
typedef int file_fn(struct request *r, const struct fs_params *p);

#define METHOD(name, wire, family, when)
#define FILE_METHOD(name, wire, family, use) file_fn file_##name;
#define HTTP_METHOD(name, wire)
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD

/* "TEXT (os error N)": -32004 for ENOENT, -32600 for EACCES, EPERM and
 * EINVAL, else -32603 (section 3). err is -errno. Always 0. */
int reply_file_error(struct request *r, int err);

/* -32600 "path `PATH` is not a file" */
int reply_not_a_file(struct request *r, const char *path);

/* {} or the error. */
int reply_done(struct request *r, int err);

/*
 * Opens a regular file and nothing else: a FIFO, device or socket is never
 * waited for or touched. flags as open(2), without O_CLOEXEC and O_NONBLOCK.
 * Returns a descriptor, -errno, or -ENOTSUP for what is no regular file
 * (a directory too, unless `flags` asks to write: then -EISDIR). A relative
 * path begins at `dir`; with O_NOFOLLOW a link is no regular file.
 */
#define OPEN_DEVICE (1 << 30) /* a character device will do: /dev/null */
int open_regular(int dir, const char *path, int flags, struct stat *st);

/* As mkdir -p; a link to a directory is one. 0 or -errno. */
int make_directories(const char *path);

/* The names in a directory, without "." and "..", in order of their bytes.
 * End with names_free() whatever names_read() returned: 0 or -errno. */
struct names {
	char **all; /* owned */
	size_t count, cap;
};
int names_read(DIR *d, struct names *n);
void names_add(struct names *n, const char *name);
void names_free(struct names *n);

/* For openat(): a directory and never a link to one; to read it, or only to
 * go on from it. */
#define OPEN_LISTED                                                            \
	(O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define OPEN_PASSED (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/*
 * The way from the top of a tree down to where a walk of it is. Every step
 * starts at a directory that is open, and none follows a link, so that nobody
 * who changes the tree meanwhile leads the walk out of it. Only the lowest
 * directory is open: any depth will do. The way up is "..", which counts
 * only if it is where the walk came from.
 */
struct descent_level {
	dev_t device;
	ino_t inode;
	struct names names;
	size_t next; /* of them */
};
struct descent {
	struct descent_level *levels; /* owned */
	size_t depth, cap;
	int fd; /* owned; -1 at depth 0 */
};

/* Takes fd and the names. 0, or -errno with both closed. */
int descent_enter(struct descent *d, int fd, struct names *names);
/* 0 or -errno: -ESTALE when the directory was moved elsewhere. */
int descent_leave(struct descent *d);
/* The next name in the lowest directory, or NULL. */
const char *descent_next(struct descent *d);
/* The name that descent_next() gave last. */
const char *descent_name(const struct descent *d);
void descent_clear(struct descent *d);

/* The names in the directory that fd is; fd stays open. */
int names_read_fd(int fd, struct names *n);

/* All of it, or -errno. */
int write_all(int fd, const void *p, size_t n);
int write_at(int fd, const void *p, size_t n, off_t offset);

/* Handles that are still open; the helper ends with its connection. */
void file_handles_clear(void);

#endif
