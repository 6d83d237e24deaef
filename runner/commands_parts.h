/* SPDX-License-Identifier: ISC */
/*
 * For the files of session mode: commands.c and commands_asked.c.
 */
#ifndef COMMANDS_PARTS_H
#define COMMANDS_PARTS_H

#include <event2/util.h>
#include <stddef.h>
#include <stdint.h>

#include "cgroup.h"
#include "commands.h"
#include "control.h"

/* A broker that does not read for so long is stuck, and so is the next. */
#define REPORT_WAIT_MS 30000

extern struct event_base *commands_base;

/* An order in its turn; one that is impossible ends the runner. */
void commands_take(
    const uint8_t *packet, size_t len, const int *fds, size_t nfds);

/* A report to the broker, at once. */
void commands_report(enum control_type type, const void *payload);

/* It ends with a word about it. */
void commands_impossible(enum control_type type) __attribute__((noreturn));

/* The program exits with the session. */
void commands_end(void) __attribute__((noreturn));

/* Recordings that were asked for, ever. */
extern uint32_t commands_recordings;

/* session.open_recording. */
int commands_open_recording(struct slice process);

/* Orders that were put off, now. An event's, and of who takes the next. */
void commands_take_stashed_cb(evutil_socket_t fd, short what, void *arg);

#endif
