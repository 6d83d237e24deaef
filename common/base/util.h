/* SPDX-License-Identifier: ISC */
/*
 * Allocation that cannot fail, scope cleanup, paths as text, and helpers for
 * descriptors.
 * Every program uses it; it knows nothing of execd.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>

#define nitems(a) (sizeof(a) / sizeof((a)[0]))

/* Bytes that somebody else owns. A NUL at the end is never promised. */
struct slice {
	const char *ptr;
	size_t len;
};

#define SLICE(literal) ((struct slice){ (literal), sizeof(literal) - 1 })

bool slice_equal(struct slice a, struct slice b);

/* Returns the text without its NUL. */
static inline struct slice
slice_of(const char *s)
{
	return (struct slice){ s, strlen(s) };
}

/* The program ends when memory runs out, so callers never see NULL. The caller
 * owns the result. */
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xreallocarray(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap)
    __attribute__((format(printf, 1, 0)));

/* Return CLOCK_MONOTONIC in milliseconds and in microseconds. */
int64_t now_ms(void);
int64_t now_us(void);

/* Returns the earlier of two times. -1 means none. */
static inline int64_t
earlier_ms(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* For timers. Times above 68 years are cut to about 68 years. */
static inline struct timeval
timeval_of_ms(uint64_t ms)
{
	uint64_t s = ms / 1000 > INT32_MAX ? INT32_MAX : ms / 1000;

	return (struct timeval){ (time_t)s, (int)(ms % 1000 * 1000) };
}

static inline uint64_t
ms_of_timeval(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000 + (uint64_t)tv->tv_usec / 1000;
}

/* Closes every descriptor from `lowest` up, by close_range(2) or from /proc. */
void close_from(int lowest);

/* Sets O_NONBLOCK. Returns 0 or -errno. */
int set_nonblock(int fd);

/* Moves fd to the number `to`, close-on-exec or not. Returns 0 or -errno. */
int move_fd(int fd, int to, bool cloexec);

/* Reads a text of at most cap - 1 bytes at once, as files of the kernel have
 * it, and adds a NUL; AT_FDCWD: `name` is a path. Returns its bytes or -errno.
 */
ssize_t read_whole(int dir, const char *name, char *text, size_t cap);

/* Writes the whole text at once to a file that exists, as files of the kernel
 * want it; AT_FDCWD: `name` is a path. Returns 0 or -errno. */
int write_whole(int dir, const char *name, const char *text);

static inline int
steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void *
steal_pointer_(void **p)
{
	void *taken = *p;

	*p = NULL;
	return taken;
}
#define steal_pointer(p) ((__typeof__(*(p)))steal_pointer_((void **)(p)))

void cleanup_free_(void *p);
void cleanup_close_(int *fd);
#define _cleanup_free_	__attribute__((cleanup(cleanup_free_)))
#define _cleanup_close_ __attribute__((cleanup(cleanup_close_)))

/* For absolute paths; nothing is looked up in the file system. Returns true if
 * path is the directory itself or lies below it. Neither
 * argument may contain ".." or "//". Neither may end in a slash, except "/"
 * itself. */
bool path_lies_in(const char *path, const char *directory);
