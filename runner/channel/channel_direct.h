/* SPDX-License-Identifier: ISC */
/*
 * The session channel of a client that the front-end handed over (doc/design.md
 * section 3). The same messages go by WebSocket over the client's own socket.
 * The channel's socket remains for reports to the front-end, which closes the
 * client's connection in the end. The front-end asks for the client back by
 * ending what it sends.
 */
#ifndef CHANNEL_DIRECT_H
#define CHANNEL_DIRECT_H

#include "channel_parts.h"
#include "websocket.h"

struct control_client;
struct control_session_config;

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
	int64_t pinged_ms; /* oldest unanswered ping, as now_ms(); 0: none */
	uint64_t left;	   /* bytes left of a half written frame */
	uint64_t received, sent; /* bytes since the last report */
};

/*
 * For the first message on a channel if it brought the client's socket, which
 * is fds[0]. The message is a u32 length, `initialize` of that length, and then
 * what the client sent after it. Returns 0 or -EBADMSG.
 */
int direct_begin(struct channel *ch, char *text, size_t len);

/* Does nothing if ch->direct is NULL. The functions below need it. */
void direct_free(struct channel *ch);

/* Reads once from the client and takes what comes. Always returns -EAGAIN. */
ssize_t direct_read(struct channel *ch);

/*
 * Gives the client's socket back to the front-end, which closes it with that
 * code. 0: the client is gone. The owner's `ended` is called.
 */
void direct_end(struct channel *ch, uint16_t close_code, const char *reason);

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

/* --- channel_websocket.c: its frames ------------------------------------ */

/* Takes frames from p, as many as may be taken now. Returns the bytes taken. */
size_t direct_take(struct channel *ch, uint8_t *p, size_t n);

/*
 * Writes the header of a composed message. The message follows
 * WEBSOCKET_HEADER_MAX bytes of room at ch->frame_at.
 */
void direct_finish_frame(struct channel *ch, struct buf *out, size_t len);

/* Writes the header of a message whose length is known in advance. */
void direct_begin_frame(struct buf *out, size_t len);

/* Queue a control frame, unless the channel is congested. */
void direct_ping(struct channel *ch);
void direct_pong(struct channel *ch);

/* Returns the length in bytes of the frame that begins at p. */
uint64_t direct_frame_bytes(const uint8_t *p);

#endif
