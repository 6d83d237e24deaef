/* SPDX-License-Identifier: ISC */
/*
 * What the files of libexecd-client share: the handle, and which file does what
 * with it. client.c is the loop and keeps requests and their answers, link.c
 * the life of the connection, lease.c what comes before it with an ask:
 * URL, wire.c converts bytes and messages, remote_process.c delivers events.
 */
#pragma once

#include "execd-client.h"
#include "jsonrpc.h"
#include "queue.h"
#include "stream.h"
#include "upgrade.h"

/* The largest message that a server may send, and that we may send
 * (doc/protocol.md section 1.3), in bytes. */
#define CLIENT_RECEIVE_MAX WEBSOCKET_MESSAGE_MAX
/* What servers of Codex take in one frame. */
#define CLIENT_SEND_MAX (16u << 20)
/* The size of one read. */
#define CLIENT_READ_BYTES (128u << 10)
/* The most bytes of the answer to the upgrade, with its headers. */
#define CLIENT_UPGRADE_MAX (16u << 10)

enum link_state {
	LINK_NONE,	 /* no connection */
	LINK_WAIT,	 /* waits until retry_ms */
	LINK_ASK,	 /* waits for the answer of an ask: program */
	LINK_CONNECT,	 /* connect(2) is under way */
	LINK_TLS,	 /* the TLS handshake is under way */
	LINK_UPGRADE,	 /* waits for the answer to the HTTP upgrade */
	LINK_INITIALIZE, /* waits for the answer to initialize */
	LINK_READY,
};

struct call {
	TAILQ_ENTRY(call) link; /* client.calls, oldest first */
	uint64_t id;
	struct buf message;
	unsigned int flags;
	unsigned int sent;		   /* how many times */
	bool in_flight;			   /* sent on this connection */
	const struct execd_process *owner; /* freed: the answer is dropped */
	execd_answer_fn *fn;
	void *arg;
};
TAILQ_HEAD(call_list, call);
TAILQ_HEAD(process_list, execd_process);

struct lease {
	pid_t pid;    /* 0: there is no program */
	int to, from; /* its standard input and output; -1: closed */
	int ended;    /* a pidfd; readable when the program has ended */
	struct buf line;
};

struct execd_client {
	struct execd_options options; /* the strings are owned */
	struct endpoint endpoint;
	struct stream_config stream_config;
	char server_key[STREAM_KEY_MAX]; /* "": none was compared */
	int verdict; /* of authorities about it, for execd_server_key() */

	enum execd_state state;
	enum execd_failure failure;
	char *error; /* owned; NULL: no error yet */
	char *session_id;
	char *info_text; /* owned; the answer to initialize */
	struct json_doc info;
	bool has_info;
	bool paused;
	bool watching; /* the server confirmed that this client only watches */
	bool ended;    /* the client ended its session: none can be resumed */

	/* link.c */
	enum link_state link;
	struct stream stream;
	int64_t deadline_ms; /* of this step of connecting */
	int64_t retry_ms;    /* next attempt, or next initialize; 0: none */
	int64_t first_ms;    /* CONNECTING: when it began */
	bool may_pass;	 /* nothing has started, and another try may succeed */
	int64_t lost_ms; /* when the connection was lost; 0: it is up */
	/* how long the server keeps the session then; 0: it does not say */
	unsigned int detached_ttl_ms;
	int64_t heard_ms;   /* when the last byte came */
	int64_t alive_ms;   /* when one came, or was seen to be taken */
	bool asked;	    /* a ping was sent after the last byte came */
	int64_t doubted_ms; /* when nothing of that was seen; 0: not yet */
	bool behind;	    /* bytes waited to be taken at the last look */
	unsigned int attempts;
	size_t address; /* index of the address that is tried */
	char accept[WEBSOCKET_ACCEPT_LEN + 1]; /* what the server must answer */
	/* The cookie of the last connection that had the session, and that of
	 * this one, which counts when it has the session. "": none. */
	char cookie[UPGRADE_COOKIE_MAX], offered[UPGRADE_COOKIE_MAX];
	/* When a proxy first said that it has no host, of those that said so
	 * without a break; 0: the last attempt ended in another way. */
	int64_t gone_ms;
	bool said_gone;	   /* this attempt ended so */
	bool session_over; /* the server said so when it closed */
	bool expired;	   /* likewise, of the token: it could only resume */
	char *taken_by;	   /* owned; who took the session over; NULL: nobody */
	uint64_t taken;	   /* stream_taken() at the last look */

	/* lease.c */
	struct lease lease;
	char *lease_how; /* owned; how its program ended */
	int64_t
	    lease_over_ms; /* when it ended; 0: it is held, or there is none */

	/* wire.c */
	struct websocket_parser parser;
	uint8_t *bytes; /* owned; CLIENT_READ_BYTES, read but not parsed */
	struct buf in;	/* a partial message, or the answer to the upgrade */
	struct buf out; /* bytes to send */
	size_t out_at;	/* how many of them were sent */

	struct call_list calls;
	uint64_t next_id;
	struct process_list processes;
	char nonce[17]; /* makes this handle's ids unique */
};

/* client.c */
void client_set_state(struct execd_client *c, enum execd_state state);
/* Sets the sentence that execd_client_error() returns. */
void client_set_error(struct execd_client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Ends the client: the state becomes EXECD_OVER, and all processes and requests
 * fail. */
void client_over(struct execd_client *c, enum execd_failure failure);
/* Checks the URL and the token and loads what TLS needs. Returns 0, or -EINVAL
 * with the error set. */
int client_check_server(struct execd_client *c);

/* link.c */
void link_begin(struct execd_client *c);
void link_prepare(
    const struct execd_client *c, struct pollfd fds[2], size_t *n);
/* Returns when link_timeout() must run, on the clock of now_ms(); INT64_MAX:
 * never. */
int64_t link_next_ms(const struct execd_client *c);
void link_events(struct execd_client *c, const struct pollfd *fds, size_t n);
void link_timeout(struct execd_client *c);
/* Handles the answer to initialize. */
void link_initialized(struct execd_client *c, const struct rpc_message *m,
    const char *text, size_t len);
void link_close(struct execd_client *c);
/* The server is there: a byte came, or nobody listened until now. */
void link_heard(struct execd_client *c);
/* A step failed, and the error is set: tries again later, or ends the
 * client. */
void link_failed(struct execd_client *c, enum execd_failure failure);

/* lease.c */
void lease_init(struct lease *l);
/* Closes its input, which tells the program to end. */
void lease_release(struct lease *l);
/* Ends the program, and waits for it. */
void lease_end(struct lease *l);
/* Starts the program of an ask: URL. */
void link_ask(struct execd_client *c);
bool link_lease_is_over(const struct execd_client *c);
/* Ends the client because the lease is over. */
void link_lease_failed(struct execd_client *c);
/* Fills in what to poll for while there is a lease: at most 2 entries in
 * LINK_ASK, else 1. Returns the number. */
size_t link_lease_prepare(const struct execd_client *c, struct pollfd *fds);
/* Reads the answer, or sees that the lease is over. */
void link_lease_events(struct execd_client *c);
/* Returns when the client ends behind a lease that is over; INT64_MAX:
 * never. */
int64_t link_lease_at(const struct execd_client *c);

/* wire.c */
void wire_reset(struct execd_client *c);
void wire_send(struct execd_client *c, const char *text, size_t len);
void wire_control(struct execd_client *c, enum websocket_opcode opcode,
    const void *data, size_t len);
bool wire_pending(const struct execd_client *c);
/* Both return 0, or -errno with the error set. The caller then ends the link.
 * -EBADMSG means that the peer is not an exec-server. */
int wire_flush(struct execd_client *c);
int wire_read(struct execd_client *c);
/* A program may write something before the protocol and not end its line, such
 * as a question for a password. This adds those words to the error. */
void wire_add_said(struct execd_client *c);

/* client.c */
void calls_answer(struct execd_client *c, const struct rpc_message *m,
    const char *text, size_t len);
/* Handles the loss of the connection: requests that may not be repeated
 * fail. */
void calls_lost(struct execd_client *c);
void calls_resume(struct execd_client *c);
/* Begins the params object. */
void calls_begin(struct json_text *t);
/* Ends the params object and sends the request for process p with
 * EXECD_REPEAT. */
void calls_send(struct execd_process *p, const char *method,
    struct json_text *t, execd_answer_fn *fn, void *arg);
/* Drops the answers to p's requests. */
void calls_orphan(const struct execd_process *p);

/* --- remote_process.c and remote_process_control.c ---------------------- */

/*
 * The events of a process. Each is delivered once and in the order of its
 * number (doc/protocol.md section 7.7), even across several connections.
 */

/* The most bytes of events that are held while missing ones are read. */
#define PROCESS_HELD_MAX (64u << 20) /* bytes */

enum event_kind { EVENT_OUTPUT, EVENT_EXITED, EVENT_CLOSED };

struct event {
	TAILQ_ENTRY(event) link; /* execd_process.held, by number */
	uint64_t seq;
	enum event_kind kind;
	enum execd_stream stream;
	uint8_t *data; /* owned */
	size_t len;
	struct execd_exit how;
};
TAILQ_HEAD(event_list, event);

struct execd_process {
	TAILQ_ENTRY(execd_process) link; /* client.processes */
	struct execd_client *client;
	char *id; /* owned */
	struct execd_process_events events;
	void *arg;
	bool started;	     /* the server has it */
	bool pulls;	     /* its output waits until it is read */
	bool holds;	     /* or until it is told what has arrived, */
	uint64_t told_bytes; /* which is this */
	bool ended;	     /* closed or failed: no event follows */
	bool exited;
	struct execd_exit read_exit; /* what process/read reported */
	bool read_closed; /* it was also closed; kept while details are asked */
	bool reading;	  /* process/read or process/wait is under way */
	uint64_t last;	  /* number of the last delivered event */
	uint64_t bytes;	  /* of output, delivered or known to be lost */
	struct event_list held;
	size_t held_bytes;
	uint64_t writes;
	int64_t shm_bytes;	   /* of its sandbox's /dev/shm; 0: unknown */
	execd_answer_fn *answered; /* gets the answer to the start; NULL */
	void *answered_arg;
	unsigned int busy; /* callers that deliver its events now */
	bool freed;	   /* freed by a callback while busy */
};

/* Returns true if the message was a notification for processes, and handles
 * it. */
bool process_notification(struct execd_client *c, const struct rpc_message *m);
void process_resume_all(struct execd_client *c);
void process_fail_all(struct execd_client *c);

/* Begins params with "processId"; calls_send() ends them. */
void process_begin(const struct execd_process *p, struct json_text *t);

/* Keep the process in memory while its events are delivered: a callback may
 * free it. */
void process_enter(struct execd_process *p);
void process_leave(struct execd_process *p);

/* Asks the server for the events after p->last. */
void process_read(struct execd_process *p);
/* Delivers the last event: the process was not started, or its state is
 * unknown. */
void process_fail(struct execd_process *p, int code, const char *message);
