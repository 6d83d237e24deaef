/* SPDX-License-Identifier: ISC */
/*
 * Writes lines to descriptor 2 without ever waiting for the reader of the log.
 *
 * Descriptor 2 is often shared with a shell or other programs. O_NONBLOCK
 * belongs to the open file description, not to the descriptor, so its flags
 * must not be changed here. There are three cases. A socket gets MSG_DONTWAIT
 * with each message. A pipe or a terminal is opened again, which makes an open
 * file description of our own. A pipe that cannot be opened, because it belongs
 * to another user, is preceded by a pipe of our own (the relay), and splice(2)
 * moves the bytes on without waiting. The event loop of the program calls
 * log_flush() to do so for its children as well (log_relay_fd()). Children
 * inherit descriptor 2 as it is then and need nothing else.
 */
#include "log_output.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base.h"

#define PIECE_BYTES 65536

/* Occupies whole pages, so that a child starts with an empty queue
 * (MADV_WIPEONFORK). */
static struct log_queue queue __attribute__((aligned(LOG_QUEUE_BYTES)));

static bool is_socket;
/* the relay: from our own pipe to the log */
static int relay_in = -1, relay_out = -1;
static void (*wait_hook)(void);

/* Moves the contents of the relay to the log. Returns false if some remain. */
static bool
relay(void)
{
	char nowhere[4096];
	ssize_t n = 1;
	int left = 0;

	if (relay_in < 0)
		return true;
	while (n > 0)
		n = splice(relay_in, NULL, relay_out, NULL, PIECE_BYTES,
		    SPLICE_F_NONBLOCK);
	if (n < 0 && errno == EAGAIN)
		return ioctl(relay_in, FIONREAD, &left) < 0 || left == 0;
	/* The log has no reader any more, so the bytes are discarded. */
	while (read(relay_in, nowhere, sizeof(nowhere)) > 0)
		;
	return true;
}

/* Returns the number of bytes written, or 0 if none can be written now. On any
 * other error the log has no reader any more, and all bytes count as
 * written. */
static size_t
put_now(const char *text, size_t len)
{
	ssize_t n;

	do
		n = is_socket ? send(STDERR_FILENO, text, len,
				    MSG_DONTWAIT | MSG_NOSIGNAL)
			      : write(STDERR_FILENO, text, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : len;
	return (size_t)n;
}

static void
keep(const char *text, size_t len)
{
	bool first = queue.len == 0 && queue.lost == 0;

	/* After a lost line nothing is queued, so that the count of lost lines
	 * is logged where they are missing. */
	if (queue.lost > 0 || len > sizeof(queue.text) - queue.len) {
		queue.lost++;
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
	if (!relay() && wait_hook != NULL)
		wait_hook();
}

bool
log_output_drain(void)
{
	bool relayed = relay();
	size_t n = 1;

	while (queue.len > 0 && n > 0) {
		n = put_now(queue.text, queue.len);
		queue.len -= n;
		memmove(queue.text, queue.text + n, queue.len);
	}
	return relayed && queue.len == 0;
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
log_output_parts(int **in, int **out)
{
	*in = &relay_in;
	*out = &relay_out;
	return &queue;
}

int
log_relay_fd(void)
{
	return relay_in;
}

/* --- a file description of our own -------------------------------------- */

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

/* Makes the relay. Its descriptors lie above those that a child is given. */
static void
put_relay_before(void)
{
	int pair[2], out = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4);

	if (out < 0 || pipe2(pair, O_NONBLOCK | O_CLOEXEC) < 0)
		return;
	relay_out = out;
	relay_in = fcntl(pair[0], F_DUPFD_CLOEXEC, 4);
	close(pair[0]);
	fcntl(pair[1], F_SETPIPE_SZ, LOG_QUEUE_BYTES);
	dup2(pair[1], STDERR_FILENO);
	close(pair[1]);
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
	if (S_ISFIFO(st.st_mode))
		put_relay_before();
}
