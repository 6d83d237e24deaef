/* SPDX-License-Identifier: ISC */
/* What the two directions of the session channel share. */
#ifndef CHANNEL_PARTS_H
#define CHANNEL_PARTS_H

#include "channel.h"

/*
 * With this much unwritten no further request is taken. So a client that asks
 * without reading stops itself.
 */
#define OUT_PAUSE_BYTES (4u << 20)

/* Far more than the largest answer (1 MiB of retained output in base64). */
#define OUT_MAX_BYTES (1u << 30)

/* One input buffer for all channels, so that an idle one needs none. */
#define CHANNEL_SCRATCH_BYTES (256u << 10)
extern uint8_t channel_scratch[CHANNEL_SCRATCH_BYTES];

/* Uses this socket from now on; the one before stays open. */
void channel_watch(struct channel *ch, int fd);

/*
 * Tells whether in and out are one socket. Reads and writes of a socket ask
 * never to wait, because others who have it open could set it to block.
 */
bool channel_is_socket(const struct channel *ch);

/*
 * Tells whether the peer asks without reading, or the owner paused the channel.
 */
bool channel_is_behind(const struct channel *ch);

/*
 * Takes a piece of a message that comes in pieces. The pieces are joined as one
 * frame, unless an intake takes them. Returns 0 or -errno.
 */
int channel_take_piece(
    struct channel *ch, const uint8_t *p, size_t len, bool more);

/* Drops a message that is not complete yet. */
void channel_discard_input(struct channel *ch);

void channel_out_cb(evutil_socket_t fd, short what, void *arg);

/* Drops what is not written yet. */
void channel_discard_output(struct channel *ch);

/* --- channel_long.c: messages that are not held in memory --------------- */

/* Asks for an intake if `parts` holds enough of the message to decide. */
void channel_long_begin(struct channel *ch);

/*
 * Gives the piece to the intake, and delivers the message when it is complete.
 * Returns 0 or -errno. -EAGAIN: the message goes on in `parts` after all, and
 * *p and *len are the rest to put there.
 */
int channel_long_piece(
    struct channel *ch, const uint8_t **p, size_t *len, bool more);

/* Like read(2), but also takes descriptors. Returns -errno for an error. */
ssize_t channel_recv(struct channel *ch, void *p, size_t n);

/*
 * Delivers the message to the owner, with the descriptor that came with its
 * frame.
 */
void channel_deliver(
    struct channel *ch, uint32_t header, char *text, size_t len);

/* Frees what was received but not delivered. */
void channel_long_clear(struct channel *ch);

/* Starts or stops reading, depending on the state of the channel. */
void channel_review_reading(struct channel *ch);

#endif
