/* SPDX-License-Identifier: ISC */
/*
 * What the deny patterns of a policy match, looked for beside the session's
 * loop: a process forked from the runner reads the request, decides as the
 * runner would, walks the trees and says what it found. It keeps what it knows
 * of the tree for the next request, and ends with the session. The runner asks
 * for one request at a time and serves others meanwhile.
 */
#ifndef PATTERN_SCAN_H
#define PATTERN_SCAN_H

#include <event2/event_struct.h>

#include "reaper.h"

struct resolve_matches;
struct rpc_message;
struct sandbox_request;
struct session;
union method_params;

enum scan_for { SCAN_FOR_NOBODY, SCAN_FOR_START, SCAN_FOR_FILES };

/* Whose requests it looks for. */
struct pattern_scan_user {
	/* In the process: what the sandbox is asked for that request; *p holds
	 * what it refers to, the caller frees *envp. 0, or -EBADMSG. */
	int (*wants)(struct session *s, struct rpc_message *m,
	    union method_params *p, struct sandbox_request *wanted,
	    char ***envp);
	/* Whoever asked goes on with what was found. */
	void (*answered)(struct session *s, enum scan_for who,
	    const struct resolve_matches *found);
	/* After that the other one, who may have waited for its turn to ask. */
	void (*next)(struct session *s, enum scan_for after);
};

struct pattern_scan {
	const struct pattern_scan_user *user;
	struct reaper_watch watch;
	int fd;	    /* its channel; -1: it does not run */
	int memory; /* shared: the request, then the answer */
	enum scan_for asked_for;
	int err; /* of the asking */
	struct event in_event, deadline;
};

/* s->scan is all zero. */
void pattern_scan_init(struct session *s, const struct pattern_scan_user *user);

/* Asks for the request's patterns. The answer resumes whoever asked, and then
 * the other queue. Does nothing while another answer is due. */
void pattern_scan_ask(
    struct session *s, enum scan_for who, const char *text, size_t len);

/* Nobody waits for the answer any more. */
void pattern_scan_cancel(struct session *s);

#endif
