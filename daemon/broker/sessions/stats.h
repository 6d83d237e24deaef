/* SPDX-License-Identifier: ISC */
/*
 * What the broker counts, for the operator's /metrics (execd.conf(5),
 * `operate`): it knows the sessions, and survives front-ends.
 */
#ifndef STATS_H
#define STATS_H

#include <stdbool.h>

#include "control.h"

struct conf;
struct broker;
struct session;

/* Is there a listener that tells them? Then runners report their commands. */
bool stats_are_wanted(const struct conf *c);

void stats_started(
    struct broker *m, struct session *s, const struct control_started *p);
void stats_exited(
    struct broker *m, struct session *s, const struct control_exited *p);

/* Everything as it is now; conn is the caller's. */
void stats_collect(struct broker *m, struct control_metrics *out);

#endif
