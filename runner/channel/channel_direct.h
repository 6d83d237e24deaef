/* SPDX-License-Identifier: ISC */
/*
 * The session channel of a client that the front-end handed over (doc/design.md
 * section 3). The same messages go by WebSocket over the client's own socket.
 * The channel's socket remains for reports to the front-end, which closes the
 * client's connection in the end. The front-end asks for the client back by
 * ending what it sends.
 */
#pragma once

#include "channel.h"
#include "liveness.h"
#include "websocket.h"

struct direct {
	const struct control_session_config *terms;
	struct websocket_parser parser;
	int channel_fd;		    /* to the front-end */
	struct event channel_event; /* the front-end ends its side */
	struct event timer; /* for pings; if `reclaimed`, the time limit */
	bool lost;	    /* the client takes nothing any more */
	bool was_full;	    /* lost, and the owner may still wait for room */
	bool reclaimed;	    /* give it back once all is written */
	bool over;	    /* given back */
	bool answered;
	bool want_pong; /* send it between two frames */
	uint8_t pong_len;
	uint8_t pong[WEBSOCKET_CONTROL_MAX];
	struct liveness life;
	uint32_t probe;		 /* the number of the last one */
	uint64_t left;		 /* bytes left of a half written frame */
	uint32_t relayed;	 /* length of the message that is relayed */
	uint64_t fragment_left;	 /* bytes left of its frame */
	uint64_t received, sent; /* bytes since the last report */
};

/*
 * For the first message on a channel if it brought the client's socket, which
 * is fds[0]. The message is a u32 length, `initialize` of that length, and then
 * what the client sent after it. Returns 0 or -EBADMSG.
 */
int direct_begin(struct channel *ch, char *text, size_t len);

/*
 * Asks for a sign of life; channel_events.alive answers. If there is none
 * within PROBE_MS, the client is given back with a reason to close it.
 */
void direct_probe(struct channel *ch, uint32_t number);

/* Does nothing if ch->direct is NULL. The functions below need it. */
void direct_free(struct channel *ch);

/* Reads once from the client and takes what comes. Always returns -EAGAIN. */
ssize_t direct_read(struct channel *ch);

/*
 * The client no longer takes what is written. Drops the output; the end of the
 * connection follows.
 */
void direct_lose(struct channel *ch);

/*
 * Called before each write. Before the first one, tells the front-end that the
 * client gets an answer, because the runner may be stopped in between.
 */
void direct_writing(struct channel *ch);

/* Called after n bytes at p were written. */
void direct_written(struct channel *ch, const uint8_t *p, size_t n);

/* Called when everything is written. */
void direct_drained(struct channel *ch);

/*
 * Writes the header of a composed message, or makes fragments of it. The
 * message follows WEBSOCKET_HEADER_MAX bytes of room at ch->frame_at.
 */
void direct_finish_message(struct channel *ch, struct buf *out, size_t len);

/* Puts the next bytes of a message of d->relayed bytes, of which
 * ch->relay_left are missing, and the headers of its frames. */
void direct_relay(struct channel *ch, const void *p, size_t n);

/* --- what the channel and this transport share -------------------------- */

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

/* Drops what is not written yet. */
void channel_discard_output(struct channel *ch);

/*
 * Delivers the message to the owner, with the descriptor that came with its
 * frame.
 */
void channel_deliver(
    struct channel *ch, uint32_t header, char *text, size_t len);

/* Starts or stops reading, depending on the state of the channel. */
void channel_review_reading(struct channel *ch);
