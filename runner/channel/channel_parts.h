/* SPDX-License-Identifier: ISC */
/*
 * Of the session channel, what its two directions share.
 */
#ifndef CHANNEL_PARTS_H
#define CHANNEL_PARTS_H

#include "channel.h"

/* With so much unwritten, no further request is taken: a client that asks
 * without listening stops itself. */
#define OUT_PAUSE_BYTES (4u << 20)

/* The largest answer (1 MiB of retained output, in base64, many times over). */
#define OUT_MAX_BYTES (1u << 30)

/* Input is read into one place for all, so that an idle channel holds none. */
#define CHANNEL_SCRATCH_BYTES (256u << 10)
extern uint8_t channel_scratch[CHANNEL_SCRATCH_BYTES];

/* From now on it is this socket; the one before stays open. */
void channel_watch(struct channel *ch, int fd);

/* Whoever else has that socket open may say that it blocks: nothing waits for
 * it none the less. */
bool channel_is_socket(const struct channel *ch);

/* The peer asks without listening, or the owner has enough. */
bool channel_is_behind(const struct channel *ch);

/* A message in pieces is put together with a header of its own, unless an
 * intake takes it. 0 or -errno. */
int channel_take_piece(
    struct channel *ch, const uint8_t *p, size_t len, bool more);

/* Drops what is not a whole message yet. */
void channel_discard_input(struct channel *ch);

void channel_out_cb(evutil_socket_t fd, short what, void *arg);

/* Drops what is not written yet. */
void channel_discard_output(struct channel *ch);

/* --- channel_long.c: messages that are not held in memory --------------- */

/* An intake for what is in `parts`, if it is enough to know and there is one.
 */
void channel_long_begin(struct channel *ch);

/* The intake takes the piece, and delivers the message when it is whole. 0, or
 * -errno: -EAGAIN when the message goes on in `parts` after all, where *p and
 * *len are still missing. */
int channel_long_piece(
    struct channel *ch, const uint8_t **p, size_t *len, bool more);

/* As read(2), with the descriptors that come. */
ssize_t channel_recv(struct channel *ch, void *p, size_t n);

/* Hands the message over, with what came beside its frame. */
void channel_deliver(
    struct channel *ch, uint32_t header, char *text, size_t len);

/* What was taken in and not delivered. */
void channel_long_clear(struct channel *ch);

/* Reads or not, as things stand now. */
void channel_review_reading(struct channel *ch);

#endif
