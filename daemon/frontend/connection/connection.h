/* SPDX-License-Identifier: ISC */
/*
 * A client's connection, from its first byte to the end of its session channel.
 * It holds no state of the session: after a resume, everything is in the
 * runner.
 *
 *	client ==uplink==> runner		client <==downlink== runner
 *
 * Both links stream. What one side does not accept yet is kept here, within
 * limits, and the other side is not read meanwhile.
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
	CONN_TLS,	     /* TLS handshake */
	CONN_HTTP,	     /* reading the head of a request */
	CONN_OPERATING,	     /* waiting for the broker's counters */
	CONN_AUTHENTICATING, /* waiting for the broker's verdict */
	CONN_OPEN,	     /* messages, but no session yet */
	CONN_ATTACHING, /* initialize was read; in the same turn follows: */
	CONN_STARTING,	/* waiting for the broker or the runner's answer */
	CONN_ATTACHED,
	CONN_LEAVING, /* session ended; waiting for the reason */
	CONN_CLOSING, /* closing; the client gets the rest */
	CONN_GONE,    /* no client; the session still gets the rest */
};

struct connection {
	struct table_node node; /* connections, by number */
	uint32_t number;
	uint32_t listener; /* control_listener.id */
	enum connection_state state;
	SSL *tls;	       /* NULL: no TLS */
	struct source *source; /* NULL: exempt, or no IP address */
	bool has_slot;	       /* holds one of the slots (admission.h) */
	bool stdio;	       /* lines on stdio instead of frames */
	bool operate;	       /* came through the operator's listener */
	bool resuming;	       /* STARTING: resume, or watch */
	bool watching;	       /* STARTING: only watch */
	bool hand_over;	       /* the listener permits handing over */
	bool handed_off;       /* its runner has the client (handoff.h) */
	bool returned;	       /* the runner has let go of the client */
	bool hung_up;	       /* the client hung up while the runner had it */
	int unread;	/* hung_up: unread bytes at the last look, or -1 */
	bool unix_peer; /* the broker asks the kernel for the user */
	bool read_wants_write; /* TLS must write before it can read */
	bool granted;	       /* the broker granted it; CLOSE is owed */
	bool close_sent;       /* BROKER_REQ_CLOSE was sent, once */
	bool in_always;	       /* a file, which epoll cannot watch */
	bool input_ended;      /* stdio: input has ended */
	bool reading, channel_reading;
	bool want_pong;	     /* a pong is due, between two frames */
	bool shut;	     /* nothing more will be written */
	bool awaiting;	     /* the broker still owes a verdict */
	bool channel_ended;  /* the runner closed the channel */
	bool channel_failed; /* our own error, not the runner's */
	bool dead;	     /* freed at the end of this turn */
	bool collecting;     /* a message is collected in `message` */
	bool in_pieces;	     /* the current message is relayed in pieces */
	bool pieces;	     /* and some pieces have been sent */
	uint8_t pong_len;
	int in_fd, out_fd; /* equal for a socket; -1: closed */
	int channel_fd;	   /* -1: no channel */
	struct event in_event, out_event, channel_in, channel_out;
	struct event timer; /* its meaning depends on the state */
	uint8_t grant[CONTROL_GRANT_BYTES];
	char peer[CONTROL_PEER_MAX];
	/* ATTACHING: session to resume or watch */
	char wanted[CONTROL_SESSION_ID_MAX];
	int64_t asked_ms;  /* STARTING: when initialize was read */
	bool head_only;	   /* OPERATING: the request was HEAD */
	int64_t pinged_ms; /* time of the oldest unanswered ping, or 0 */
	struct websocket_parser parser;
	struct reclaim *reclaim; /* owned; handed_off: close when reclaimed */
	struct rpc_id initialize_id; /* ATTACHING, STARTING */
	struct buf initialize;	     /* same states: the text of that message */
	/* handed_off: how many bytes after initialize are in `initialize`
	 * too */
	size_t behind;
	/* HTTP head, then bytes kept for later; handed_off: reports */
	struct buf head;
	struct buf message;	 /* the message that is being collected */
	struct pending uplink;	 /* to the runner */
	struct pending downlink; /* to the client */
	uint8_t frame_header[FRAME_HEADER_BYTES];
	uint8_t frame_header_len;
	uint32_t frame_left; /* bytes left of the runner's current frame */
	uint8_t pong[WEBSOCKET_CONTROL_MAX];
	struct connection *next_dead;
};

/* Makes a connection and takes the descriptors over. TLS, if any, must be set
 * before it reads. */
struct connection *connection_new(
    uint32_t listener, int in_fd, int out_fd, const char *peer);
struct connection *connection_find(uint32_t number);
unsigned connection_count(void);

/* Reads from the client, like read(2). */
ssize_t connection_recv(struct connection *c, void *p, size_t n);

/* Gives the connection's slot back, so that another one may come in. Called
 * when its credential was accepted, or when it is being closed. */
void connection_leave_slot(struct connection *c);

/* Adds a penalty to its source. */
void connection_penalise(struct connection *c, enum offence offence);

/* Closes all connections and tells their clients. */
void connection_end_all(void);

/* All runners have ended: closes the connections that were reclaimed. */
void connection_return_all(void);

/* Removes the connection when the client, the session and the broker are done
 * with it. */
void connection_release(struct connection *c);

/* Frees the connections that were removed in this turn of the event loop. */
void connection_reap(void);

/* Sets the connection's only timer, in milliseconds; 0 stops it. */
void connection_timer(struct connection *c, uint32_t ms);

/* Start or stop reading from the client or from the runner. */
void connection_read_client(struct connection *c, bool on);
void connection_read_runner(struct connection *c, bool on);

/* Wait until the client or the runner can take more. A side that cannot be
 * watched is ended, so that nothing waits for ever. */
void connection_await_client(struct connection *c);
void connection_await_runner(struct connection *c);

/*
 * Writes to the client, and keeps what cannot be written now. iov may be
 * changed. Returns false if the client is gone; connection_client_gone() was
 * called then.
 */
bool connection_write(struct connection *c, struct iovec *iov, int n);

/* Sends a whole message to the client, as a frame or a line. */
void connection_send(struct connection *c, const void *text, size_t len);

/* The client has gone or its transport failed. */
void connection_client_gone(struct connection *c);

/* Ends the connection when everything pending is written. */
void connection_finish(struct connection *c);

/* Returns how many bytes of a reason fit into a close frame. Never cuts a
 * character. */
size_t connection_reason_len(const char *reason);

/* Closes the connection with this code and reason. The session, if any, is
 * detached at once. */
void connection_close(struct connection *c, uint16_t code, const char *reason);

/* The session channel has ended. The broker is asked for the reason. */
void connection_channel_ended(struct connection *c);

/* Reads at most `room` bytes from the session channel. Returns 0 if there are
 * none now or if the channel has ended. */
size_t connection_read_channel(struct connection *c, void *p, size_t room);

/* Makes a session channel. Returns the runner's end, which is the caller's, or
 * -errno. */
int connection_attach(struct connection *c);

/* Removes the channel, whose other end nobody received. */
void connection_unattach(struct connection *c);

/* Closes the channel, if there is one. */
void connection_drop_channel(struct connection *c);

/* Shuts a socket down that the kernel does not watch, and reports its end as an
 * event. Otherwise its peer would wait for ever. */
void connection_hear_end(int fd, struct event *ev);

/* The broker has given the reason why the session channel ended. */
void connection_on_closed(
    struct connection *c, enum channel_end end, const char *reason);

#endif
