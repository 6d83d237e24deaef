/* SPDX-License-Identifier: ISC */
/*
 * Decodes a preset of the runner dialect: the name or the text of a legacy
 * policy (doc/sandbox.md section A8).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sandbox_legacy.h"

#define NOT_A_SANDBOX                                                          \
	"DangerFullAccess and ExternalSandbox are not supported for "          \
	"sandboxing"

static int
fail(struct sandbox_context *out, char *error, const char *text)
{
	memset(out, 0, sizeof(*out));
	snprintf(error, ARGS_ERROR_MAX, "%s", text);
	return -EBADMSG;
}

/* A preset is the policy of that type with all defaults. */
static int
decode_default(struct json_doc *doc, struct slice type, const char *cwd,
    struct sandbox_context *out, char *error)
{
	struct json_value member = {
		.type = JSON_STRING, .text = type, .key = SLICE("type")
	};
	struct json_value policy = {
		.type = JSON_OBJECT, .count = 1, .first = &member
	};

	return sandbox_policy_decode(doc, &policy, cwd, out, error);
}

int
sandbox_preset_decode(struct json_doc *doc, struct slice text, const char *cwd,
    struct sandbox_context *out, char *error)
{
	struct json_doc policy;
	int err;

	if (slice_equal(text, SLICE("danger-full-access")) ||
	    slice_equal(text, SLICE("external-sandbox")))
		return fail(out, error, NOT_A_SANDBOX);
	if (slice_equal(text, SLICE("read-only")) ||
	    slice_equal(text, SLICE("workspace-write")))
		return decode_default(doc, text, cwd, out, error);
	/* Decoded values are copied to the arena of doc, so the tree can be
	 * cleared. */
	if (json_parse(&policy, text.ptr, text.len) < 0)
		return fail(out, error, policy.error);
	err = sandbox_policy_decode(doc, policy.root, cwd, out, error);
	json_clear(&policy);
	if (err == 0 && out->type != SANDBOX_MANAGED)
		return fail(out, error, NOT_A_SANDBOX);
	return err;
}
