/* SPDX-License-Identifier: ISC */
/*
 * Several commands to a runner in one packet, so that it wakes only once.
 */
#ifndef SESSION_EVENTS_H
#define SESSION_EVENTS_H

#include <stddef.h>

#include "buf.h"
#include "control.h"

struct session;

struct session_commands {
	struct buf packet; /* a RUNNER_COMMAND_SEVERAL that is being written */
	const int *fds;
	size_t nfds;
};

/* The first command brings the descriptors, which stay the caller's. */
void session_commands_begin(
    struct session_commands *o, const int *fds, size_t nfds);

/* The caller asserts that all of them fit into one packet. */
void session_commands_add(
    struct session_commands *o, enum control_type type, const void *payload);

/* Returns as session_send_command(). */
int session_commands_send(struct session *s, struct session_commands *o);

#endif
