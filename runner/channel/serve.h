/* SPDX-License-Identifier: ISC */
/*
 * A helper's side of its channel. Requests come from the runner, one after
 * another; answers carry the number of their request.
 */
#ifndef SERVE_H
#define SERVE_H

#include "request.h"

struct event_base;

/*
 * Answers m, or keeps the id and answers later. A later answer must carry the
 * number that r->channel->tag holds now.
 */
typedef void serve_fn(struct request *r, struct rpc_message *m);

/*
 * Serves on CONTROL_FD until the runner closes it. `drained` may be NULL; it is
 * called when everything is written after the channel was congested.
 */
void serve(struct event_base *base, const char *label, serve_fn *answer,
    void (*drained)(void));

#endif
