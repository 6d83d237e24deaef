/* SPDX-License-Identifier: ISC */
/*
 * One run of the load client: what the flags said, the connections, and what
 * is shared by the modes. Any failure, of the server or here, ends the
 * program with a sentence: half a measurement is none.
 */
#pragma once

#include "base.h"
#include "jsonrpc.h"
#include "stream.h"

struct peer;
struct load;

typedef void load_message_fn(
    struct load *l, struct peer *p, const struct rpc_message *m);

struct load {
	/* The flags. */
	const char *url;
	const char *ca_file; /* for wss: whom to trust */
	const char *path;    /* a directory: the workspace, and for files */
	uint64_t count, warmup, bytes;
	uint64_t
	    size; /* in bytes, of a file, an echo, a write; 0: the mode's */
	uint64_t connections, inflight;
	uint64_t pause_ms;  /* between two connections of mode connect */
	uint64_t stages[8]; /* of the scale modes, ascending; 0 ends */
	bool tty, quickack, sandbox, controlled, writing;

	/* The connections; peer.c. */
	struct endpoint endpoint;
	struct stream_config config;
	int epoll;
	struct peer **peers; /* owned */
	size_t npeers;

	/* The mode that runs. */
	load_message_fn *on_message;
	void *mode; /* not owned */
	bool done;  /* ends load_run() */
};

/* Serves the connections until `done`; false is set on entry. */
void load_run(struct load *l);

/*
 * A moment the driver may want to measure at: prints "at NAME" and waits for a
 * line. Without --controlled it does nothing.
 */
void load_moment(const struct load *l, const char *name);

/* CLOCK_MONOTONIC. */
uint64_t load_clock_ns(void);

/* The modes, one file each or two that are alike. */
void mode_connect(struct load *l);
void mode_echo(struct load *l);
void mode_files(struct load *l);
void mode_output(struct load *l);
void mode_processes(struct load *l);
void mode_sessions(struct load *l);
void mode_slow(struct load *l);
void mode_spawn(struct load *l);
void mode_stdin(struct load *l);
