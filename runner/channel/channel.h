/* SPDX-License-Identifier: ISC */
/*
 * The session channel: whole messages in both directions over a stream socket,
 * with back-pressure (doc/design.md section 3). The runner knows its client
 * only through it. If the front-end hands a client over, the channel speaks
 * WebSocket with the client directly (channel_direct.h).
 *
 * Messages sent during one turn of the event loop leave in one write.
 */
#pragma once

#include <event2/event_struct.h>

#include "base.h"
#include "json.h"

struct control_session_config;
struct direct;
struct event_base;
struct channel;
struct intake;
struct spool;

#define CHANNEL_FDS_MAX 4

/* Functions of the owner; each of them may close the channel. */
struct channel_events {
	/*
	 * A whole message came. The channel owns the text; it is valid during
	 * the call.
	 */
	void (*message)(struct channel *ch, char *text, size_t len);
	/*
	 * A long message has begun; text is its first part. The returned intake
	 * receives the rest and belongs to the channel. If NULL is returned or
	 * there is no function, the message is kept in memory.
	 */
	struct intake *(*long_message)(
	    struct channel *ch, const char *text, size_t len);
	/* Everything is written after the channel was congested. */
	void (*drained)(struct channel *ch);
	/* The peer will send no more. Answers may still be sent. */
	void (*ended)(struct channel *ch);
	/* There is a sign of life of a client that was handed over, as
	 * direct_probe() asked. May be NULL. */
	void (*alive)(struct channel *ch, uint32_t number);
	/*
	 * A frame broke the rules (-EBADMSG, -EMSGSIZE), or an error occurred.
	 * The channel is of no more use.
	 */
	void (*broken)(struct channel *ch, int err);
};

struct channel {
	const struct channel_events *on;
	void *owner;
	int in_fd, out_fd; /* equal for a socket; -1: closed */
	struct event in_event, out_event;
	uint32_t max_message; /* bytes of an incoming message */
	struct buf in;	      /* incoming frame, not complete yet */
	struct buf parts;  /* incoming message, not complete yet, as a frame */
	struct buf *whole; /* the frame now delivered, if in its own buffer */
	struct intake *intake; /* used instead of `parts`; or NULL */
	uint32_t intake_bytes; /* bytes it has taken */
	bool looked;	       /* no intake takes what is in `parts` */
	struct spool *spool;   /* of the message being delivered; or NULL */
	bool takes_fds; /* in a file helper: the runner sends descriptors */
	int fds[CHANNEL_FDS_MAX]; /* received, for frames not delivered yet */
	size_t nfds;
	struct buf out;	     /* frames not written yet */
	size_t out_at;	     /* bytes of `out` already written */
	size_t frame_at;     /* where the frame being composed begins */
	struct buf held;     /* messages composed during a relayed frame */
	uint32_t relay_left; /* bytes left of the relayed frame */
	/*
	 * The terms of a handover, if the first message may bring the client's
	 * own socket; otherwise NULL.
	 */
	const struct control_session_config *hand_over;
	bool proxied;	       /* that socket is a trusted proxy's */
	struct direct *direct; /* NULL: no client was handed over */
	bool tagged;	       /* in a helper: frames sent carry `tag` */
	uint32_t tag;
	bool want_write; /* the peer takes no more now */
	bool reading;
	bool paused; /* by the owner */
	bool ended;
};

/*
 * Takes the descriptors over and starts reading. in_fd and out_fd may be the
 * same socket.
 */
void channel_open(struct channel *ch, struct event_base *base, int in_fd,
    int out_fd, uint32_t max_message, const struct channel_events *on,
    void *owner);
void channel_close(struct channel *ch);

/* Reads in this turn, because data is there already. */
void channel_look(struct channel *ch);
bool channel_is_open(const struct channel *ch);

/*
 * Moves the frame of the message being delivered, with its header, into *frame,
 * which the caller then owns. The text keeps its address. Returns false if the
 * frame is not in a buffer of its own.
 */
bool channel_take_frame(
    struct channel *ch, const char *text, struct buf *frame);

/*
 * Returns the content of the message being delivered; the caller owns it then.
 * NULL: the content is in the text, as usual.
 */
struct spool *channel_take_spool(struct channel *ch);

/*
 * channel_begin() begins a message. The JSON value must be complete when
 * channel_send() is called.
 */
struct json_writer channel_begin(struct channel *ch);
void channel_send(struct channel *ch);

/*
 * Passes on a frame that somebody else composed, in pieces as they come: calls
 * of channel_relay() with `len` bytes in total must follow. Messages composed
 * meanwhile are held back until the frame is complete.
 */
void channel_relay_begin(struct channel *ch, uint32_t len);
void channel_relay(struct channel *ch, const void *p, size_t n);

/* Blocks until everything is written; for a program with nothing else to do. */
void channel_write_all(struct channel *ch);

/* Stops taking messages until it is called with false. */
void channel_pause(struct channel *ch, bool paused);

/* Writes what was composed. Called once in each turn of the event loop. */
void channel_flush(struct channel *ch);

/*
 * Tells whether the peer reads too slowly, so that whatever produces output
 * must pause.
 */
bool channel_congested(const struct channel *ch);

/* Tells whether nothing is left to write. */
bool channel_drained(const struct channel *ch);

/* Stops taking messages; composed messages are still written. */
void channel_stop_reading(struct channel *ch);
