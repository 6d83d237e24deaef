/* SPDX-License-Identifier: ISC */
/*
 * Writes lines to descriptor 2 without ever waiting for the reader of the log.
 * Others write there, too, so a line is written whole or not at all.
 *
 * Descriptor 2 is often shared with a shell or other programs. O_NONBLOCK
 * belongs to the open file description, not to the descriptor, so its flags
 * must not be changed here. There are three cases. A socket gets MSG_DONTWAIT
 * with each message. A pipe or a terminal is opened again, which makes an open
 * file description of our own. For a pipe that cannot be opened, because it
 * belongs to another user, a line is put into a pipe of our own, and splice(2)
 * moves it on without waiting. A regular file never makes anybody wait, but its
 * disk may be full.
 */
#include "log_output.h"

#include <sys/mman.h>

#include "base.h"

/* Occupies whole pages, so that a child starts with an empty queue
 * (MADV_WIPEONFORK). */
static struct log_queue queue __attribute__((aligned(LOG_QUEUE_BYTES)));

static bool is_socket;
/* This process has a pipe of its own, which is empty between two lines. -1:
 * there is none. */
static int bounce[2] = { -1, -1 };
static void (*wait_hook)(void);

/* The line is in one page of the pipe, which moves whole or not at all. */
static ssize_t
put_by_pipe(const char *line, size_t len)
{
	char nowhere[4096];
	ssize_t n = write(bounce[1], line, len);
	int err;

	if (n > 0)
		n = splice(bounce[0], NULL, STDERR_FILENO, NULL, (size_t)n,
		    SPLICE_F_NONBLOCK);
	err = errno;
	while (read(bounce[0], nowhere, sizeof(nowhere)) > 0)
		continue;
	errno = err;
	return n;
}

/* A full disk took only the beginning of a line. It is removed again, unless
 * somebody has written after it. */
static bool
take_back(size_t n)
{
	off_t end = lseek(STDERR_FILENO, 0, SEEK_CUR);
	struct stat st;

	return fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size == end &&
	       ftruncate(STDERR_FILENO, end - (off_t)n) == 0 &&
	       lseek(STDERR_FILENO, end - (off_t)n, SEEK_SET) >= 0;
}

/* Returns the number of bytes written, or 0 if none can be written now. On any
 * other error the log has no reader any more, and all bytes count as
 * written. */
static size_t
put_now(const char *line, size_t len)
{
	ssize_t n;

	do
		n = is_socket	     ? send(STDERR_FILENO, line, len,
					   MSG_DONTWAIT | MSG_NOSIGNAL)
		    : bounce[0] >= 0 ? put_by_pipe(line, len)
				     : write(STDERR_FILENO, line, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == ENOSPC || errno == EDQUOT
			   ? 0
			   : len;
	return (size_t)n < len && take_back((size_t)n) ? 0 : (size_t)n;
}

static void
keep(const char *text, size_t len)
{
	bool first = queue.len == 0 && queue.lost == 0;

	/* After a lost line nothing is queued, so that the count of lost lines
	 * is logged where they are missing. */
	if (queue.lost > 0 || len > sizeof(queue.text) - queue.len) {
		queue.lost++;
		queue.ever_lost++;
	} else {
		memcpy(queue.text + queue.len, text, len);
		queue.len += len;
	}
	if (first && wait_hook != NULL)
		wait_hook();
}

void
log_output_put(const char *line, size_t len)
{
	size_t n = 0;

	if (queue.len == 0 && queue.lost == 0)
		n = put_now(line, len);
	if (n < len)
		keep(line + n, len - n);
}

/* The most whole lines that a pipe takes together or not at all. */
static size_t
next_piece(void)
{
	size_t n = queue.len < PIPE_BUF ? queue.len : PIPE_BUF;
	const char *end = memrchr(queue.text, '\n', n);

	return end != NULL ? (size_t)(end + 1 - queue.text) : n;
}

bool
log_output_drain(void)
{
	size_t n = 1;

	while (queue.len > 0 && n > 0) {
		n = put_now(queue.text, next_piece());
		queue.len -= n;
		memmove(queue.text, queue.text + n, queue.len);
	}
	return queue.len == 0;
}

uint64_t
log_output_take_lost(void)
{
	uint64_t lost = queue.lost;

	/* The count is written only if needed: a page that is only read uses no
	 * memory. */
	if (lost > 0)
		queue.lost = 0;
	return lost;
}

void
log_on_wait(void (*hook)(void))
{
	wait_hook = hook;
}

struct log_queue *
log_output_queue(void)
{
	return &queue;
}

/* A file description of our own. */
static bool
open_again(void)
{
	int fd = open(
	    "/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		return false;
	close(fd);
	return true;
}

void
log_never_block(void)
{
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	struct stat st;

	madvise(&queue, sizeof(queue), MADV_WIPEONFORK);
	if (flags < 0 || fstat(STDERR_FILENO, &st) < 0)
		return;
	is_socket = S_ISSOCK(st.st_mode);
	/* O_NONBLOCK may also have been set by a parent process of ours. */
	if ((flags & O_NONBLOCK) || is_socket)
		return;
	if ((S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO)) && open_again())
		return;
	if (S_ISFIFO(st.st_mode) && bounce[0] < 0 &&
	    pipe2(bounce, O_NONBLOCK | O_CLOEXEC) < 0)
		log_warn(-errno, "the log may have to be waited for");
}
