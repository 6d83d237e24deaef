/* SPDX-License-Identifier: ISC */
/*
 * Several commands to a runner in one packet, so that it wakes only once.
 */
#ifndef SESSION_COMMANDS_H
#define SESSION_COMMANDS_H

#include <stddef.h>

#include "buf.h"
#include "control.h"

struct session;

struct session_commands {
	struct buf packet; /* RUNNER_COMMAND_SEVERAL so far */
	const int *fds;
	size_t nfds;
};

/* The first of them brings the descriptors, which stay the caller's. */
void session_commands_begin(
    struct session_commands *o, const int *fds, size_t nfds);

/* All of them fit into one packet: session_start.c. */
void session_commands_add(
    struct session_commands *o, enum control_type type, const void *payload);

/* As session_send_command(). */
int session_commands_send(struct session *s, struct session_commands *o);

#endif
