/* SPDX-License-Identifier: ISC */
/*
 * What the files of libexecd-client share: the handle and who does what with
 * it. client.c is the loop, link.c the life of the connection, wire.c bytes
 * and messages, calls.c requests and their answers, remote_process.c events.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "buf.h"
#include "execd-client.h"
#include "json.h"
#include "jsonrpc.h"
#include "queue.h"
#include "stream.h"
#include "url.h"
#include "websocket.h"

/* What a server may send at once; and what we may (doc/protocol.md 1.3). */
#define CLIENT_RECEIVE_MAX WEBSOCKET_MESSAGE_MAX
#define CLIENT_SEND_MAX	   WEBSOCKET_FRAME_MAX
/* Read at once. */
#define CLIENT_READ_BYTES (128u << 10)
/* Of the answer to the upgrade, headers and all. */
#define CLIENT_UPGRADE_MAX (16u << 10)

enum link_state {
	LINK_NONE,	 /* no connection */
	LINK_WAIT,	 /* until retry_ms */
	LINK_CONNECT,	 /* the kernel connects */
	LINK_TLS,	 /* handshake */
	LINK_UPGRADE,	 /* the answer to the HTTP upgrade is awaited */
	LINK_INITIALIZE, /* the answer to initialize */
	LINK_READY,
};

struct call {
	TAILQ_ENTRY(call) link; /* client.calls, oldest first */
	uint64_t id;
	struct buf message;
	unsigned int flags;
	unsigned int sent;		   /* how often */
	bool in_flight;			   /* sent on this connection */
	const struct execd_process *owner; /* its end takes the answer away */
	execd_answer_fn *fn;
	void *arg;
};
TAILQ_HEAD(call_list, call);
TAILQ_HEAD(process_list, execd_process);

struct execd_client {
	struct execd_options options; /* its strings are owned */
	struct endpoint endpoint;
	struct stream_config stream_config;

	enum execd_state state;
	enum execd_failure failure;
	char *error; /* owned; NULL: nothing was wrong yet */
	char *session_id;
	char *info_text; /* the answer to initialize */
	struct json_doc info;
	bool has_info;
	bool paused;
	bool watching; /* the server says so */

	/* link.c */
	enum link_state link;
	struct stream stream;
	int64_t deadline_ms; /* of this step of connecting */
	int64_t retry_ms;    /* LINK_WAIT, or initialize again; 0: no */
	int64_t lost_ms;     /* when the connection was lost; 0: it is there */
	int64_t heard_ms;    /* the last byte */
	int64_t ping_ms;     /* an unanswered ping went out; 0: none */
	unsigned int attempts;
	size_t address; /* of stream_config.addresses: the one being tried */
	char accept[WEBSOCKET_ACCEPT_LEN + 1]; /* what the server must say */

	/* wire.c */
	struct websocket_parser parser;
	uint8_t *bytes; /* CLIENT_READ_BYTES, as they were read */
	struct buf in;	/* a message, or the answer to the upgrade */
	struct buf out; /* bytes to send */
	size_t out_at;	/* sent of them */

	struct call_list calls;
	uint64_t next_id;
	struct process_list processes;
	char nonce[17]; /* makes ids of this handle its own */
};

/* client.c */
void client_set_state(struct execd_client *c, enum execd_state state);
/* Keeps the sentence as execd_client_error(). */
void client_set_error(struct execd_client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Nothing more will come: the state is EXECD_OVER, whoever waits is told. */
void client_over(struct execd_client *c, enum execd_failure failure);

/* link.c */
void link_begin(struct execd_client *c);
void link_prepare(
    const struct execd_client *c, struct pollfd fds[2], size_t *n);
/* When link_timeout() must run, in now_ms(); INT64_MAX: never. */
int64_t link_next_ms(const struct execd_client *c);
void link_events(struct execd_client *c, const struct pollfd *fds, size_t n);
void link_timeout(struct execd_client *c);
/* The answer to initialize came. */
void link_initialized(struct execd_client *c, const struct rpc_message *m,
    const char *text, size_t len);
/* The connection is of no use any more; error is set. */
void link_lost(struct execd_client *c);
void link_close(struct execd_client *c);

/* wire.c */
void wire_reset(struct execd_client *c);
void wire_send(struct execd_client *c, const char *text, size_t len);
void wire_control(struct execd_client *c, enum websocket_opcode opcode,
    const void *data, size_t len);
bool wire_pending(const struct execd_client *c);
/* Both: 0, or -errno with the error set, and then the link is lost; -EBADMSG:
 * the peer is no exec-server. */
int wire_flush(struct execd_client *c);
int wire_read(struct execd_client *c);

/* calls.c */
void calls_answer(struct execd_client *c, const struct rpc_message *m,
    const char *text, size_t len);
/* The connection is gone: ends the calls that may not be repeated. */
void calls_lost(struct execd_client *c);
void calls_resume(struct execd_client *c);
void calls_fail_all(struct execd_client *c);
bool calls_any(const struct execd_client *c);
/* Begins params: the writer is inside the object. */
void calls_begin(struct buf *b, struct json_writer *w);
/* Ends them and asks, for a process; always EXECD_REPEAT. */
void calls_send(struct execd_process *p, const char *method, struct buf *b,
    struct json_writer *w, execd_answer_fn *fn, void *arg);
/* Nobody wants the answers of p's calls any more. */
void calls_orphan(const struct execd_process *p);

/* remote_process.c */
struct execd_client *process_client(const struct execd_process *p);
/* Was it a notification of a process? */
bool process_notification(struct execd_client *c, const struct rpc_message *m);
void process_resume_all(struct execd_client *c);
void process_fail_all(struct execd_client *c);

#endif
