/* SPDX-License-Identifier: ISC */
/*
 * A client's connection: from its first byte to the end of its session
 * channel. It holds no session state: a resumed session finds everything in
 * its runner.
 *
 *	client ==uplink==> runner		client <==downlink== runner
 *
 * Both links stream: what one side does not take is kept here (bounded), and
 * then the other side is not read.
 */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event_struct.h>
#include <sys/uio.h>

#include "buf.h"
#include "control.h"
#include "frame.h"
#include "jsonrpc.h"
#include "pending.h"
#include "source.h"
#include "table.h"
#include "tls.h"
#include "websocket.h"

enum connection_state {
	CONN_TLS,	     /* shaking hands */
	CONN_HTTP,	     /* collecting a request head */
	CONN_OPERATING,	     /* the broker is asked for its counters */
	CONN_AUTHENTICATING, /* the broker is asked */
	CONN_OPEN,	     /* messages, but no session */
	CONN_ATTACHING,	     /* initialize was taken; in this turn: */
	CONN_STARTING,	     /* the broker is asked, its runner answers */
	CONN_ATTACHED,
	CONN_LEAVING, /* the session is gone, the broker says why */
	CONN_CLOSING, /* last words to the client */
	CONN_GONE,    /* no client; the session is still told */
};

struct connection {
	struct table_node node; /* connections, by number */
	uint32_t number;
	uint32_t listener; /* the broker's number */
	enum connection_state state;
	SSL *tls;		    /* NULL: none */
	struct source *source;	    /* NULL: exempt, or no IP address */
	bool has_slot;		    /* of those without a credential */
	bool stdio;		    /* lines instead of frames */
	bool operate;		    /* came by the operator's listener */
	bool resuming;		    /* STARTING: to a session there was */
	bool watching;		    /* STARTING: only to watch */
	bool hand_over;		    /* its listener permits that */
	bool handed_off;	    /* its runner has it (handoff.h), */
	bool returned;		    /* or has let go of it; */
	bool hung_up;		    /* the client has, while it had it, */
	int unread;		    /* with so much not read yet, or -1 */
	bool unix_peer;		    /* the broker asks the kernel who it is */
	bool read_wants_write;	    /* TLS: before more can be read */
	bool granted;		    /* the broker holds something for us */
	bool close_sent;	    /* BROKER_REQ_CLOSE, at most once */
	bool in_always, out_always; /* files: epoll does not know them */
	bool input_ended;	    /* stdio: end of input */
	bool reading, channel_reading;
	bool want_pong;	     /* between two outgoing frames */
	bool shut;	     /* nothing more will be written */
	bool awaiting;	     /* the broker owes a verdict */
	bool channel_ended;  /* the runner hung up */
	bool channel_failed; /* an error of ours, not of the runner */
	bool dead;	     /* freed at the end of the turn */
	bool collecting;     /* a fragmented message is in `message` */
	bool in_pieces;	     /* so the message under way goes to the runner, */
	bool pieces;	     /* and some have gone */
	uint8_t pong_len;
	int in_fd, out_fd; /* the same for a socket; -1: closed */
	int channel_fd;	   /* -1: none */
	struct event in_event, out_event, channel_in, channel_out;
	struct event timer; /* deadline, ping, linger: by state */
	uint8_t grant[CONTROL_GRANT_BYTES];
	char peer[CONTROL_PEER_MAX];
	char wanted[CONTROL_SESSION_ID_MAX]; /* ATTACHING: resuming, watching */
	int64_t asked_ms;  /* STARTING: when initialize came */
	bool head_only;	   /* OPERATING: HEAD */
	int64_t pinged_ms; /* the oldest ping without an answer, or 0 */
	struct websocket_parser parser;
	struct reclaim *reclaim;     /* owned; `handed`: it is to be ended */
	struct rpc_id initialize_id; /* ATTACHING, STARTING */
	struct buf initialize;	     /* the same: the message itself */
	size_t behind;		     /* `handed`: bytes of what came behind
					it, there too */
	struct buf head;	     /* HTTP head, then bytes kept for later;
					`handed`: of reports */
	struct buf message;	     /* a message being put together */
	struct pending uplink;	     /* to the runner */
	struct pending downlink;     /* to the client */
	uint8_t frame_header[FRAME_HEADER_BYTES];
	uint8_t frame_header_len;
	uint32_t frame_left; /* of the runner's frame under way */
	uint8_t pong[WEBSOCKET_CONTROL_MAX];
	struct connection *next_dead;
};

/* Takes the descriptors over. Its TLS, if any, is to be set before it reads. */
struct connection *connection_new(
    uint32_t listener, int in_fd, int out_fd, const char *peer);
struct connection *connection_find(uint32_t number);
unsigned connection_count(void);

/* As read(2) of what the client sent. */
ssize_t connection_recv(struct connection *c, void *p, size_t n);

/* It has shown its credential, or hears no more than why not: another may come
 * in. */
void connection_leave_slot(struct connection *c);

/* Its source is held responsible. */
void connection_penalise(struct connection *c, enum offence offence);

/* Every connection is told and ended. */
void connection_end_all(void);

/* Every runner is at its end: those that were wanted back are here. */
void connection_return_all(void);

/* The object goes when neither side nor the broker needs it. */
void connection_release(struct connection *c);

/* Frees what died during this turn of the event loop. */
void connection_reap(void);

/* (Re)arms the connection's one timer; 0 disarms. */
void connection_timer(struct connection *c, uint32_t ms);

/* Reading from the client or from the runner, on or off. */
void connection_read_client(struct connection *c, bool on);
void connection_read_runner(struct connection *c, bool on);

/* To go on when the client or the runner takes more. Who cannot be waited for
 * is ended: nobody waits for ever. */
void connection_await_client(struct connection *c);
void connection_await_runner(struct connection *c);

/*
 * Writes to the client now or keeps the rest. iov is consumed. False: the
 * client is gone (connection_client_gone() was called).
 */
bool connection_write(struct connection *c, struct iovec *iov, int n);

/* A whole message for the client, framed. */
void connection_send(struct connection *c, const void *text, size_t len);

/* The client ended or broke its transport. */
void connection_client_gone(struct connection *c);

/* No more is written behind what is pending; then the connection ends. */
void connection_finish(struct connection *c);

/* So much of a reason has room in a close frame; never a part of a character.
 */
size_t connection_reason_len(const char *reason);

/* Ends the connection with this close code and reason; the session, if any,
 * is told at once. */
void connection_close(struct connection *c, uint16_t code, const char *reason);

/* The session channel is at its end: the broker is asked why. */
void connection_channel_ended(struct connection *c);

/* Bytes of the session channel, at most `room`; 0: none now, or no more, and
 * then it has ended. */
size_t connection_read_channel(struct connection *c, void *p, size_t room);

/* Makes a session channel. The runner's end of it, which is the caller's, or
 * -errno. */
int connection_attach(struct connection *c);

/* Nobody has got that end: there is no channel, as before. */
void connection_unattach(struct connection *c);

/* It is closed, if there is one. */
void connection_drop_channel(struct connection *c);

/* The kernel does not watch it: better an end than to wait for ever. */
void connection_hear_end(int fd, struct event *ev);

/* The broker says why the session channel ended. */
void connection_on_closed(
    struct connection *c, enum channel_end end, const char *reason);

#endif
