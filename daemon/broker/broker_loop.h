/* SPDX-License-Identifier: ISC */
/*
 * The broker: one loop over signals, the front-end and the runners. It parses
 * no byte of a client. It trusts only numbers that it made.
 */
#ifndef BROKER_LOOP_H
#define BROKER_LOOP_H

struct broker;
struct broker_events;

/* What the parts report to the loop. */
extern const struct broker_events broker_events;

/* Runs until it is told to stop. Returns an enum exit_code. */
int broker_run(struct broker *m);

/* Another broker takes over the sessions. */
void broker_leave(struct broker *m);

/* SIGTERM: opens no new sessions, and gives open ones time. */
void broker_drain(struct broker *m);

/* Ends everything. The loop returns when all children are gone. */
void broker_stop(struct broker *m, int exit_code);

#endif
