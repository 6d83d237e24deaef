/* SPDX-License-Identifier: ISC */
/*
 * The broker: one loop over signals, the front-end and the runners. It
 * parses no byte of a client; it trusts numbers it made and nothing else.
 */
#ifndef MONITOR_H
#define MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "drain.h"
#include "frontend.h"
#include "helper.h"
#include "options.h"
#include "session.h"
#include "source.h"

struct broker {
	const struct options *options;
	struct conf *conf; /* in force */
	bool root;	   /* started by root */
	bool stdio;	   /* a listener is stdio */
	char provider_id[80];
	int epoll_fd;
	struct source signals;
	struct source relay; /* log lines of children, or fd -1 */
	struct frontend frontend;
	struct helpers helpers;
	struct registry sessions;
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

/* Runs until it is told to stop. Returns an enum exit_code. */
int broker_run(struct broker *m);

/* Another broker goes on with the sessions. */
void monitor_leave(struct broker *m);

/* SIGTERM: no new sessions, and time for those there are. */
void broker_drain(struct broker *m);

/* Ends everything; the loop returns when all children are gone. */
void broker_stop(struct broker *m, int exit_code);

#endif
