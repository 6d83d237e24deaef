/* SPDX-License-Identifier: ISC */
/*
 * Bytes that one side of a connection has not accepted yet.
 */
#ifndef PENDING_H
#define PENDING_H

#include <stddef.h>
#include <sys/uio.h>

#include "buf.h"
#include "tls.h"

struct pending {
	struct buf buf;
	size_t at;
};

/* Writes iov to fd, or through TLS, unless bytes are pending already. What
 * cannot be written is kept. Returns 0 or -errno. */
int pending_write(
    struct pending *p, int fd, SSL *tls, struct iovec *iov, int n);

/* Writes pending bytes, as many as are accepted now. Returns 0 or -errno. */
int pending_flush(struct pending *p, int fd, SSL *tls);

static inline size_t
pending_bytes(const struct pending *p)
{
	return p->buf.len - p->at;
}

#endif
