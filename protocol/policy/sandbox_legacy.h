/* SPDX-License-Identifier: ISC */
/*
 * Decodes the older forms of a client's sandbox description (doc/sandbox.md
 * section A8) into a context of version 0.169.0. Nothing here looks at the
 * disk.
 *
 * Decoded values are in the arena of doc, which the caller clears. doc may be
 * zeroed, or hold the message that the value came in. The functions return 0,
 * or -EBADMSG with a message in error[ARGS_ERROR_MAX]; *out is then the
 * strictest context.
 *
 * Paths are plain and absolute. cwd becomes the policy cwd and the only root,
 * which is what these forms call a workspace. cwd may be NULL.
 */
#pragma once

#include "sandbox_context.h"

/* The most writable roots of a policy. Each becomes five entries, which
 * together with the entries of every policy must not exceed
 * SANDBOX_LIST_MAX. */
#define SANDBOX_LEGACY_ROOTS_MAX ((SANDBOX_LIST_MAX - 8) / 5)

/* Decodes a legacy SandboxPolicy:
 * {"type":"read-only"|"workspace-write"|...}. */
int sandbox_policy_decode(struct json_doc *doc, const struct json_value *v,
    const char *cwd, struct sandbox_context *out, char *error);

enum sandbox_mode {
	SANDBOX_MODE_NONE,   /* no sandbox; *out is a `disabled` context */
	SANDBOX_MODE_WANTED, /* auto, and there is something to enforce */
	/* require, even if there is nothing to enforce */
	SANDBOX_MODE_REQUIRED,
};

struct sandbox_launch {
	enum sandbox_mode mode;
	/* independent of the mode; see section A7 */
	bool enforce_managed_network;
};

/* Returns true for a SandboxLaunchConfig: unlike a context of 0.169.0 it has
 * `mode` and no `permissions`. */
bool sandbox_is_launch_config(const struct json_value *v);

/* Decodes a SandboxLaunchConfig. Its sandboxPolicyCwd takes precedence over
 * cwd. On error *launch asks for a sandbox. */
int sandbox_launch_decode(struct json_doc *doc, const struct json_value *v,
    const char *cwd, struct sandbox_context *out, struct sandbox_launch *launch,
    char *error);

/*
 * Decodes policy_json_or_preset of the runner dialect: `read-only`,
 * `workspace-write`, or the JSON text of a legacy policy. A policy without a
 * sandbox, or with an external one, is an error. The text need not stay valid
 * afterwards.
 */
int sandbox_preset_decode(struct json_doc *doc, struct slice text,
    const char *cwd, struct sandbox_context *out, char *error);
