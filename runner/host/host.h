/* SPDX-License-Identifier: ISC */
/*
 * The seam between what a dialect of frames decides (runner/compat) and what an
 * operating system does. host_linux.c is behind it on Linux, runner/windows on
 * Windows; what is above it compiles for both from one source.
 *
 * A program runs one command for one parent, so there is one parent, and it has
 * no handle. All events come from host_run(), one at a time.
 */
#pragma once

#include "base.h"
#include "frames.h"
#include "json.h"

/* --- the parent --------------------------------------------------------- */

struct parent_events {
	/* A whole frame came. The text is valid during the call. */
	void (*message)(const char *text, size_t len);
	/* Everything is written after the parent was congested. */
	void (*drained)(void);
	/* The parent will send no more; it may have ended inside a frame. */
	void (*ended)(bool inside_frame);
	/*
	 * Nothing more can be read: -EBADMSG is an empty frame, -EMSGSIZE one
	 * of more than FRAMES_MESSAGE_MAX bytes. After another -errno nothing
	 * can be written either.
	 */
	void (*broken)(int err);
};

/* Begins to read. The host knows already where the parent is. */
void parent_open(const struct parent_events *on);

/* Begin and send a frame, which is one JSON value. */
struct json_writer parent_begin(void);
void parent_send(void);

/* Tells whether the parent reads too slowly; `drained` follows. */
bool parent_congested(void);

/* Takes no more frames; what was sent is still written. */
void parent_stop_reading(void);

/* --- a command ---------------------------------------------------------- */

struct command;

struct command_request {
	/* the policy, the terminal, the input and the time limit */
	const struct frames_spawn *asked;
	char *const *argv; /* not empty */
	char *const *envp; /* "NAME=value", the whole environment */
	const char *cwd;   /* absolute */
};

struct command_events {
	void (*output)(bool is_stderr, const void *data, size_t len);
	/*
	 * The command has ended, nothing that it started is left, and all
	 * output was told. The last event of a command. The code is that of the
	 * operating system, whole.
	 */
	void (*closed)(int64_t exit_code, bool timed_out);
};

/* The longest text of an error. */
#define COMMAND_ERROR_MAX ARGS_ERROR_MAX

/* Why a command was not started. */
struct command_error {
	const char *code; /* "spawn_failed" or "sandbox_unavailable" */
	uint32_t windows_error;
	char message[COMMAND_ERROR_MAX];
};

/*
 * Starts a command under exactly the policy that is asked for, or returns NULL
 * with *e. There is no second attempt with less. The caller ends with
 * command_free().
 */
struct command *command_start(const struct command_request *r,
    const struct command_events *on, struct command_error *e);

/* Returns the process id of the operating system. */
int64_t command_id(const struct command *c);

/* Stops telling output until it is called with false. */
void command_pause(struct command *c, bool paused);

/*
 * Writes or queues a copy of the data. Data for a command that reads no more is
 * dropped. Returns false if too much is queued already.
 */
bool command_write(struct command *c, struct slice data);

/* Closes the input after everything written so far; false as above. */
bool command_end_input(struct command *c);

/* Returns 0 or -errno; -ENOTTY without a terminal. */
int command_resize(struct command *c, uint16_t rows, uint16_t cols);

/* Kills the command and all that it started, without waiting for them. */
void command_kill_tree(struct command *c);

/* Kills what is left and waits for it. NULL is fine. */
void command_free(struct command *c);

/* --- the program -------------------------------------------------------- */

/* Serves until *finished is true and everything is written to the parent. */
void host_run(const bool *finished);

/* Tells whether a path without NUL is absolute here. */
bool host_path_is_absolute(struct slice path);
