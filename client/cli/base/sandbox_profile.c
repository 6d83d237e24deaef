/* SPDX-License-Identifier: ISC */
/*
 * The sandbox profiles that execctl knows by name, and the context that a
 * request carries (doc/sandbox.md section A3).
 */
#include "execctl.h"

#include "path_uri.h"

static void
write_entry(struct json_writer *w, const char *kind, const char *subpath,
    const char *access)
{
	json_begin(w, '{');
	json_key_begin(w, "path", '{');
	json_key_cstring(w, "type", "special");
	json_key_begin(w, "value", '{');
	json_key_cstring(w, "kind", kind);
	if (subpath != NULL)
		json_key_cstring(w, "subpath", subpath);
	json_end(w, '}');
	json_end(w, '}');
	json_key_cstring(w, "access", access);
	json_end(w, '}');
}

/* The workspace is writable, except for the directories that configure
 * tools. */
static void
write_workspace(struct json_writer *w)
{
	static const char *const guarded[] = { ".git", ".agents", ".codex",
		".aws" };

	write_entry(w, "project_roots", NULL, "write");
	write_entry(w, "slash_tmp", NULL, "write");
	write_entry(w, "tmpdir", NULL, "write");
	for (size_t i = 0; i < nitems(guarded); i++)
		write_entry(w, "project_roots", guarded[i], "read");
}

static void
write_permissions(struct json_writer *w, bool write, bool network)
{
	json_begin(w, '{');
	json_key_cstring(w, "type", "managed");
	json_key_cstring(w, "network", network ? "enabled" : "restricted");
	json_key_begin(w, "file_system", '{');
	json_key_cstring(w, "type", "restricted");
	json_key_begin(w, "entries", '[');
	write_entry(w, "root", NULL, "read");
	if (write)
		write_workspace(w);
	json_end(w, ']');
	json_end(w, '}');
	json_end(w, '}');
}

bool
sandbox_profile_write(
    struct buf *b, const char *profile, const char *cwd, bool network)
{
	bool write = strcmp(profile, "workspace-write") == 0;
	struct json_writer w;

	if (!write && strcmp(profile, "read-only") != 0)
		return false;
	json_writer_init(&w, b);
	json_begin(&w, '{');
	json_key(&w, "permissions");
	write_permissions(&w, write, network);
	json_key_path(&w, "cwd", cwd);
	json_key_begin(&w, "workspaceRoots", '[');
	json_path(&w, cwd);
	json_end(&w, ']');
	json_key_cstring(&w, "windowsSandboxLevel", "disabled");
	json_end(&w, '}');
	return true;
}

/*
 * execctl cp, ls and cat with a sandbox profile: every file request carries the
 * same context.
 */

static struct buf context; /* it is empty without a sandbox */

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
