/* SPDX-License-Identifier: ISC */
/*
 * The sandbox options of execctl cp, ls and cat.
 */
#ifndef FILES_SANDBOX_H
#define FILES_SANDBOX_H

#include "execctl.h"

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
