/*
 * The monitor: one loop over signals, the front-end and the runners. It
 * parses no byte of a client; it trusts numbers it made and nothing else.
 */
#ifndef MONITOR_H
#define MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "credential.h"
#include "frontend.h"
#include "identity.h"
#include "listener.h"
#include "options.h"
#include "programs.h"
#include "session.h"
#include "source.h"

struct monitor {
	const struct options *options;
	struct identity identity; /* of every session */
	struct credential_rules credentials;
	struct programs programs;
	struct listener listeners[OPTIONS_LISTENERS_MAX];
	size_t nlisteners;
	bool root;	    /* started by root */
	bool stdio;	    /* a listener is stdio */
	uid_t frontend_uid; /* root mode */
	gid_t frontend_gid;
	char provider_id[80];
	int epoll_fd;
	struct source signals;
	struct frontend frontend;
	struct registry sessions;
	bool announced; /* the URLs were printed */
	bool stopping;
	int exit_code;
};

/* There is one; its children hold nothing of it. */
extern struct monitor monitor;

/* Runs until it is told to stop. Returns an enum exit_code. */
int monitor_run(struct monitor *m);

/* Ends everything; the loop returns when all children are gone. */
void monitor_stop(struct monitor *m, int exit_code);

#endif
