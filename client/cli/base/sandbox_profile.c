/* SPDX-License-Identifier: ISC */
/*
 * Converts a sandbox profile's name to the context that process/start takes.
 */
#include "sandbox_profile.h"

#include <string.h>

#include "json.h"
#include "path_uri.h"

static void
write_entry(struct json_writer *w, const char *kind, const char *subpath,
    const char *access)
{
	json_begin(w, '{');
	json_key(w, "path");
	json_begin(w, '{');
	json_key_cstring(w, "type", "special");
	json_key(w, "value");
	json_begin(w, '{');
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
	json_key(w, "file_system");
	json_begin(w, '{');
	json_key_cstring(w, "type", "restricted");
	json_key(w, "entries");
	json_begin(w, '[');
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
	json_key(&w, "cwd");
	json_path(&w, cwd);
	json_key(&w, "workspaceRoots");
	json_begin(&w, '[');
	json_path(&w, cwd);
	json_end(&w, ']');
	json_key_cstring(&w, "windowsSandboxLevel", "disabled");
	json_end(&w, '}');
	return true;
}
