/* SPDX-License-Identifier: ISC */
/*
 * Bytes that one side of a connection has not accepted yet.
 */
#include "pending.h"

#include <errno.h>
#include <unistd.h>

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
