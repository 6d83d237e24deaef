/* SPDX-License-Identifier: ISC */
/*
 * The broker's side of the front-end: its process and its control channel.
 * What it may ask is in requests.h.
 */
#ifndef FRONTEND_CHILD_H
#define FRONTEND_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"
#include "event_source.h"
#include "queue.h"
#include "table.h"

struct broker;

enum frontend_state {
	FRONTEND_DOWN = 1 << 0,	     /* none; may be started at restart_ms */
	FRONTEND_CONFINING = 1 << 1, /* configured, not READY yet */
	FRONTEND_SERVING = 1 << 2,
};

/* A message that did not fit into the socket. */
struct outgoing {
	TAILQ_ENTRY(outgoing) link; /* frontend.queue */
	struct buf message;
	int fds[CONTROL_LISTENER_FDS_MAX]; /* owned */
	size_t nfds;
};

struct frontend {
	enum frontend_state state;
	pid_t pid;
	struct event_source control;
	struct table grants; /* by connection number */
	TAILQ_HEAD(, outgoing) queue;
	size_t queued;
	int64_t started_ms;
	int64_t restart_ms; /* DOWN: not before this */
	unsigned failures;  /* ends before READY, in a row */
	bool done;	    /* stdio is at its end */
	int64_t ping_ms;    /* SERVING: when it is asked next */
	int64_t answer_ms;  /* by when it must have answered; 0: it has */
};

void frontend_init(struct frontend *f);

/* Gives the running front-end the configuration that is in force now, and
 * another key process. */
void frontend_reload(struct broker *m);

/* Starts it and sends CONFIGURE. 0 or -errno. */
int frontend_start(struct broker *m);

/* A child of that pid ended. False: not the front-end. */
bool frontend_reap(struct broker *m, pid_t pid, int status);

/* Asks it from time to time, and kills one that does not answer, so that
 * another takes over. When to call it again, or -1. */
int64_t frontend_watch(struct broker *m, int64_t now);

/* It has answered. 0, or -EPERM: it was not asked. */
int frontend_is_alive(struct frontend *f);

/* Tells it whether new sessions are opened, and why they are not. */
void frontend_drain(struct broker *m);

/* Tells it that no more work comes: clients are told, it exits at the end of
 * its control channel. */
void frontend_stop(struct broker *m);
void frontend_hang_up(struct broker *m);

/* Sends a message, later if its socket is full. fd (or -1) is taken over. */
void frontend_send(
    struct frontend *f, enum control_type type, const void *payload, int fd);

#endif
