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
#pragma once

#include <event2/event_struct.h>

#include "base.h"
#include "frame.h"
#include "jsonrpc.h"
#include "liveness.h"
#include "source.h"
#include "table.h"
#include "tls.h"
#include "websocket.h"

/*
 * Bytes of a connection that wait: those that one side has not accepted yet,
 * and parts of messages that cannot be relayed piece by piece.
 */

/* Bytes that one side has not accepted yet. */
struct pending {
	struct buf buf;
	size_t at;
};

/* Writes iov to fd, or through TLS, unless bytes are pending already. What
 * cannot be written is kept. Returns 0 or -errno. */
int pending_write(
    struct pending *p, int fd, SSL *tls, struct iovec *iov, int n);

/* Writes pending bytes, as many as are accepted now. Returns 0 or -errno. */
int pending_flush(struct pending *p, int fd, SSL *tls);

static inline size_t
pending_bytes(const struct pending *p)
{
	return p->buf.len - p->at;
}

/*
 * Messages before a session, and lines, are collected in a buffer. No session
 * is charged for their memory, so all of them together have a limit.
 */

/* Appends to the message. Returns false if it is too long, or if all messages
 * together hold too much. */
bool collect(struct buf *message, const void *p, size_t len);

/* Returns the message, whose buffer is then the caller's. */
struct buf collect_take(struct buf *message);

/* Discards the message. */
void collect_drop(struct buf *message);

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
	CONN_DEAD,    /* freed at the end of this turn */
};

/* The broker's grant. It outlives the client, because the broker must be told
 * that the connection is over. */
enum grant_state {
	GRANT_NONE,	/* not asked for, or refused */
	GRANT_ASKED,	/* the broker owes a verdict */
	GRANT_HELD,	/* BROKER_REQ_CLOSE is owed */
	GRANT_RETURNED, /* BROKER_REQ_CLOSE was sent */
};

enum session_channel_fault {
	CHANNEL_WORKS,
	CHANNEL_FAILED, /* our own error, not the runner's */
	CHANNEL_ENDED,	/* the runner closed it */
};

/* The session channel, with both of its directions. */
struct session_channel {
	int fd; /* -1: none */
	bool reading;
	enum session_channel_fault fault;
	struct event in_event, out_event;
	struct pending uplink; /* to the runner */
	/* The runner's current frame */
	uint8_t header[FRAME_HEADER_BYTES];
	uint8_t header_len;
	uint32_t frame_left;	/* bytes left of it */
	uint64_t fragment_left; /* of these in the client's frame */
};

/* ATTACHING, STARTING: what the client asked for in its initialize. */
struct start {
	enum control_type request; /* BROKER_REQ_OPEN, _RESUME or _WATCH */
	char wanted[CONTROL_SESSION_ID_MAX]; /* session to resume or watch */
	bool take_over;			     /* from who has that session */
	int64_t asked_ms;		     /* when initialize was read */
	struct rpc_id id;
	struct buf initialize; /* the text of that message */
	/* After a handoff `initialize` also holds what came behind that
	 * message. This is the number of those bytes. */
	size_t behind;
};

/* ATTACHED: how the client's current message is relayed. */
enum message_relay {
	MESSAGE_WHOLE,
	MESSAGE_IN_PIECES,  /* no piece has been sent yet */
	MESSAGE_PIECE_SENT, /* at least one has */
};

enum input_state {
	INPUT_PAUSED,
	INPUT_READING,
	INPUT_ENDED, /* stdio: its end was read */
};

/* What a connection has from its listener, which may be closed meanwhile. */
struct listener_traits {
	uint32_t id; /* control_listener.id */
	enum listener_kind kind;
	struct frontend_listener keys;
	bool has_operators; /* /metrics needs a credential */
};

/*
 * Four things change independently of each other, so each has its own state:
 * the connection itself, with the data of its current state in a union; the
 * grant; the session channel; and, after a handoff, who holds the client
 * (handoff.c). Only connection_state.c changes `state` and begins and ends the
 * data in the union.
 */
struct connection {
	struct table_node node; /* connections, by number */
	uint32_t number;
	struct listener_traits listener;
	char peer[CONTROL_PEER_MAX];
	char *proxy; /* owned: a trusted one it came through; or NULL */
	char *ended; /* owned: why its runner is gone; or NULL */
	struct source *source; /* NULL: exempt, or no IP address */
	bool has_slot;	       /* holds one of the slots (admission.h) */

	enum connection_state state;
	union {
		struct {
			bool head_only; /* the request was HEAD */
		} operating;
		struct {
			struct buf upgrade; /* the reply, if it is granted */
		} authenticating;
		struct start start; /* ATTACHING, STARTING */
		struct {
			struct liveness life;
			uint32_t probe; /* the number of the last one */
			enum message_relay message;
		} attached;
		struct {
			/* The initialize that has no answer yet, if any. */
			struct rpc_id unanswered;
		} leaving;
		struct {
			bool shut; /* nothing more will be written */
		} closing;
	};
	struct event timer; /* its meaning depends on the state */

	enum grant_state grant_state;
	uint8_t grant[CONTROL_GRANT_BYTES];
	bool resume_only; /* its token has expired (VERDICT_RESUME) */

	struct session_channel channel;
	struct handoff *handoff; /* owned; NULL: the client is here */

	/* The client's side. These outlive the states in which they are filled:
	 * a reply may still be pending when its state is over. */
	int in_fd, out_fd; /* equal for a socket; -1: closed */
	SSL *tls;	   /* NULL: no TLS */
	struct event in_event, out_event;
	enum input_state input;
	bool in_always;	       /* a file, which epoll cannot watch */
	bool read_wants_write; /* TLS must write before it can read */
	struct buf kept;       /* bytes that were read and not handled yet */
	struct websocket_parser parser;
	struct buf message; /* the part that came of a message or line */
	struct {
		bool due; /* to be sent between two frames */
		uint8_t len;
		uint8_t payload[WEBSOCKET_CONTROL_MAX];
	} pong;
	struct pending downlink; /* to the client */

	struct connection *next_dead;
};

static inline bool
connection_is_stdio(const struct connection *c)
{
	return c->listener.kind == LISTENER_STDIO;
}

/* Transitions (connection_state.c). Each ends the data of the old state and
 * begins the data of the new one. */
void connection_to_http(struct connection *c);
void connection_to_operating(struct connection *c, bool head_only);
/* `upgrade` is taken over. */
void connection_to_authenticating(struct connection *c, struct buf *upgrade);
/* Returns the reply to the upgrade, which is the caller's. */
struct buf connection_to_open(struct connection *c);
/* `start` is taken over. */
void connection_to_attaching(struct connection *c, struct start *start);
void connection_to_starting(struct connection *c);
/* No session was started. Returns what was asked for, which is the caller's. */
struct start connection_back_to_open(struct connection *c);
void connection_to_attached(struct connection *c);
void connection_to_dead(struct connection *c);

void start_clear(struct start *start);

/* Makes a connection and takes the descriptors over, and `tls`, if any. */
struct connection *connection_new(const struct listener_traits *listener,
    int in_fd, int out_fd, SSL *tls, const char *peer);
struct connection *connection_find(uint32_t number);
unsigned connection_count(void);

/* Reads from the client, like read(2). */
ssize_t connection_recv(struct connection *c, void *p, size_t n);

/* Gives the connection's slot back, so that another one may come in. Called
 * when its credential was accepted, or when it is being closed. */
void connection_leave_slot(struct connection *c);

/* Adds a penalty to its source. */
void connection_penalise(struct connection *c, enum offence offence);

/* Closes all connections and tells their clients; while the front-end leaves,
 * only those that have a session. */
void connection_end_all(void);

/* The time of a front-end that leaves is over: tells the other clients. */
void connection_end_late(void);

/* Returns true if every client was told. */
bool connection_all_told(void);

/* The broker has ended: closes the connections that were reclaimed. */
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

/* The broker asks whether the client is still there. */
void connection_probe(struct connection *c, uint32_t number);

/* ATTACHED: looks for signs of life, and sets the timer. */
void connection_look(struct connection *c);

/* Closes the channel, if there is one. */
void connection_drop_channel(struct connection *c);

/* Tells the broker that the connection is over, if it holds a grant. */
void connection_return_grant(struct connection *c);

/* The broker has given the reason why the session channel ended. */
void connection_on_closed(
    struct connection *c, enum channel_end end, const char *reason);

/* --- relay.c ------------------------------------------------------------ */

/*
 * The relay between a client and its runner, over the two links of a connection
 * (connection.h). It does not look into messages.
 */

/* The most parts of one writev(2): headers, and pieces of the read buffer. */
#define RELAY_IOV_MAX 128

/* Read or write once, in one direction. */
void relay_read_client(struct connection *c);
void relay_read_runner(struct connection *c);
void relay_write_client(struct connection *c);
void relay_write_runner(struct connection *c);

/* Sends a complete message to the runner. */
void relay_forward(struct connection *c, const void *text, size_t len);

/* Sends bytes to the runner as they are, and keeps what it does not take now.
 * iov may be changed. */
void relay_write(struct connection *c, struct iovec *iov, int n);

/* Handles bytes that were kept before. */
void relay_take_kept(struct connection *c);

/* Tells whether a ping may be sent now. */
bool relay_may_ping(const struct connection *c);
void relay_ping(struct connection *c);

/* --- handshake.c -------------------------------------------------------- */

/*
 * The phases before a session: TLS, HTTP upgrade, authentication and
 * initialize.
 */

/* Continues the TLS handshake. */
void handshake_tls(struct connection *c);

/* Handles bytes while the connection is in its HTTP phase. */
void handshake_http(struct connection *c, const char *data, size_t len);

/* Begins a connection over stdio. It has no HTTP phase and asks for its verdict
 * at once. */
void handshake_stdio(struct connection *c);

/* Handles a whole JSON-RPC message while there is no session. */
void handshake_message(struct connection *c, char *text, size_t len);

/* ATTACHING: asks for the session. The runner answers the initialize that is
 * already in the channel, or the broker says why there is no session. */
void handshake_attach(struct connection *c);

/* The first bytes of the runner came: the session exists. */
void handshake_started(struct connection *c);

/* Handle answers of the broker. */
void handshake_verdict(struct connection *c, const struct control_verdict *v);
void handshake_refused(struct connection *c, const struct control_session *s);

/* Sends the metrics to an operator who waits for the broker's counters. */
void handshake_metrics(struct connection *c, const struct control_metrics *m);

/* --- handoff.c ---------------------------------------------------------- */

/*
 * Connections that were handed over to their runners (doc/design.md section 3).
 * Without TLS there is nothing for a relay to do once a session exists. The
 * runner then speaks WebSocket with the client itself. The front-end keeps the
 * client's socket, to close the connection properly, and the session channel,
 * on which the runner reports about the client.
 */

/* Call once, before the first connection. */
void handoff_init(void);

/* Hands the client over: its socket goes into the session channel, together
 * with its initialize and what it sent after that. Returns false if the client
 * stays here; its messages are then relayed. */
bool handoff_begin(struct connection *c);

/* Takes the client back, because no runner has received it. */
void handoff_refused(struct connection *c);

void handoff_free(struct handoff *h);

/* Returns true if the connection's timer is the handoff's: the runner has been
 * given some time. */
bool handoff_waits(const struct connection *c);

/* Reads reports of the runner. */
void handoff_read(struct connection *c);

/* The connection's timer: the runner has had enough time. */
void handoff_timeout(struct connection *c);

/* No runner has the client any more. If it was being reclaimed, closes it now
 * and returns true. */
bool handoff_return(struct connection *c);

/* The client is to be closed with this code and reason. Returns true if its
 * runner was asked to let go of it first; the connection is closed after
 * that. */
bool handoff_reclaim(struct connection *c, uint16_t code, const char *reason);

/* Stops watching whether the client hangs up. Call before the socket is closed,
 * because the runner may still have it open. */
void handoff_unwatch(const struct connection *c);
