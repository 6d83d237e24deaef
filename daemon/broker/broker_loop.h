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

#endif
