/* SPDX-License-Identifier: ISC */
/*
 * What all parts of the broker share: the configuration, the parts, and their
 * state. A part includes this file and the parts below it. This file includes
 * no part.
 */
#pragma once

#include "base.h"
#include "control.h"
#include "watch.h"

struct broker;
struct conf;
struct frontend;
struct helpers;
struct identity;
struct options;
struct registry;
struct session;

/* The operator's drain (broker_health.h). */
struct drain {
	bool drained;
	uint32_t by;	   /* uid */
	uint64_t since_ms; /* CLOCK_REALTIME */
	/* CLOCK_MONOTONIC: new sessions are opened until then; 0: none is */
	int64_t notice_until_ms;
};

/* exit-when-idle (session_registry.h). CLOCK_MONOTONIC; 0: no. */
struct idle {
	int64_t since_ms; /* there is no session */
	int64_t asked_ms; /* the front-end was asked whether anybody waits */
};

/* How a part reports to the parts above it, which it does not know. */
struct broker;
struct broker_events {
	/* The broker ends everything, with that code. */
	void (*stop)(struct broker *m, int exit_code);
	/* Another broker takes over the sessions. */
	void (*leave)(struct broker *m);
	/* One is wanted, to read the configuration. */
	void (*reload)(struct broker *m);
	/* It has, with this enum exit_code, and logged this text. */
	void (*reloaded)(struct broker *m, int code, const char *text);
	/* Clients are served from now on. */
	void (*serving)(void);
	/* A child of root's execd has ended. */
	void (*reaped)(struct broker *m, pid_t pid, int status);
	/* The front-end sent a request, as for request_take(). Returns NULL, or
	 * the violation in words. */
	const char *(*request)(
	    struct broker *m, const uint8_t *packet, size_t len, int *fd);
	/* The front-end is gone. */
	void (*frontend_gone)(struct broker *m);
	/* A session of another broker goes on. */
	void (*session_adopted)(struct broker *m, struct session *s);
	/* Somebody waits for the session, and it is known now whether its
	 * connection lives (session_probe()). */
	void (*session_probed)(struct broker *m, struct session *s);
	/* What account_check() asked about is known now. */
	void (*account_known)(struct broker *m, struct identity *id);
	/* The runner of a session is gone. */
	void (*session_ended)(
	    struct broker *m, struct session *s, const char *reason);
};

struct broker {
	const struct broker_events *on;
	const struct options *options;
	struct conf *conf; /* the current one */
	bool root;	   /* started by root */
	bool stdio;	   /* one of the listeners is stdio */
	/* No: another broker would have neither the client of stdio nor the
	 * input that --exit-on-stdin-close watches. */
	bool replaceable;
	char provider_id[80];
	struct event signals;
	struct event input; /* --exit-on-stdin-close */
	struct frontend *frontend;
	struct helpers *helpers;
	struct registry *sessions;
	struct control_metrics counts; /* counters of stats.h that only grow */
	bool announced;		       /* the URLs were printed */
	bool stopping;
	bool leaving; /* it ends, and the sessions go on */
	/* records cannot be written, so nothing may be run; runners were
	 * told so */
	bool audit_stopped;
	int64_t audit_retry_ms;
	struct idle idle;
	struct drain drain; /* by the operator, until he undoes it */
	/* SIGTERM came; new sessions are opened until then. 0: it did not */
	int64_t notice_until_ms;
	bool draining; /* opens no new session, and stops at drain_until_ms */
	int64_t drain_until_ms;
	int exit_code;
};

/* The only one. Children of the broker get nothing of it. */
extern struct broker broker;

/* Returns why no new session is opened now, or NULL. */
const char *drain_reason(const struct broker *m);

/* Returns whether it was told to stop. New sessions may still be opened. */
bool broker_is_going(const struct broker *m);
