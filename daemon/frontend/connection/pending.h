/* SPDX-License-Identifier: ISC */
/*
 * Bytes of a connection that wait: those that one side has not accepted yet,
 * and parts of messages that cannot be relayed piece by piece.
 */
#ifndef PENDING_H
#define PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "buf.h"
#include "tls.h"

/* Bytes that one side has not accepted yet. */
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

/*
 * Messages before a session, and lines, are collected in a buffer. No session
 * is charged for their memory, so all of them together have a limit.
 */

/* Appends to the message. Returns false if it is too long, or if all messages
 * together hold too much. */
bool collect(struct buf *message, const void *p, size_t len);

/* Returns the message, whose buffer is then the caller's. */
struct buf collect_take(struct buf *message);

/* Discards the message. */
void collect_drop(struct buf *message);

#endif
