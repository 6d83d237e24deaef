/* SPDX-License-Identifier: ISC */
/*
 * The sandbox profiles that execctl knows by name, and the context that a
 * request carries (doc/sandbox.md section A3).
 */
#ifndef SANDBOX_PROFILE_H
#define SANDBOX_PROFILE_H

#include <stdbool.h>

#include "buf.h"
#include "execctl.h"

/* Appends the JSON text for a command in `cwd`, which becomes the workspace.
 * `network` allows sockets. False: there is no such profile. */
bool sandbox_profile_write(
    struct buf *b, const char *profile, const char *cwd, bool network);

/*
 * The sandbox options of execctl cp, ls and cat.
 */

/* Rows for the option tables of these commands. */
#define FILES_SANDBOX_OPTIONS                                                  \
	{ "sandbox", 's', "PROFILE", "read-only or workspace-write" },         \
	{                                                                      \
		"cwd", 'C', "DIRECTORY",                                       \
		    "the workspace of the sandbox (the home directory)"        \
	}

/* Reads --sandbox and --cwd. The server must be connected. Returns 0, or an
 * exit status after a message. */
int files_sandbox_take(struct execctl *ctl);

/* Adds the sandbox context, if there is one, to the params of a file
 * request. */
void files_sandbox_add(struct json_writer *w);

/* Returns the sandbox context as JSON text, for a command that does part of the
 * work; NULL: there is none. It stays this file's. */
const char *files_sandbox_text(void);

#endif
