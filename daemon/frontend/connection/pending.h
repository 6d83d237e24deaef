/* SPDX-License-Identifier: ISC */
/*
 * Bytes that one side of a connection did not take yet.
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

/* Writes iov to fd, or through TLS to it, unless something is pending already;
 * the rest is kept. 0 or -errno. */
int pending_write(
    struct pending *p, int fd, SSL *tls, struct iovec *iov, int n);

/* Writes of it what is taken now. 0 or -errno. */
int pending_flush(struct pending *p, int fd, SSL *tls);

static inline size_t
pending_bytes(const struct pending *p)
{
	return p->buf.len - p->at;
}

#endif
