/* SPDX-License-Identifier: ISC */
/* Shared by the files of session mode: commands.c and commands_asked.c. */
#ifndef COMMANDS_PARTS_H
#define COMMANDS_PARTS_H

#include <event2/util.h>
#include <stddef.h>
#include <stdint.h>

#include "cgroup.h"
#include "commands.h"
#include "control.h"

/*
 * A broker that does not read for this long is stuck, and a new one would be
 * too.
 */
#define REPORT_WAIT_MS 30000

extern struct event_base *commands_base;

/* Carries out a command of the broker; an impossible one ends the runner. */
void commands_take(
    const uint8_t *packet, size_t len, const int *fds, size_t nfds);

/* Sends a report to the broker at once. */
void commands_report(enum control_type type, const void *payload);

/* Ends the runner and logs which command was impossible. */
void commands_impossible(enum control_type type) __attribute__((noreturn));

/* Ends the session and the program. */
void commands_end(void) __attribute__((noreturn));

/* How many recordings were requested so far. */
extern uint32_t commands_recordings;

/* session.open_recording. */
int commands_open_recording(struct slice process);

/*
 * Carries out the commands that were put off. Called by an event, and before
 * the next command is taken.
 */
void commands_take_stashed_cb(evutil_socket_t fd, short what, void *arg);

#endif
