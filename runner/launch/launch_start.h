/* SPDX-License-Identifier: ISC */
/*
 * Two launchers: the outer one has the caller's standard handles, and starts
 * the inner one as the sandbox user, which is the only logon. The inner one
 * starts a runner for each spawn_request. Whatever fails ends the launcher, and
 * with it everything that it has started.
 */
#pragma once

#include "launch_text.h"
#include "pipe_end.h"

/* The exit status of a launcher that failed itself. */
#define LAUNCH_FAILED 125

/* What an inner launcher adds to its status, unless it failed: one that was
 * killed has no such status. */
#define LAUNCH_SERVED 64

#define LAUNCH_SANDBOX "sandbox_unavailable"
#define LAUNCH_SPAWN   "spawn_failed"

/* The version of the last spawn_request; 0: failures are no frames. */
extern unsigned launch_version;

/* Tells the reason on standard error, or in a frame on standard output, and
 * ends. A number that is not 0 is the error of Windows. */
void launch_fail(const char *code, DWORD number, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

/* Writes a frame; returns ERROR_SUCCESS or the error of Windows. */
DWORD launch_write_frame(
    const struct pipe_end *to, const char *text, size_t len);

/* Writes an error frame to standard output. */
void launch_say_error(const char *code, DWORD number, const char *message);

/* From UTF-8; the caller frees the result. */
WCHAR *launch_wide(const char *text);

/*
 * Starts a program, as o->user if that is not NULL, in a job that ends with the
 * launcher. It inherits what can be inherited.
 */
PROCESS_INFORMATION launch_process(
    WCHAR *line, STARTUPINFOW *info, const struct launch_options *o);

/* The inner launcher, with our ends of its standard handles. */
struct launch_inner {
	struct pipe_end to, from, errors;
	HANDLE process;
	HANDLE errors_thread; /* relays its standard error */
};
extern struct launch_inner launch_inner;

void launch_inner_start(const struct launch_options *o);

/* Closes what we have of it and waits for its end. Returns its exit status, or
 * LAUNCH_FAILED if it did not end by itself. */
DWORD launch_inner_finish(void);

/* --- launch_command.c --------------------------------------------------- */

/* The outer launcher: the caller's standard handles on one side, frames of the
 * inner launcher on the other. Both functions return the exit status. */

/* Runs the command of the options. */
unsigned launch_command(
    const struct launch_options *o, const char *const *environment);

/* Passes frames on as they are. */
unsigned launch_relay(void);

/* --- launch_frames.c ---------------------------------------------------- */

/* The inner launcher: frames on standard handles, and a runner for each
 * spawn_request, one after the other. */

/* Serves until the input ends. Returns LAUNCH_SERVED, or one more if that ended
 * a command. The options must stay valid. */
unsigned launch_frames_serve(const struct launch_options *o);
