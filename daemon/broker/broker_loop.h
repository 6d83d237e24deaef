/* SPDX-License-Identifier: ISC */
/*
 * The broker: one loop over signals, the front-end and the runners. It
 * parses no byte of a client; it trusts numbers it made and nothing else.
 */
#ifndef BROKER_LOOP_H
#define BROKER_LOOP_H

struct broker;
struct broker_events;

/* What its parts tell it. */
extern const struct broker_events broker_events;

/* Runs until it is told to stop. Returns an enum exit_code. */
int broker_run(struct broker *m);

/* Another broker goes on with the sessions. */
void broker_leave(struct broker *m);

/* SIGTERM: no new sessions, and time for those there are. */
void broker_drain(struct broker *m);

/* Ends everything; the loop returns when all children are gone. */
void broker_stop(struct broker *m, int exit_code);

#endif
