/* SPDX-License-Identifier: ISC */
/* The content of long requests in files. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rights.h"
#include "util.h"

#define DIRECTORY  "/var/tmp"
#define COPY_BYTES (128u << 10)

/* O_EXCL: the file can never get a name. */
static int
open_file(void)
{
	int fd = open(DIRECTORY, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : memfd_create("execd-spool", MFD_CLOEXEC);
}

struct spool *
spool_new(unsigned *count)
{
	struct rlimit most;
	struct spool *s;
	int fd;

	/* With such a limit, SIGXFSZ would end the program. */
	if (getrlimit(RLIMIT_FSIZE, &most) < 0 ||
	    most.rlim_cur != RLIM_INFINITY) {
		errno = EFBIG;
		return NULL;
	}
	fd = open_file();
	if (fd < 0)
		return NULL;
	s = xmalloc(sizeof(*s));
	*s = (struct spool){ .fd = fd, .count = count };
	++*count;
	return s;
}

struct spool *
spool_adopt(int fd)
{
	struct spool *s = xmalloc(sizeof(*s));
	struct stat st;

	*s = (struct spool){ .fd = fd };
	if (fd >= 0 && fstat(fd, &st) == 0)
		s->bytes = (uint64_t)st.st_size;
	return s;
}

void
spool_free(struct spool *s)
{
	if (s == NULL)
		return;
	if (s->count != NULL)
		--*s->count;
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

int
spool_write(struct spool *s, const void *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		ssize_t done = pwrite(s->fd, (const char *)p + at, n - at,
		    (off_t)(s->bytes + at));

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		at += (size_t)done;
	}
	s->bytes += n;
	return 0;
}

/*
 * Returns the bytes that the kernel copied, 0 if it cannot copy between these
 * two files, or -errno.
 */
static ssize_t
move_some(const struct spool *s, int fd, uint64_t at)
{
	loff_t from = (loff_t)at;
	ssize_t n =
	    copy_file_range(s->fd, &from, fd, NULL, (size_t)(s->bytes - at), 0);

	if (n >= 0)
		return n;
	return errno == ENOSPC || errno == EDQUOT || errno == EIO ||
		       errno == EFBIG
		   ? -errno
		   : 0;
}

static ssize_t
write_some(const struct spool *s, int fd, uint64_t at, char *bytes)
{
	ssize_t got = pread(s->fd, bytes, COPY_BYTES, (off_t)at);
	ssize_t n = got > 0 ? write(fd, bytes, (size_t)got) : got;

	if (n > 0)
		return n;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return -EIO;
}

int
spool_copy(const struct spool *s, int fd)
{
	_cleanup_free_ char *bytes = NULL;
	bool moves = true;
	uint64_t at = 0;

	if (s->fd < 0)
		return -EMFILE;
	while (at < s->bytes) {
		ssize_t n = moves ? move_some(s, fd, at) : 0;

		moves = n != 0;
		if (!moves && bytes == NULL)
			bytes = xmalloc(COPY_BYTES);
		if (!moves)
			n = write_some(s, fd, at, bytes);
		if (n < 0)
			return (int)n;
		at += (uint64_t)n;
	}
	return 0;
}

ssize_t
spool_send(const struct spool *s, int sock, const void *p, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)p, n };

	return rights_send(sock, &iov, 1, s->fd);
}
