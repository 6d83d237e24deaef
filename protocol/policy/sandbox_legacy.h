/* SPDX-License-Identifier: ISC */
/*
 * The older shapes of a client's sandbox intent (doc/sandbox.md section A8),
 * converted into the context of 0.169.0. Pure: binds nothing, looks at no
 * disk.
 *
 * Everything decoded lives in doc's arena; doc may be zeroed or hold the
 * message the value came in, and is the caller's to clear. Functions return
 * 0, or -EBADMSG with the message in error[ARGS_ERROR_MAX]; *out is then the
 * strictest context there is.
 *
 * Paths are plain and absolute. cwd is what these shapes call a workspace: it
 * becomes the policy cwd and the only root. NULL: there is none.
 */
#ifndef SANDBOX_LEGACY_H
#define SANDBOX_LEGACY_H

#include "sandbox_context.h"

/* Writable roots of a policy: each becomes five entries, and with what every
 * policy has they stay below SANDBOX_LIST_MAX. */
#define SANDBOX_LEGACY_ROOTS_MAX ((SANDBOX_LIST_MAX - 8) / 5)

/* A legacy SandboxPolicy: {"type":"read-only"|"workspace-write"|...}. */
int sandbox_policy_decode(struct json_doc *doc, const struct json_value *v,
    const char *cwd, struct sandbox_context *out, char *error);

enum sandbox_mode {
	SANDBOX_MODE_NONE,     /* no sandbox; *out is that of `disabled` */
	SANDBOX_MODE_WANTED,   /* auto, and there is something to enforce */
	SANDBOX_MODE_REQUIRED, /* require, whatever there is to enforce */
};

struct sandbox_launch {
	enum sandbox_mode mode;
	bool enforce_managed_network; /* in any mode; section A7 says what
				       * to do with it */
};

/* Whether it is a SandboxLaunchConfig, not a context of 0.169.0: it has
 * `mode` and no `permissions`. */
bool sandbox_is_launch_config(const struct json_value *v);

/* sandboxPolicyCwd comes before cwd. On error *launch asks for a sandbox. */
int sandbox_launch_decode(struct json_doc *doc, const struct json_value *v,
    const char *cwd, struct sandbox_context *out, struct sandbox_launch *launch,
    char *error);

/* The runner dialect's policy_json_or_preset: `read-only`, `workspace-write`
 * or the JSON text of a legacy policy. What asks for no sandbox, or for that
 * of somebody else, is an error. The text may go when this returns. */
int sandbox_preset_decode(struct json_doc *doc, struct slice text,
    const char *cwd, struct sandbox_context *out, char *error);

#endif
