/* SPDX-License-Identifier: ISC */
/*
 * What the whole broker shares: its configuration, its parts and where it
 * stands. A part includes this and the parts below it; this includes none.
 */
#ifndef BROKER_STATE_H
#define BROKER_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"
#include "event_source.h"

struct broker;
struct conf;
struct frontend;
struct helpers;
struct options;
struct registry;
struct session;

/* By the operator (drain.h). */
struct drain {
	bool drained;
	uint32_t by;	   /* uid */
	uint64_t since_ms; /* CLOCK_REALTIME */
};

/* What a part tells those above it, whom it does not know. */
struct broker;
struct broker_events {
	/* Everything ends, with that code. */
	void (*stop)(struct broker *m, int exit_code);
	/* Another broker goes on with the sessions. */
	void (*leave)(struct broker *m);
	/* A child of root's has ended. */
	void (*reaped)(struct broker *m, pid_t pid, int status);
	/* A request of the front-end, as request_take(). NULL, or what it
	 * violates. */
	const char *(*request)(
	    struct broker *m, const uint8_t *packet, size_t len, int *fd);
	/* The front-end is gone. */
	void (*frontend_gone)(struct broker *m);
	/* So is the runner of a session. */
	void (*session_ended)(
	    struct broker *m, struct session *s, const char *reason);
};

struct broker {
	const struct broker_events *on;
	const struct options *options;
	struct conf *conf; /* in force */
	bool root;	   /* started by root */
	bool stdio;	   /* a listener is stdio */
	char provider_id[80];
	int epoll_fd;
	struct event_source signals;
	struct event_source relay; /* log lines of children, or fd -1 */
	struct frontend *frontend;
	struct helpers *helpers;
	struct registry *sessions;
	struct control_metrics counts; /* stats.h: those that only go up */
	bool announced;		       /* the URLs were printed */
	bool stopping;
	bool leaving;	    /* likewise, and sessions go on */
	bool audit_stopped; /* no record, no run: runners were told so */
	int64_t audit_retry_ms;
	struct drain drain; /* by the operator, until he says otherwise */
	bool draining;	    /* no new session; stops at drain_until_ms */
	int64_t drain_until_ms;
	int exit_code;
};

/* There is one; its children hold nothing of it. */
extern struct broker broker;

/* Why no new session is opened now, or NULL. */
const char *drain_reason(const struct broker *m);

#endif
