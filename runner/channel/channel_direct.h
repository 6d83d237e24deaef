/* SPDX-License-Identifier: ISC */
/*
 * The session channel: a client whose connection the front-end handed over
 * (doc/design.md section 3). The same messages go by WebSocket over the
 * client's own socket; the channel's is left for reports to the front-end,
 * which has the last word to the client, and for its wish to have it back: the
 * end of what it sends.
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
	struct event channel_event; /* it wants it back */
	struct event timer;	    /* ping; `recalled`: enough of waiting */
	bool lost;		    /* the client takes nothing any more, */
	bool was_full;		    /* and nobody was told yet */
	bool reclaimed;		    /* to be given back when all is written */
	bool over;		    /* given back */
	bool answered;
	bool want_pong; /* between two outgoing frames */
	uint8_t pong_len;
	uint8_t pong[WEBSOCKET_CONTROL_MAX];
	int64_t pinged_ms;	 /* the oldest ping without an answer, or 0 */
	uint64_t left;		 /* of the frame that is half written */
	uint64_t received, sent; /* since the last report */
};

/* The first message on a channel brought the client's socket, which is
 * fds[0]: the message is u32 length, `initialize` of that length, then what
 * the client sent behind it. 0, or -EBADMSG. */
int direct_begin(struct channel *ch, char *text, size_t len);

/* The rest is silent without ch->direct. */
void direct_free(struct channel *ch);

/* What one read of the client brings is taken. -errno as of recv(2). */
ssize_t direct_read(struct channel *ch);

/* The client's socket goes back to the front-end, to be closed with that code;
 * 0: the client is gone. The owner hears that it ended. */
void direct_end(struct channel *ch, uint16_t close_code, const char *reason);

/* The client does not take what is written; its end follows. */
void direct_lose(struct channel *ch);

/* Something is about to be written: whoever hears it first, the front-end
 * knows, though the runner may be stopped in between. */
void direct_writing(struct channel *ch);

/* These n bytes were written. */
void direct_written(struct channel *ch, const uint8_t *p, size_t n);

/* All is written. */
void direct_drained(struct channel *ch);

/* --- channel_websocket.c: its frames ------------------------------------ */

/* Takes frames from p, as far as they may be taken now; returns how far. */
size_t direct_take(struct channel *ch, uint8_t *p, size_t n);

/* The header of a message that was composed behind WEBSOCKET_HEADER_MAX bytes
 * of room at ch->frame_at. */
void direct_finish_frame(struct channel *ch, struct buf *out, size_t len);

/* The same for one whose length is known before. */
void direct_begin_frame(struct buf *out, size_t len);

/* Frames of our own, when there is no other under way. */
void direct_ping(struct channel *ch);
void direct_pong(struct channel *ch);

/* Bytes of the frame that begins at p. */
uint64_t direct_frame_bytes(const uint8_t *p);

#endif
