/* SPDX-License-Identifier: ISC */
/* Allocation that cannot fail, scope cleanup, times, paths: what Windows has,
 * too. */
#include "util.h"

#include "base.h"

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
	size_t bytes;

	if (__builtin_mul_overflow(n ? n : 1, size ? size : 1, &bytes))
		p = NULL;
	else
		p = realloc(p, bytes);
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
xvasprintf(const char *fmt, va_list ap)
{
	char *s;

	if (vasprintf(&s, fmt, ap) < 0)
		log_fatal("out of memory formatting a string");
	return s;
}

char *
xasprintf(const char *fmt, ...)
{
	char *s;
	va_list ap;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

int64_t
now_ms(void)
{
	return now_us() / 1000;
}

int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void
cleanup_free_(void *p)
{
	free(*(void **)p);
}

/* --- absolute paths as text --------------------------------------------- */

bool
path_lies_in(const char *path, const char *directory)
{
	size_t n = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

	return strncmp(path, directory, n) == 0 &&
	       (path[n] == '\0' || path[n] == '/');
}
