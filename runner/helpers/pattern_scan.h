/* SPDX-License-Identifier: ISC */
/*
 * Finds what the deny patterns of a policy match, outside the session's loop. A
 * process forked from the runner reads the request, decides as the runner
 * would, searches the trees and reports what it found. It keeps its knowledge
 * of the trees for the next request, and ends with the session. The runner asks
 * for one request at a time and serves others meanwhile.
 */
#pragma once

#include <event2/event_struct.h>

#include "process_tree.h"

struct resolve_matches;
struct rpc_message;
struct sandbox_request;
struct session;
union method_params;

enum scan_for { SCAN_FOR_NOBODY, SCAN_FOR_START, SCAN_FOR_FILES };

/* The callbacks of the user of the scan. */
struct pattern_scan_user {
	/*
	 * Called in the forked process: returns in *wanted what the sandbox is
	 * asked for the request. *p holds what *wanted refers to; the caller
	 * frees *envp. Returns 0 or -EBADMSG.
	 */
	int (*wants)(struct session *s, struct rpc_message *m,
	    union method_params *p, struct sandbox_request *wanted,
	    char ***envp);
	/* Continues the request for which the scan was made. */
	void (*answered)(struct session *s, enum scan_for who,
	    const struct resolve_matches *found);
	/*
	 * Called after `answered`: lets the other queue continue, which may
	 * have waited to ask.
	 */
	void (*next)(struct session *s, enum scan_for after);
};

struct pattern_scan {
	const struct pattern_scan_user *user;
	struct reaper_watch watch;
	int fd;	    /* its channel; -1: not running */
	int memory; /* shared memory: the request, then the answer */
	enum scan_for asked_for;
	int err; /* of the last attempt to ask */
	struct event in_event, deadline;
};

/* s->scan must be all zero. */
void pattern_scan_init(struct session *s, const struct pattern_scan_user *user);

/*
 * Asks for a scan of the request's patterns. The answer continues the queue
 * that asked, and then the other one. Does nothing while another scan is
 * running.
 */
void pattern_scan_ask(
    struct session *s, enum scan_for who, const char *text, size_t len);

/* What it has a copy of has changed. A request that waits is refused. */
void pattern_scan_restart(struct session *s);

/* Nobody waits for the answer any more; the scan is stopped. */
void pattern_scan_cancel(struct session *s);
