/* SPDX-License-Identifier: ISC */
/*
 * A connection of the load client: WebSocket messages out and in.
 */
#pragma once

#include "base.h"
#include "load.h"
#include "websocket.h"

struct peer {
	struct load *load;
	struct stream stream;
	struct websocket_parser parser;
	struct buf whole; /* of a message that comes in pieces */
	struct buf out;
	bool waits;	   /* to write */
	bool paused;	   /* nothing is read */
	uint64_t received; /* bytes from the socket */
	size_t index;	   /* in load.peers */
	uint8_t mask[4];
	struct buf text; /* of the request that is being written */
};

/* Connects, upgrades, initializes; added to l->peers, which own it. */
struct peer *peer_open(struct load *l);
void peer_close(struct peer *p);

/*
 * A request: peer_begin() leaves the writer inside of its params,
 * peer_send() closes and sends it. The answer has the id.
 */
void peer_begin(
    struct peer *p, struct json_writer *w, const char *method, int64_t id);
void peer_send(struct peer *p, struct json_writer *w);

/* The two requests that several modes make. */
struct peer_command {
	const char *const *argv; /* NULL-terminated */
	bool tty, pipe_stdin, sandbox;
};
void peer_start(struct peer *p, const char *process_id, int64_t id,
    const struct peer_command *command);
void peer_write(struct peer *p, const char *process_id, int64_t id,
    const void *data, size_t len);

/* Stops or goes on reading. */
void peer_pause(struct peer *p, bool paused);

/* Reads and writes what epoll says is possible; messages go to on_message. */
void peer_serve(struct peer *p, uint32_t events);

/* What is read of messages. An id is -1 in a notification; a member is one of
 * the params or of the result, or NULL; bytes are those for which a base64 text
 * stands. */
int64_t message_id(const struct rpc_message *m);
bool message_is(const struct rpc_message *m, const char *method);
const struct json_value *message_member(
    const struct rpc_message *m, const char *name);
size_t message_bytes(const struct rpc_message *m, const char *name);

/* Ends the program if the message says that a command failed. */
void message_check_exit(const struct rpc_message *m, const char *who);
