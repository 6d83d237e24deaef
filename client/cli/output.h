/* SPDX-License-Identifier: ISC */
/*
 * Bytes on their way to standard output or error. Never blocks the loop and
 * never changes the descriptor's flags, which other programs share.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "ctl.h"

struct output {
	struct ctl *ctl;
	int fd;
	struct source source;
	struct buf queue;
	size_t at;  /* written of it */
	int failed; /* -errno of a write; what follows is dropped */
	void (*changed)(void *arg); /* less is queued, or it failed */
	void *arg;
};

void output_init(struct output *o, struct ctl *ctl, int fd,
    void (*changed)(void *arg), void *arg);
void output_clear(struct output *o);
void output_put(struct output *o, const void *data, size_t len);
size_t output_queued(const struct output *o);
/* Waits until everything is written. 0 or -errno. */
int output_drain(struct output *o);

#endif
