/* SPDX-License-Identifier: ISC */
/*
 * Connects a remote command with the standard streams of execctl. run, shell,
 * attach, watch, logs and wait share it.
 */
#pragma once

#include <stdbool.h>

#include "execctl.h"
#include "screen.h"

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
	/* The session waits for the command's end, and longer, but no longer
	 * than this; 0: it does not. */
	int64_t kept_ms;

	/* private */
	const struct execd_start *start;
	struct output out, err;
	struct source in, signals;
	struct forward *forward; /* NULL: no forwarded ports */
	bool pauses;		 /* its output is not taken */
	struct timer deadline, giving_up, terminated, drained, repaint;
	unsigned int writes; /* waiting for their answer */
	bool in_ended, in_closed;
	bool at_line_start, escaped; /* was the last key a `~'? */
	struct screen screen;	     /* of the user's terminal */
	unsigned int interrupts;
	bool timed_out, denied;
	bool started, done;
	bool hung_up; /* the user's terminal is gone */
	bool left;    /* execctl leaves, the command continues */
	int code;     /* the exit status, when done */
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
/* The same, and the command goes on. */
void run_leave(struct run *r, int code);
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

/* Tells whether standard input, output or error was a terminal that has hung
 * up. */
bool terminal_is_gone(void);
/* The terminal is gone: the command gets SIGHUP, once, and all the time that it
 * takes; what it writes is dropped. */
void run_hang_up(struct run *r);

/* The connection was resumed: the command repaints its terminal. */
void run_repaint(void *arg);

/* Does nothing unless the terminal is raw. Also runs at exit(3). */
void terminal_restore(void);
/* Stops execctl and its job as ^Z does. The terminal has its modes meanwhile,
 * and is raw again afterwards. */
void terminal_suspend(void);
/* Writes to the terminal that is raw; what it does not take is dropped. */
void terminal_print(const char *text);
/* Gives the command's terminal the size of the user's. */
void terminal_resize(struct run *r);
/* Returns the modes of standard input in text[TERMINAL_MODES_MAX]
 * (terminal_modes.h), or 0 if it is no terminal. */
size_t terminal_modes(uint8_t *text);
/* False: the size is unknown. */
bool terminal_size(unsigned int *rows, unsigned int *cols);

/* --- capture.c ----------------------------------------------------------- */

/*
 * run --capture: keeps standard output and error in the order of arrival. The
 * text is limited in bytes and lines; half of it comes from the beginning and
 * half from the end.
 */

/* What the reference client shows its model of a command's output. */
#define CAPTURE_BYTES 10240
#define CAPTURE_LINES 256

/* Both buffers keep up to bytes_max bytes; lines are counted later. */
struct capture {
	size_t bytes_max, lines_max;
	struct buf head;
	struct buf tail;
	uint64_t bytes; /* bytes received */
	uint64_t lines; /* newlines received */
	bool ends_line; /* the last byte was a newline */
};

void capture_init(struct capture *c, size_t bytes_max, size_t lines_max);
void capture_clear(struct capture *c);
void capture_put(struct capture *c, const void *data, size_t len);
/* Appends the kept text to `text`. If something was left out, a line in the
 * middle says so and the result is true. */
bool capture_text(const struct capture *c, struct buf *text);

/* --- records.c ----------------------------------------------------------- */

/*
 * Records of the commands that execctl started, as long as the server may have
 * them. There is one file for each, in the user's own directory. They tell what
 * a server does not: where a session is, and which command it was.
 */

struct record {
	char *session, *process; /* all strings are owned */
	char *url;
	char *environment; /* NULL: not a named server */
	char *command;	   /* the argv, for display */
	char *cookie; /* how a proxy finds the session's host; NULL: none */
	bool tty;
	bool kept;	    /* until the command has ended, and longer */
	bool ended;	    /* the end of the command was told */
	int64_t pid;	    /* of the attached execctl; 0: none */
	int64_t started_ms; /* since 1970 */
	int64_t left_ms;    /* likewise: since when pid is 0 */
	int64_t lives_ms; /* the server keeps the session so long without us */
};

void record_clear(struct record *r);
/* Saves a record. Records are optional, so a failure is only reported with
 * --verbose. */
void record_write(const struct execctl *ctl, const struct record *r);
void record_remove(const char *session);
/* The command has ended, and its user was told. The record stays if the server
 * keeps the session: its output can be asked for again. */
void record_end(const struct execctl *ctl, const char *session);
/* Visits every record, oldest first. Returns 0 or -errno. */
int record_each(void (*visit)(void *arg, const struct record *r), void *arg);
/* Finds the record whose session begins with `prefix`. Returns 0, -ENOENT, or
 * -EEXIST if there are several. The caller clears *out. */
int record_find(const char *prefix, struct record *out);
/*
 * The server of the record cannot be asked. If the session cannot be there any
 * more, the record is removed, and the user is told. If an execctl was killed,
 * it did not note when it left, and the time counts from now.
 */
void record_missed(const struct execctl *ctl, const struct record *r);
/* Milliseconds since 1970. */
int64_t record_now_ms(void);
/* Chooses the server of the record. Returns 0, or an exit status after a
 * message. */
int record_choose_server(struct execctl *ctl, const struct record *r);
/* Tells whether an execctl on this machine is attached to the session now. */
bool record_attached(const struct record *r);

/* --- sessions.c ---------------------------------------------------------- */

/*
 * Which sessions the server has, and which commands a session.
 */

/* Visits every session of the identity, as session/list describes it (each
 * with a sessionId), until the visitor returns false. *incomplete: some are
 * missing. Returns 0, -ENOTSUP if the server cannot list them, or an exit
 * status after a message. */
int sessions_each(struct execctl *ctl,
    bool (*visit)(void *arg, const struct json_value *session), void *arg,
    bool *incomplete);

/* Writes the address of the client that has the session into peer[], or "".
 * Asks over a connection of its own. Returns false if nobody has it, or the
 * server does not say. */
bool session_holder(
    struct execctl *ctl, const char *session, char *peer, size_t cap);

/* Finds the one session that begins with `prefix', on the server of the command
 * line, over a connection of its own. Returns 0, and *session is the caller's;
 * or an exit status after a message. */
int session_find(struct execctl *ctl, const char *prefix, char **session);

/* Finds the newest command of the session that is connected. Returns 0, and
 * *process is the caller's; or an exit status after a message. */
int session_newest_process(struct execctl *ctl, char **process, bool *tty);

/* A connection of its own, to the same server: to[] becomes what `ctl' is
 * before it connects. The caller ends it with execctl_clear(). */
void execctl_beside(struct execctl *to, const struct execctl *ctl);
