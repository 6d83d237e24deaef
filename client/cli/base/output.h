/* SPDX-License-Identifier: ISC */
/*
 * Queues bytes for standard output or error. It never blocks the loop. It
 * leaves the descriptor's flags alone, because other programs share them.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "execctl.h"

struct output {
	struct execctl *ctl;
	int fd;
	struct source source;
	struct buf queue;
	size_t at;		    /* bytes of queue already written */
	int failed;		    /* -errno of a write; then all is dropped */
	void (*changed)(void *arg); /* the queue shrank, or a write failed */
	void *arg;
};

void output_init(struct output *o, struct execctl *ctl, int fd,
    void (*changed)(void *arg), void *arg);
void output_clear(struct output *o);
void output_put(struct output *o, const void *data, size_t len);
size_t output_queued(const struct output *o);
/* Runs the loop until everything is written. Returns 0 or -errno. */
int output_drain(struct output *o);

#endif
