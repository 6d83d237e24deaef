/* SPDX-License-Identifier: ISC */
/*
 * Allocation that cannot fail, scope cleanup, and helpers for descriptors.
 */
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

bool
slice_equal(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || !memcmp(a.ptr, b.ptr, a.len));
}

void *
xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (p == NULL)
		log_fatal("out of memory allocating %zu bytes", size);
	return p;
}

void *
xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (p == NULL)
		log_fatal("out of memory allocating %zu x %zu bytes", n, size);
	return p;
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n ? n : 1, size ? size : 1);
	if (p == NULL)
		log_fatal("out of memory allocating %zu x %zu bytes", n, size);
	return p;
}

char *
xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *
xstrndup(const char *s, size_t n)
{
	char *copy = xmalloc(n + 1);

	/* An empty slice may have no pointer. */
	if (n > 0)
		memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

char *
xasprintf(const char *fmt, ...)
{
	char *s;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		log_fatal("out of memory formatting a string");
	return s;
}

struct timeval
timeval_of_ms(uint64_t ms)
{
	uint64_t s = ms / 1000 > INT32_MAX ? INT32_MAX : ms / 1000;

	return (struct timeval){ (time_t)s, (suseconds_t)(ms % 1000 * 1000) };
}

uint64_t
ms_of_timeval(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000 + (uint64_t)tv->tv_usec / 1000;
}

int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* For kernels before 5.9. The directory's own descriptor is closed last. */
static void
close_from_proc(int lowest)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	if (d == NULL) {
		for (int fd = lowest; fd < sysconf(_SC_OPEN_MAX); fd++)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd >= lowest && fd != dirfd(d))
			close(fd);
	}
	closedir(d);
}

void
close_from(int lowest)
{
	if (syscall(SYS_close_range, lowest, ~0U, 0) < 0)
		close_from_proc(lowest);
}

int
set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int
move_fd(int fd, int to, bool cloexec)
{
	if (fd == to)
		return fcntl(fd, F_SETFD, cloexec ? FD_CLOEXEC : 0) < 0 ? -errno
									: 0;
	if (dup3(fd, to, cloexec ? O_CLOEXEC : 0) < 0)
		return -errno;
	close(fd);
	return 0;
}

void
cleanup_free_(void *p)
{
	free(*(void **)p);
}

void
cleanup_close_(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}
