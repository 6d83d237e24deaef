/* SPDX-License-Identifier: ISC */
/*
 * Connects a remote command with the standard streams of execctl. run, shell,
 * attach, watch, logs and wait share it.
 */
#ifndef RUN_H
#define RUN_H

#include "execctl.h"
#include "output.h"

struct capture;

enum run_input {
	RUN_INPUT_NONE,
	RUN_INPUT_PIPE, /* standard input until its end */
	RUN_INPUT_TTY,	/* keys, with the terminal in raw mode */
};

struct run {
	struct execctl *ctl;
	struct execd_process *process;
	enum run_input input;
	bool tty;		 /* the command has a terminal */
	bool quiet_output;	 /* drop the command's output */
	bool follow;		 /* until it is closed; else until caught up */
	bool read_only;		 /* only watch the session */
	bool reads;		 /* only reads, so watching is enough */
	const char *profile;	 /* --sandbox; NULL: none */
	uint64_t timeout_ms;	 /* execctl's own limit; 0: none */
	struct capture *capture; /* NULL: output is written at once */
	/* Called after the start to save a record; may be NULL. */
	void (*remember)(struct execctl *ctl, const struct run *r,
	    const struct execd_start *start, bool attached);
	bool forget; /* remove the record when it is closed */

	/* private */
	const struct execd_start *start;
	struct output out, err;
	struct source in, signals;
	struct forward *forward; /* NULL: no forwarded ports */
	bool pauses;		 /* its output is not taken */
	struct timer deadline, giving_up;
	unsigned int writes; /* waiting for their answer */
	bool in_ended, in_closed;
	bool at_line_start, escaped; /* state of the escape ~. */
	unsigned int interrupts;
	bool timed_out, denied;
	bool started, done;
	bool left; /* execctl leaves, the command continues */
	int code;  /* the exit status, when done */
};

void run_init(struct run *r, struct execctl *ctl);
/* Starts the command and waits for its end. Returns the exit status. */
int run_start(struct run *r, const struct execd_start *start);
/* Like run_start(), for a command that already runs. */
int run_attach(struct run *r, const char *process_id);
/* Starts the command without waiting for its end. Returns 0, or the exit
 * status. */
int run_detached(struct run *r, const struct execd_start *start);
void run_clear(struct run *r);

/* For terminal.c, which forwards signals. */
void run_finish(struct run *r, int code);
/* Kills the command. execctl then ends with `code`, whatever the exit status of
 * the command is. */
void run_abandon(struct run *r, int code);

#endif
