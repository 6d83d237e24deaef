/* SPDX-License-Identifier: ISC */
/*
 * One command over there and the standard streams of execctl: what run,
 * shell, attach, watch, logs and wait have in common.
 */
#ifndef RUN_H
#define RUN_H

#include "ctl.h"
#include "output.h"

struct capture;

enum run_input {
	RUN_INPUT_NONE,
	RUN_INPUT_PIPE, /* standard input, then its end */
	RUN_INPUT_TTY,	/* keys, in raw mode */
};

struct run {
	struct ctl *ctl;
	struct execd_process *process;
	enum run_input input;
	bool tty;	     /* the command has a terminal */
	bool quiet_output;   /* drop what it writes */
	bool follow;	     /* until it is closed; else until all was read */
	bool read_only;	     /* we watch: another client has the session */
	bool reads;	     /* so that watching would do */
	const char *profile; /* --sandbox; NULL: none was asked for */
	uint64_t timeout_ms; /* ours, not the server's; 0: none */
	struct capture *capture; /* NULL: output goes out as it comes */
	/* Called when it was started; may be NULL. */
	void (*remember)(struct ctl *ctl, const struct run *r,
	    const struct execd_start *start, bool attached);
	bool forget; /* drop the session's record when it is closed */

	/* private */
	const struct execd_start *start;
	struct output out, err;
	struct source in, signals;
	struct timer deadline, giving_up;
	unsigned int writes; /* that wait for their answer */
	bool in_ended, in_closed;
	bool at_line_start, escaped; /* keys, for ~. */
	unsigned int interrupts;
	bool timed_out, denied;
	bool started, done;
	bool left; /* the command goes on without us */
	int code;  /* the exit status, when done */
};

void run_init(struct run *r, struct ctl *ctl);
/* Starts the command and stays until it has ended. Returns the exit status. */
int run_start(struct run *r, const struct execd_start *start);
/* The same for a command that runs already. */
int run_attach(struct run *r, const char *process_id);
/* Starts it, and does not stay. 0, or the exit status. */
int run_detached(struct run *r, const struct execd_start *start);
void run_clear(struct run *r);

/* run_input.c */
int run_input_begin(struct run *r);
void run_input_end(struct run *r);
/* May there be more now? */
void run_input_update(struct run *r);

/* run_signals.c */
/* Blocks the signals that are for the command, and begins to read them. */
int run_signals_begin(struct run *r);
void run_signals_end(struct run *r);

/* run.c, for the other two */
void run_finish(struct run *r, int code);
/* Kills the command and ends with this status, whatever it says. */
void run_abandon(struct run *r, int code);

#endif
