/* SPDX-License-Identifier: ISC */
/*
 * The session channel: whole messages in both directions over a stream
 * socket, with back-pressure (doc/design.md section 3). The runner knows its
 * client only through this. A client that the front-end hands over is spoken
 * with directly, by WebSocket (channel_direct.h).
 *
 * What is sent during one turn of the event loop leaves in one write.
 */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "buf.h"
#include "json.h"

struct control_session_config;
struct direct;
struct event_base;
struct channel;
struct intake;
struct spool;

#define CHANNEL_FDS_MAX 4

/* Reactions of the owner; each may close the channel. */
struct channel_events {
	/* A whole message; the text is the channel's, valid for the call. */
	void (*message)(struct channel *ch, char *text, size_t len);
	/* The beginning of a long one. What is returned takes in the rest of
	 * it, and is the channel's. NULL, or no function: it is kept in memory.
	 */
	struct intake *(*long_message)(
	    struct channel *ch, const char *text, size_t len);
	/* Everything was written after it had been congested. */
	void (*drained)(struct channel *ch);
	/* The peer will send no more. Answers may still be sent. */
	void (*ended)(struct channel *ch);
	/* A frame that no peer may send, or an error: nothing goes any more. */
	void (*broken)(struct channel *ch, int err);
};

struct channel {
	const struct channel_events *on;
	void *owner;
	int in_fd, out_fd; /* the same for a socket; -1: closed */
	struct event in_event, out_event;
	uint32_t max_message;  /* bytes of an incoming message */
	struct buf in;	       /* an incoming frame that is not whole yet */
	struct buf parts;      /* an incoming message that is not, as a frame */
	struct buf *whole;     /* the frame of the message now delivered, if it
				  has a buffer of its own */
	struct intake *intake; /* instead of `parts`; or NULL */
	uint32_t intake_bytes; /* that it has taken */
	bool looked;	       /* what is in `parts` is for no intake */
	struct spool *spool;   /* of the message now delivered; or NULL */
	bool takes_fds;	       /* a file helper's, from its runner: */
	int fds[CHANNEL_FDS_MAX]; /* came, for frames not delivered yet */
	unsigned nfds;
	struct buf out;	     /* frames not written yet */
	size_t out_at;	     /* bytes of `out` that are written */
	size_t frame_at;     /* where the frame being composed begins */
	struct buf held;     /* composed while a relayed frame is under way */
	uint32_t relay_left; /* of that frame */
	/* Not NULL: the first message may bring the client's own socket, and
	 * these are the terms. */
	const struct control_session_config *hand_over;
	struct direct *direct; /* it did */
	bool tagged;	       /* each frame sent carries `tag`: a helper */
	uint32_t tag;
	bool want_write; /* the peer does not take more now */
	bool reading;
	bool paused; /* by the owner */
	bool ended;
};

/* Takes the descriptors over (in and out may be one socket) and starts
 * reading. */
void channel_open(struct channel *ch, struct event_base *base, int in_fd,
    int out_fd, uint32_t max_message, const struct channel_events *on,
    void *owner);
void channel_close(struct channel *ch);

/* Something is there already: it is read in this turn. */
void channel_look(struct channel *ch);
bool channel_is_open(const struct channel *ch);

/* The frame of a message that is being delivered, header in front, is the
 * caller's from now on, and the text stays where it is. False: it is in no
 * buffer of its own. */
bool channel_take_frame(
    struct channel *ch, const char *text, struct buf *frame);

/* The content of the message that is being delivered, the caller's from now
 * on; NULL: it is in the text, as usual. */
struct spool *channel_take_spool(struct channel *ch);

/* Composes one message: the writer's value is complete when channel_send()
 * is called. */
struct json_writer channel_begin(struct channel *ch);
void channel_send(struct channel *ch);

/*
 * Passes a frame on that somebody else composed, piece by piece as it comes:
 * `len` bytes follow in calls of channel_relay(). Messages composed meanwhile
 * are held back until it is complete.
 */
void channel_relay_begin(struct channel *ch, uint32_t len);
void channel_relay(struct channel *ch, const void *p, size_t n);

/* Waits until everything is written: for a program that does nothing else. */
void channel_write_all(struct channel *ch);

/* Takes no message until it is switched off again. */
void channel_pause(struct channel *ch, bool paused);

/* Writes what was composed; once per turn of the event loop. */
void channel_flush(struct channel *ch);

/* The peer reads slower than we write: pause whatever produces. */
bool channel_congested(const struct channel *ch);

/* Nothing is left to write. */
bool channel_drained(const struct channel *ch);

/* Stops taking messages; what was composed is still written. */
void channel_stop_reading(struct channel *ch);

#endif
