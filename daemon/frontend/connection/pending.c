/* SPDX-License-Identifier: ISC */
/*
 * Bytes of a connection that wait.
 */
#include "pending.h"

#include <errno.h>
#include <unistd.h>

#include "frontend.h"

static void
pending_keep(struct pending *p, const struct iovec *iov, int n, size_t skip)
{
	for (int i = 0; i < n; i++) {
		size_t cut = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		buf_put(&p->buf, (uint8_t *)iov[i].iov_base + cut,
		    iov[i].iov_len - cut);
		skip -= cut;
	}
}

int
pending_write(struct pending *p, int fd, SSL *tls, struct iovec *iov, int n)
{
	ssize_t written = 0;

	if (n == 0)
		return 0;
	if (pending_bytes(p) == 0) {
		written = tls ? tls_writev(tls, iov, n) : writev(fd, iov, n);
		if (written < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	pending_keep(p, iov, n, written > 0 ? (size_t)written : 0);
	return 0;
}

int
pending_flush(struct pending *p, int fd, SSL *tls)
{
	const struct iovec rest = { p->buf.data + p->at, pending_bytes(p) };
	ssize_t n = tls ? tls_writev(tls, &rest, 1) : writev(fd, &rest, 1);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	p->at += (size_t)n;
	if (pending_bytes(p) == 0) {
		buf_clear(&p->buf);
		p->at = 0;
	} else if (p->at > p->buf.len / 2) {
		buf_consume(&p->buf, p->at);
		p->at = 0;
	}
	return 0;
}

/* --- messages that cannot be relayed piece by piece --------------------- */

/* Each connection may always hold this much. An initialize is smaller. */
#define ALWAYS_BYTES (64u << 10)

/* All messages together may hold as much as this many of the largest. */
#define LARGEST_TOGETHER 4

static uint64_t held;

/* Returns how many bytes of a message count against the limit. */
static uint64_t
counted(size_t len)
{
	return len > ALWAYS_BYTES ? len - ALWAYS_BYTES : 0;
}

bool
collect(struct buf *message, const void *p, size_t len)
{
	uint64_t more = counted(message->len + len) - counted(message->len);

	if (message->limit == 0)
		buf_init(message, config.max_message_bytes);
	if (held + more > config.max_message_bytes * LARGEST_TOGETHER)
		return false;
	buf_put(message, p, len);
	if (message->failed)
		return false;
	held += more;
	return true;
}

struct buf
collect_take(struct buf *message)
{
	struct buf taken = *message;

	held -= counted(taken.len);
	buf_init(message, taken.limit);
	return taken;
}

void
collect_drop(struct buf *message)
{
	struct buf taken = collect_take(message);

	buf_clear(&taken);
}
