/* SPDX-License-Identifier: ISC */
/*
 * Starts a command on Windows: pipes or a pseudo console, a restricted token, a
 * job that ends with the runner, CreateProcess. The command is made suspended
 * and runs when it is in its job, so nothing that it starts is outside.
 */
#pragma once

#include <windows.h>

#include "host.h"

struct started {
	HANDLE process;
	HANDLE job; /* everything in it ends when this is closed */
	DWORD pid;
	HPCON console;	     /* NULL: pipes */
	HANDLE in, out, err; /* our ends, which block; NULL: none */
};

/* Returns true, or false with *e and nothing left open. */
bool start_windows(const struct command_request *r, struct started *s,
    struct command_error *e);

/*
 * Fills *e with the step that failed and the number that Windows gave. Returns
 * false. A step that enforces the policy is `sandbox_unavailable`.
 */
bool start_failed(
    struct command_error *e, const char *code, const char *step, DWORD number);

#define CODE_SPAWN   "spawn_failed"
#define CODE_SANDBOX "sandbox_unavailable"

/* Of start_program.c: what CreateProcess gets of text. Freed by free(). */
struct program {
	WCHAR *path, *line, *cwd, *environment;
};
bool program_prepare(const struct command_request *r, struct program *p,
    struct command_error *e);
void program_clear(struct program *p);

/*
 * Of start_token.c: makes the token of a command that may write only where one
 * of cap_sids, its logon session, a sandbox user or everyone may.
 */
bool token_make(
    const struct json_value *cap_sids, HANDLE *token, struct command_error *e);
