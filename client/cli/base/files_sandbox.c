/* SPDX-License-Identifier: ISC */
/*
 * execctl cp, ls and cat with a sandbox profile: every file request carries the
 * same context.
 */
#include "files_sandbox.h"

#include "execctl.h"
#include "sandbox_profile.h"

static struct buf context; /* empty: no sandbox */

int
files_sandbox_take(struct execctl *ctl)
{
	const char *profile = option(ctl->parsed, "sandbox");
	const char *given = option(ctl->parsed, "cwd");
	_cleanup_free_ char *workspace = NULL;

	if (profile == NULL)
		return given == NULL
			   ? 0
			   : execctl_fail(ctl, EXIT_CTL_USAGE,
				 "--cwd is the workspace of --sandbox, and "
				 "means nothing without it");
	workspace = remote_path(ctl, given != NULL ? given : "");
	buf_init(&context, 1u << 20);
	if (sandbox_profile_write(&context, profile, workspace, false)) {
		/* files_sandbox_text() returns a string, so a NUL follows the
		 * text. */
		buf_put(&context, "", 1);
		context.len--;
		return 0;
	}
	return execctl_fail(ctl, EXIT_CTL_USAGE,
	    "--sandbox: `%s' is neither read-only nor workspace-write",
	    profile);
}

const char *
files_sandbox_text(void)
{
	return context.len == 0 ? NULL : (const char *)context.data;
}

void
files_sandbox_add(struct json_writer *w)
{
	if (context.len == 0)
		return;
	json_key(w, "sandbox");
	json_raw(w, (const char *)context.data, context.len);
}
