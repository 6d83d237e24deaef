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

void channel_out_cb(evutil_socket_t fd, short what, void *arg);

/* Drops what is not written yet. */
void channel_discard_output(struct channel *ch);

/* Reads or not, as things stand now. */
void channel_review_reading(struct channel *ch);

#endif
