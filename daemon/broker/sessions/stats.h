/* SPDX-License-Identifier: ISC */
/*
 * The broker's counters for the operator's /metrics (execd.conf(5), `operate`).
 * The broker has them because it knows the sessions and survives front-ends.
 */
#ifndef STATS_H
#define STATS_H

#include <stdbool.h>

#include "control.h"

struct conf;
struct broker;
struct session;

/* Tells whether a listener serves them. Then runners report their commands. */
bool stats_are_wanted(const struct conf *c);

void stats_started(
    struct broker *m, struct session *s, const struct control_started *p);
void stats_exited(
    struct broker *m, struct session *s, const struct control_exited *p);

void stats_network(struct broker *m, const struct control_network *n);

/* Collects the current values. conn is the caller's. */
void stats_collect(struct broker *m, struct control_metrics *out);

#endif
