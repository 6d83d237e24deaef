/* SPDX-License-Identifier: ISC */
/*
 * The sandbox of execctl cp, ls and cat.
 */
#ifndef FILES_SANDBOX_H
#define FILES_SANDBOX_H

#include "ctl.h"

/* Rows of their tables of options. */
#define FILES_SANDBOX_OPTIONS                                                  \
	{ "sandbox", 's', "PROFILE", "read-only or workspace-write" },         \
	{                                                                      \
		"cwd", 'C', "DIRECTORY",                                       \
		    "the workspace of the sandbox (the home directory)"        \
	}

/* Takes --sandbox and --cwd; the server is connected. 0, or an exit status
 * after saying why. */
int files_sandbox_take(struct ctl *ctl);

/* Adds the context to params of a request of files, if there is one. */
void files_sandbox_add(struct json_writer *w);

#endif
