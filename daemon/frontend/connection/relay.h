/* SPDX-License-Identifier: ISC */
/*
 * The two links of a connection (connection.h). Messages pass unread.
 */
#ifndef RELAY_H
#define RELAY_H

#include <sys/uio.h>

#include "connection.h"

/* Pieces of one writev: headers of our own and pieces of the scratch. */
#define RELAY_IOV_MAX 128

/* Client bytes: frames or lines are taken apart; what may not be handled yet
 * is kept in c->head. */
void relay_take_client(struct connection *c, uint8_t *data, size_t len);

/* One turn of either direction. */
void relay_read_client(struct connection *c);
void relay_read_runner(struct connection *c);
void relay_write_client(struct connection *c);
void relay_write_runner(struct connection *c);

/* A complete message to the runner. */
void relay_forward(struct connection *c, const void *text, size_t len);

/* To the runner as they are; what it does not take now is kept. */
void relay_write(struct connection *c, struct iovec *iov, int n);

/* Bytes kept earlier are handled now. */
void relay_take_kept(struct connection *c);

/* Our own frames (pong, ping, close), when they may be sent. */
void relay_own_frames(struct connection *c);
void relay_ping(struct connection *c);

#endif
