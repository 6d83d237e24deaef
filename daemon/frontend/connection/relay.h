/* SPDX-License-Identifier: ISC */
/*
 * The relay between a client and its runner, over the two links of a connection
 * (connection.h). It does not look into messages.
 */
#ifndef RELAY_H
#define RELAY_H

#include <sys/uio.h>

#include "connection.h"

/* The most parts of one writev(2): headers, and pieces of the read buffer. */
#define RELAY_IOV_MAX 128

/* Read or write once, in one direction. */
void relay_read_client(struct connection *c);
void relay_read_runner(struct connection *c);
void relay_write_client(struct connection *c);
void relay_write_runner(struct connection *c);

/* Sends a complete message to the runner. */
void relay_forward(struct connection *c, const void *text, size_t len);

/* Sends bytes to the runner as they are, and keeps what it does not take now.
 * iov may be changed. */
void relay_write(struct connection *c, struct iovec *iov, int n);

/* Handles bytes that were kept before. */
void relay_take_kept(struct connection *c);

void relay_ping(struct connection *c);

#endif
