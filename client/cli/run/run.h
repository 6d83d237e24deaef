/* SPDX-License-Identifier: ISC */
/*
 * Connects a remote command with the standard streams of execctl. run, shell,
 * attach, watch, logs and wait share it.
 */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>

#include "execctl.h"

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
	struct timer deadline, giving_up, terminated;
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

/* --- forward.c ---------------------------------------------------------- */

/*
 * execctl run -L: ports here that lead to ports on the loopback of the command
 * that runs (process/forward of execd-protocol(7)).
 */

/*
 * Listens on 127.0.0.1 for each --forward of the command line. Returns 0, or an
 * exit status after a message. Connections are taken when the command has
 * started: then forward_update() is called.
 */
int forward_begin(struct run *r);
void forward_update(struct run *r);

/* Hangs up, and frees what forward_begin() made. */
void forward_end(struct run *r);

/* --- terminal.c --------------------------------------------------------- */

/*
 * The user's terminal, which becomes raw and is restored, and the signals for
 * the command that come from it or from a script.
 */

/* Returns 0, or -errno if standard input is not a terminal. */
int terminal_raw(void);

/* Blocks the signals that the command is to get, and reads them from a
 * signalfd instead. Returns 0, or an exit status after a message. */
int run_signals_begin(struct run *r);
void run_signals_end(struct run *r);

/* Does nothing unless the terminal is raw. Also runs at exit(3). */
void terminal_restore(void);
/* False: the size is unknown. */
bool terminal_size(unsigned int *rows, unsigned int *cols);

#endif
