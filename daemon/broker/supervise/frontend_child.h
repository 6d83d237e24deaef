/* SPDX-License-Identifier: ISC */
/*
 * The broker's side of the front-end: its process and its control channel.
 * requests.h has what the front-end may ask.
 */
#pragma once

#include "base.h"
#include "control.h"
#include "queue.h"
#include "table.h"
#include "watch.h"

struct broker;

enum frontend_state {
	FRONTEND_DOWN = 1 << 0, /* no process; may be started at restart_ms */
	FRONTEND_CONFINING = 1 << 1, /* configured, and not READY yet */
	FRONTEND_SERVING = 1 << 2,
};

/* A message that does not fit into the socket yet. */
struct outgoing {
	TAILQ_ENTRY(outgoing) link; /* frontend.queue */
	struct buf message;
	int fds[CONTROL_LISTENER_FDS_MAX]; /* owned */
	size_t nfds;
};

#define FRONTEND_ROOM_UNTOLD UINT8_MAX

struct frontend {
	enum frontend_state state;
	pid_t pid;
	struct event control;
	struct table grants; /* by connection number */
	TAILQ_HEAD(, outgoing) queue;
	size_t queued;
	int64_t started_ms;
	int64_t restart_ms;   /* DOWN: not started before this */
	unsigned failures;    /* ends before READY in a row */
	int64_t ping_ms;      /* SERVING: when the next PING is sent */
	uint8_t told_ill;     /* enum broker_ill of the last one */
	int64_t answer_ms;    /* when it must have answered; 0: it has */
	uint8_t room_percent; /* what it was told, or FRONTEND_ROOM_UNTOLD */
};

void frontend_init(struct frontend *f);

/* Gives the running front-end the current configuration and new helpers. */
void frontend_reload(struct broker *m);

/* Starts the front-end and sends CONFIGURE. Returns 0 or -errno. */
int frontend_start(struct broker *m);

/* A child with that pid ended. Returns false if it is not the front-end. */
bool frontend_reap(struct broker *m, pid_t pid, int status);

/* Sends a PING from time to time, and kills a front-end that does not answer,
 * so that another one takes its place. Returns when to call it again, or -1. */
int64_t frontend_watch(struct broker *m, int64_t now);

/* The front-end has answered. Returns 0, or -EPERM if it was not asked. */
int frontend_is_alive(struct frontend *f);

/* Tells the front-end whether new sessions are opened, and why not. */
void frontend_drain(struct broker *m);

/* Tells the front-end that there is no more work. It tells its clients, and
 * exits at the end of its control channel. */
void frontend_stop(struct broker *m);
void frontend_hang_up(struct broker *m);

/* Sends a message, later if the socket is full. Takes over fd (or -1). */
void frontend_send(
    struct frontend *f, enum control_type type, const void *payload, int fd);

/* --- tls_helpers.c ------------------------------------------------------- */

/*
 * The front-end's helpers. The key process holds the private keys of the TLS
 * listeners and signs handshakes. The certificate process holds the client CAs
 * and verifies certificates. They are two processes of one program, so that a
 * process which a hostile certificate could break into holds no key. Each
 * serves one channel, and a new front-end or configuration gets new processes.
 */

struct helper_process {
	TAILQ_ENTRY(helper_process) link; /* helpers.all */
	enum tls_helper kind;
	pid_t pid;
	int64_t started_ms;
	/* when another process replaced it; 0: it is in use */
	int64_t replaced_ms;
	bool killed; /* because it did not answer */
	/* with which it seals its verdicts */
	uint8_t secret[CONTROL_SECRET_BYTES];
};

struct helpers {
	TAILQ_HEAD(, helper_process) all; /* replaced ones end by themselves */
	/* a helper died: no new one before this; 0: none died */
	int64_t restart_ms;
};

void helpers_init(struct helpers *h);

/* Starts a helper of each kind that the current configuration needs. fds[] are
 * the front-end's ends of their channels, the caller's, or -1. Failures are
 * logged. */
void helpers_start(struct broker *m, int fds[TLS_HELPERS]);

/* A child with that pid ended. Returns false if it is not a helper. */
bool helpers_reap(struct broker *m, pid_t pid, int status);

/* The helpers of this kind that are in use hang: kills them. Others replace
 * them when they are reaped. */
void helpers_kill(struct helpers *h, enum tls_helper kind);

/* Tells whether a helper that is in use is being ended because it does not
 * answer. */
bool helpers_are_ending(const struct helpers *h);

/*
 * Tells whether a certificate process has sealed this verdict: one that still
 * counts, for this listener, and not longer ago than a client may take. So a
 * front-end can neither make a verdict nor keep one for later.
 */
bool helpers_vouch(const struct broker *m, uint32_t listener,
    const struct control_cert_verdict *v);
