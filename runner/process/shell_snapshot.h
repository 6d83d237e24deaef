/* SPDX-License-Identifier: ISC */
/*
 * What a login shell sets up for its commands, taken once and given to each
 * command without the login: functions, aliases, options and exported
 * variables (doc/protocol.md section 13.8). This file knows the shells: what a
 * capture runs, what comes out of it, and how a command gets it back. It starts
 * nothing.
 *
 * Whatever the user's files print in between is the user's own: what looks like
 * a state is restored in the sandbox where it was taken, with the same rights.
 */
#pragma once

#include "base.h"
#include "buf.h"

/* The output of a capture: the state, and what the user's files print. */
#define SNAPSHOT_OUTPUT_MAX (5u << 20)
/* Exported variables, all together. execve(2) permits a quarter of the limit
 * of the stack, which is 2 MiB, and 128 KiB for one string. */
#define SNAPSHOT_EXPORTS_MAX (512u << 10)
#define SNAPSHOT_STRING_MAX  (128u << 10)

#define SNAPSHOT_NONCE_CHARS 32

struct snapshot_shell;

/* What a capture yields. */
struct shell_state {
	int fd; /* owned: sealed memory that the shell reads; -1: none */
	char **exports; /* owned, "NAME=value", one block */
};

/* Returns the shell of that name. NULL: its state cannot be taken. */
const struct snapshot_shell *shell_snapshot_find(struct slice name);

/* Writes random characters, and a NUL. */
void shell_snapshot_nonce(char nonce[SNAPSHOT_NONCE_CHARS + 1]);

/* Returns the text of `SHELL -lc TEXT` that prints the state, between two
 * marks with the nonce. The caller frees it. */
char *shell_snapshot_script(
    const struct snapshot_shell *shell, const char *nonce);

/*
 * Takes the state out of what the script printed. Variables that the capture
 * was started with and that have the same value are left out; `began` has
 * these, each between NULs. Returns 0; -ENODATA if the script did not come to
 * its end; -E2BIG if a command could not get the variables; or another -errno.
 */
int shell_snapshot_take(const struct buf *output, const char *nonce,
    const struct buf *began, struct shell_state *state);
void shell_state_clear(struct shell_state *state);

/*
 * How a command gets the state, which is its descriptor 3: the argument in
 * place of "-lc", and the text in place of its own, which the caller frees.
 * NULL: the text would be too long for execve(2).
 */
const char *shell_snapshot_flags(const struct snapshot_shell *shell);
char *shell_snapshot_restore(
    const struct snapshot_shell *shell, struct slice text);
