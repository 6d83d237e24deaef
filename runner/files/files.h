/*
 * The file helper: serves the fs/ methods of one connection, in order, as
 * the session's user (PROTOCOL.md section 10). Started by the runner with its
 * channel on CONTROL_FD; ends with it.
 */
#ifndef FILES_H
#define FILES_H

#include <dirent.h>
#include <sys/stat.h>

#include "params.h"
#include "request.h"

struct event_base;

/* Serves until the runner goes. Returns the exit code. */
int files_run(struct event_base *base);

/* Acts on decoded params and answers; the value is ignored. */
typedef int file_fn(struct request *r, const struct fs_params *p);

#define METHOD(name, wire, family, when)
#define FILE_METHOD(name, wire) file_fn file_##name;
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
 * (a directory too, unless `flags` asks to write: then -EISDIR).
 */
#define OPEN_DEVICE (1 << 30) /* a character device will do: /dev/null */
int open_regular(const char *path, int flags, struct stat *st);

/* As mkdir -p; a link to a directory is one. 0 or -errno. */
int make_directories(const char *path);

/* The names in a directory, without "." and "..", in order of their bytes.
 * End with names_free() whatever names_read() returned: 0 or -errno. */
struct names {
	char **all; /* owned */
	size_t count, cap;
};
int names_read(DIR *d, struct names *n);
void names_free(struct names *n);

/* All of it, or -errno. */
int write_all(int fd, const void *p, size_t n);

/* Handles that are still open; the helper ends with its connection. */
void file_handles_clear(void);

#endif
