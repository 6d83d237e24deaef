/* SPDX-License-Identifier: ISC */
/*
 * A helper's side of its channel: requests come from the runner, one after
 * the other, and answers go back with the number of their request.
 */
#ifndef SERVE_H
#define SERVE_H

#include "request.h"

struct event_base;

/* Answers m, or keeps the id and answers later; then with the number that
 * r->channel->tag holds now. */
typedef void serve_fn(struct request *r, struct rpc_message *m);

/* Serves on CONTROL_FD until the runner goes. `drained`, if there is one, is
 * called when everything was written after it had been too much. */
void serve(struct event_base *base, const char *label, serve_fn *answer,
    void (*drained)(void));

#endif
