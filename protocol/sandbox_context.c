/*
 * The client's portable sandbox intent, decoded and validated. Members are
 * snake_case inside `permissions` and camelCase outside.
 */
#include "sandbox_context.h"

#include <stdio.h>
#include <string.h>

/* Passes an inner object's error on. */
static bool
finish(struct args *outer, const struct args *in)
{
	if (args_end(in) < 0)
		args_fail(outer, "%s", in->error);
	return args_end(in) == 0;
}

static void
decode_special(
    struct args *a, const struct json_value *v, struct sandbox_entry *e)
{
	static const char *const kinds[] = { "root", "minimal",
		"current_working_directory", "project_roots", "tmpdir",
		"slash_tmp", "unknown", NULL };
	struct args in;

	args_init(&in, a->doc, v, "FileSystemSpecialPath");
	e->special = (enum sandbox_special)args_enum(&in, "kind", kinds);
	args_opt_string(&in, "subpath", &e->text);
	finish(a, &in);
}

static void
decode_entry_path(
    struct args *a, const struct json_value *v, struct sandbox_entry *e)
{
	static const char *const types[] = { "path", "glob_pattern", "special",
		NULL };
	const struct json_value *value;
	struct args in;

	args_init(&in, a->doc, v, "FileSystemPath");
	e->kind = (enum sandbox_path_kind)args_enum(&in, "type", types);
	if (args_end(&in) == 0 && e->kind == SANDBOX_PATH) {
		e->path = args_path(&in, "path");
	} else if (args_end(&in) == 0 && e->kind == SANDBOX_GLOB) {
		e->text = args_string(&in, "pattern");
	} else if (args_end(&in) == 0) {
		value = args_object(&in, "value", "FileSystemSpecialPath");
		if (value != NULL)
			decode_special(&in, value, e);
	}
	finish(a, &in);
}

static bool
decode_entry(
    struct args *a, const struct json_value *v, struct sandbox_entry *e)
{
	static const char *const accesses[] = { "read", "write", "deny", "none",
		NULL };
	static const char *const missing[] = { "skip", NULL };
	const struct json_value *path;
	struct args in;
	int access;

	args_init(&in, a->doc, v, "FileSystemSandboxEntry");
	path = args_object(&in, "path", "FileSystemPath");
	if (path != NULL)
		decode_entry_path(&in, path, e);
	access = args_enum(&in, "access", accesses);
	e->access =
	    access > SANDBOX_DENY ? SANDBOX_DENY : (enum sandbox_access)access;
	if (json_get(v, "missing_path_behavior") != NULL &&
	    json_get(v, "missing_path_behavior")->type != JSON_NULL)
		args_enum(&in, "missing_path_behavior", missing);
	return finish(a, &in);
}

/* A list of the object, NULL when it is absent; too long is an error. */
static const struct json_value *
take_list(struct args *a, const char *key, bool required)
{
	const struct json_value *v = json_get(a->object, key);

	if (v == NULL && !required)
		return NULL;
	v = args_list(a, key);
	if (v != NULL && v->count > SANDBOX_LIST_MAX) {
		args_fail(a, "%s: %zu items, limit is %d", key, v->count,
		    SANDBOX_LIST_MAX);
		return NULL;
	}
	return v;
}

static void
decode_restricted(struct args *a, struct sandbox_context *c)
{
	const struct json_value *list = take_list(a, "entries", true);
	const struct json_value *depth =
	    json_get(a->object, "glob_scan_max_depth");

	if (list == NULL)
		return;
	c->entries =
	    json_alloc(a->doc, (list->count + 1) * sizeof(*c->entries));
	memset(c->entries, 0, (list->count + 1) * sizeof(*c->entries));
	for (const struct json_value *v = list->first; v; v = v->next)
		if (!decode_entry(a, v, &c->entries[c->nentries++]))
			return;
	c->glob_scan_max_depth = args_opt_u64(a, "glob_scan_max_depth", 0);
	if (depth != NULL && depth->type == JSON_NUMBER &&
	    c->glob_scan_max_depth == 0)
		args_fail(a, "invalid value: integer `0`, expected a nonzero "
			     "usize");
}

static void
decode_file_system(
    struct args *a, const struct json_value *v, struct sandbox_context *c)
{
	static const char *const types[] = { "restricted", "unrestricted",
		NULL };
	struct args in;

	args_init(&in, a->doc, v, "FileSystemPermissions");
	c->files_unrestricted = args_enum(&in, "type", types) == 1;
	if (args_end(&in) == 0 && !c->files_unrestricted)
		decode_restricted(&in, c);
	finish(a, &in);
}

static void
decode_permissions(
    struct args *a, const struct json_value *v, struct sandbox_context *c)
{
	static const char *const types[] = { "managed", "disabled", "external",
		NULL };
	static const char *const networks[] = { "restricted", "enabled", NULL };
	const struct json_value *fs;
	struct args in;

	args_init(&in, a->doc, v, "PermissionProfile");
	c->type = (enum sandbox_type)args_enum(&in, "type", types);
	c->files_unrestricted = c->type != SANDBOX_MANAGED;
	if (args_end(&in) == 0 && c->type == SANDBOX_MANAGED) {
		fs = args_object(&in, "file_system", "FileSystemPermissions");
		if (fs != NULL)
			decode_file_system(&in, fs, c);
	}
	if (args_end(&in) == 0 && c->type != SANDBOX_DISABLED)
		c->network_enabled = args_enum(&in, "network", networks) == 1;
	else
		c->network_enabled = true;
	finish(a, &in);
}

static void
decode_roots(struct args *a, struct sandbox_context *c)
{
	const struct json_value *list = take_list(a, "workspaceRoots", false);

	c->nroots = 0;
	if (list == NULL)
		return;
	c->roots = json_alloc(a->doc, (list->count + 1) * sizeof(*c->roots));
	for (const struct json_value *v = list->first; v; v = v->next)
		c->roots[c->nroots++] = args_path_value(a, v);
}

/* The newer place of cwd and roots; its roots replace the outer ones even
 * when it has none. */
static void
decode_policy_context(struct args *a, struct sandbox_context *c)
{
	const struct json_value *v =
	    args_opt_object(a, "policyContext", "PolicyContext");
	struct path_uri cwd;
	struct args in;

	if (v == NULL)
		return;
	args_init(&in, a->doc, v, "PolicyContext");
	if (args_opt_path(&in, "cwd", &cwd)) {
		c->cwd = cwd;
		c->has_cwd = true;
	}
	decode_roots(&in, c);
	finish(a, &in);
}

/* Known, checked, and without effect here. */
static void
decode_ignored(struct args *a)
{
	static const char *const overrides[] = { "noOverride",
		"escalatedSandboxWithRestrictions", "bypassSandboxFirstAttempt",
		NULL };
	static const char *const proxies[] = { "reconcile", "preserve", NULL };
	const struct json_value *v = json_get(a->object, "sandboxOverride");

	if (v != NULL && v->type != JSON_NULL)
		args_enum(a, "sandboxOverride", overrides);
	v = json_get(a->object, "windowsSandboxProxySettingsMode");
	if (v != NULL && v->type != JSON_NULL)
		args_enum(a, "windowsSandboxProxySettingsMode", proxies);
	args_default_bool(a, "useLegacyLandlock", false);
	v = json_get(a->object, "temporaryDirectories");
	if (v != NULL && v->type != JSON_NULL)
		take_list(a, "temporaryDirectories", false);
}

void
sandbox_context_decode(
    struct args *a, const struct json_value *v, struct sandbox_context *c)
{
	static const char *const levels[] = { "disabled", "restricted-token",
		"elevated", "mxc", NULL };
	const struct json_value *permissions;
	struct args in;

	memset(c, 0, sizeof(*c));
	args_init(&in, a->doc, v, "WireFileSystemSandboxContext");
	permissions = args_object(&in, "permissions", "PermissionProfile");
	if (permissions != NULL)
		decode_permissions(&in, permissions, c);
	c->has_cwd = args_opt_path(&in, "cwd", &c->cwd);
	decode_roots(&in, c);
	args_enum(&in, "windowsSandboxLevel", levels);
	c->has_home = args_opt_path(&in, "userHomeDir", &c->home);
	decode_policy_context(&in, c);
	decode_ignored(&in);
	c->unrestricted = c->files_unrestricted && c->network_enabled;
	finish(a, &in);
}
