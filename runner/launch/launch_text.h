/* SPDX-License-Identifier: ISC */
/*
 * What execd-launch.exe reads and composes of text: its command line, frames
 * for a runner, and DACLs. Plain C, UTF-8, no system calls.
 */
#pragma once

#include <stdbool.h>

#include "buf.h"

/* The most SIDs, which is that of the frames. */
#define LAUNCH_LIST_MAX 64

/* The longest error text. */
#define LAUNCH_ERROR_MAX 256

struct launch_list {
	const char *items[LAUNCH_LIST_MAX];
	size_t count;
};

/* All strings are those of argv. */
struct launch_options {
	bool help, version, inner, frames, network_is_blocked, sandbox_user;
	const char *user, *password_env; /* NULL: the launcher's own user */
	const char *runner, *desktop, *cwd, *policy;
	struct launch_list sids;    /* --cap-sid */
	uint64_t timeout_ms;	    /* of the command; 0: none */
	uint64_t start_timeout_ms;  /* how long a runner may take to begin */
	const char *const *command; /* ends with NULL; empty with --frames */
};

/* Returns 0, or -EINVAL with the reason in error[LAUNCH_ERROR_MAX]. */
int launch_parse(
    struct launch_options *o, const char *const *argv, char *error);

/* Appends the frame that starts o->command with this environment on the
 * private desktop o->desktop. */
void launch_put_spawn(struct buf *out, const struct launch_options *o,
    const char *const *environment);

/* Appends a frame with input for the command; n 0 is the end of it. */
void launch_put_input(struct buf *out, const void *data, size_t n);

/* Appends a DACL as SDDL: these rights for the owner and for these SIDs. */
void launch_put_dacl(
    struct buf *out, const char *rights, const struct launch_list *sids);
