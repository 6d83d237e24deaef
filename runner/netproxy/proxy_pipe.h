/* SPDX-License-Identifier: ISC */
/*
 * One direction of a relay: bytes go from one socket to another through a pipe
 * of the kernel (splice(2)), so they are not copied. What does not fit into the
 * pipe stays with its sender.
 */
#pragma once

#include <event2/event_struct.h>

#include "buf.h"

struct event_base;
struct proxy_pipe;

struct proxy_pipe_events {
	/* n more bytes were taken. Returns false if the relay is gone. */
	bool (*moved)(void *arg, size_t n);
	/* The sender has ended, or the length is reached, and everything was
	 * passed on. Called once. */
	void (*done)(void *arg, struct proxy_pipe *p);
	/* A socket is broken, or there are no descriptors. Called once. */
	void (*broken)(void *arg, struct proxy_pipe *p, int err);
};

struct proxy_pipe {
	int from, to; /* owned by the caller */
	int fds[2];   /* -1: nothing was moved yet */
	size_t inside;
	struct buf first; /* what goes before the sender's bytes; owned */
	bool limited;	  /* `left` bytes are still to be taken */
	uint64_t left;
	bool ended, done;
	struct event readable, writable;
	const struct proxy_pipe_events *events;
	void *arg;
};

/* Begins to move. `first` is taken over. The caller sets limited and left. */
void proxy_pipe_start(struct proxy_pipe *p, struct event_base *base, int from,
    int to, struct buf *first, const struct proxy_pipe_events *events,
    void *arg);

/* Stops and frees; harmless before the start if p is zero. */
void proxy_pipe_stop(struct proxy_pipe *p);
