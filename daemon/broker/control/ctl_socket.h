/* SPDX-License-Identifier: ISC */
/*
 * The operator's socket: `execd ctl` asks here, one line of JSON, and is
 * answered by one line. Only root, the user execd itself runs as, and members
 * of the configured group are heard; of others not a byte is read.
 */
#ifndef CTL_SOCKET_H
#define CTL_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "buf.h"
#include "control.h"
#include "event_source.h"
#include "json.h"
#include "queue.h"

struct conf;
struct broker;

#define CTL_CLIENTS_MAX	    8	  /* at once */
#define CTL_REQUEST_MAX	    4096  /* bytes, with its line end */
#define CTL_REASON_MAX	    200	  /* bytes */
#define CTL_ID_CHARS_MIN    4	  /* so many of an id at least */
#define CTL_REQUEST_MS	    5000  /* for the whole request */
#define CTL_ANSWER_MS	    5000  /* for the next piece of the answer */
#define CTL_CLIENT_MS	    60000 /* for everything */
#define CTL_SESSIONS_A_TURN 32	  /* told of, then the others have their turn */

enum ctl_state {
	CTL_READING,   /* its request */
	CTL_ANSWERING, /* and nothing is to be added */
	CTL_LISTING,   /* sessions are still to be told */
	CTL_HANDED,    /* the next broker answers */
};

struct ctl_client {
	TAILQ_ENTRY(ctl_client) link; /* clients of ctl_socket.c */
	struct event_source source;
	struct ucred who; /* as the kernel has it */
	enum ctl_state state;
	int64_t deadline_ms; /* for what is next */
	int64_t end_ms;	     /* for everything */
	struct buf in, out;
	size_t sent; /* of `out` */
	/* LISTING: their ids, owned */
	char (*ids)[CONTROL_SESSION_ID_MAX];
	size_t nids, at;
};

/* Opens the socket that the configuration wants. What nobody has asked for in
 * words is no reason not to start: 0, or an enum exit_code after logging. */
int ctl_open(struct conf *c);

/* Serves the socket of the configuration in force. */
void ctl_serve(struct broker *m);

/* Gives up clients that take too long. When to come again, or -1. */
int64_t ctl_expire(struct broker *m, int64_t now);

/* Answers who asked the broker before this one for a reload: an enum exit_code,
 * and what was logged. fd stays the caller's. */
#define CTL_TOLD_MAX 8000
void ctl_answer_reload(int fd, int code, struct buf *told);

/* A client with its answer ready: sends, and goes on telling of sessions. */
void ctl_send(struct ctl_client *c);

/* ctl_client.c: `execd ctl ...`. An enum exit_code. */
int ctl_main(int argc, char **argv);

#endif
