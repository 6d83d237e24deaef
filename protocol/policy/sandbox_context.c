/* SPDX-License-Identifier: ISC */
/*
 * Decodes and validates a client's sandbox context (doc/sandbox.md sections A3
 * to A7, errors A9). Member names are snake_case inside `permissions` and
 * camelCase outside.
 */
#include "sandbox_context.h"

#include <ctype.h>

#include "path_map.h"
#include "sandbox_legacy.h"
#include "windows_path.h"

#define NUL_BYTE "nul byte found in provided data"

/* Reports the error of an inner object in the outer one. Returns true if there
 * was none. */
static bool
finish(struct args *outer, const struct args *in)
{
	if (args_end(in) < 0)
		args_fail(outer, "%s", in->error);
	return args_end(in) == 0;
}

/* Text that becomes part of a path must not contain a NUL. */
static void
check_text(struct args *a, struct slice text)
{
	if (memchr(text.ptr, '\0', text.len) != NULL)
		args_fail(a, NUL_BYTE);
}

/* A path of a client with drive letters. What has no place here is an error,
 * because nothing in the older forms may be left out. */
static struct path_uri
windows_path(struct args *a, const char *what, struct slice text)
{
	struct path_uri path;
	char error[512];

	if (path_uri_parse(&path, a->doc, text, error, sizeof(error)) == 0 &&
	    !path.foreign)
		return path;
	if (path.foreign)
		snprintf(error, sizeof(error), "'%.*s' is invalid on 'linux'%s",
		    (int)(text.len < 300 ? text.len : 300), text.ptr,
		    path_uri_hint(&path));
	args_fail(a, "%s: %s", what, error);
	return (struct path_uri){ .path = "/" };
}

/* Converts the path to a URI with all special characters escaped. The URI
 * parser then treats it like any other path. */
struct path_uri
sandbox_plain_path(struct args *a, const char *what, struct slice text)
{
	struct path_uri path = { .path = "/" };
	char *uri = json_alloc(a->doc, 8 + 3 * text.len), *to = uri;
	char error[512];

	if (path_uri_is_windows(text))
		return windows_path(a, what, text);
	if (text.len == 0 || text.ptr[0] != '/') {
		args_fail(a, "%s: expected an absolute path", what);
		return path;
	}
	to += sprintf(to, "file://");
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (isalnum(c) || (c != '\0' && strchr("/-_.", c) != NULL))
			*to++ = (char)c;
		else
			to += sprintf(to, "%%%02X", c);
	}
	if (path_uri_parse(&path, a->doc,
		(struct slice){ uri, (size_t)(to - uri) }, error,
		sizeof(error)) < 0)
		args_fail(a, "%s: %s", what, error);
	return path;
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
	check_text(&in, e->text);
	finish(a, &in);
}

/* Decodes a file URI. In the older forms a plain path is accepted as well. */
static void
decode_path(struct args *a, struct sandbox_entry *e, bool older)
{
	const struct json_value *v = json_get(a->object, "path");

	if (older && v != NULL && v->type == JSON_STRING && v->text.len > 0 &&
	    v->text.ptr[0] == '/')
		e->path = sandbox_plain_path(a, "path", v->text);
	else
		e->path = args_path(a, "path");
}

static void
decode_entry_path(struct args *a, const struct json_value *v,
    struct sandbox_entry *e, bool older)
{
	static const char *const types[] = { "path", "glob_pattern", "special",
		NULL };
	const struct json_value *value;
	struct args in;

	args_init(&in, a->doc, v, "FileSystemPath");
	e->kind = (enum sandbox_path_kind)args_enum(&in, "type", types);
	if (args_end(&in) == 0 && e->kind == SANDBOX_PATH) {
		decode_path(&in, e, older);
	} else if (args_end(&in) == 0 && e->kind == SANDBOX_GLOB) {
		e->text = args_string(&in, "pattern");
		check_text(&in, e->text);
	} else if (args_end(&in) == 0) {
		value = args_object(&in, "value", "FileSystemSpecialPath");
		if (value != NULL)
			decode_special(&in, value, e);
	}
	finish(a, &in);
}

/* Checks an enum that may be absent or null and has no effect here. */
static void
check_enum(struct args *a, const char *key, const char *const variants[])
{
	const struct json_value *v = json_get(a->object, key);

	if (v != NULL && v->type != JSON_NULL)
		args_enum(a, key, variants);
}

/* Replaces a pattern or subpath of a client with drive letters. Returns 0 or an
 * error of path_map.h, which is reported if the entry may not be left out. */
static int
map_text(struct args *a, struct sandbox_entry *e)
{
	const struct path_map *map = path_map_used();
	char *out = json_alloc(a->doc, path_map_room(map, e->text.len));
	char why[PATH_MAP_WHY_MAX];
	int err = path_map_pattern(map, e->text, out, why);

	if (err == 0)
		e->text = slice_of(out);
	else if (err == -EINVAL || (err == -EXDEV && e->access == SANDBOX_DENY))
		args_fail(a, "path-map: %s", why);
	return err;
}

/*
 * Applies the map to an entry. Returns false if the entry has no effect: it
 * names what only the client's machine has, or it grants a directory in which
 * only some roots of the map have a place here. A denial of such a directory is
 * an error, because it would not hold.
 */
static bool
map_entry(struct args *a, struct sandbox_entry *e)
{
	bool deny = e->access == SANDBOX_DENY;

	if (path_map_used() == NULL || args_end(a) < 0)
		return true;
	if (e->kind == SANDBOX_SPECIAL && windows_path_begins(e->text))
		args_fail(a, "path-map: the subpath `%.*s` is not relative",
		    (int)(e->text.len < 300 ? e->text.len : 300), e->text.ptr);
	else if (e->kind != SANDBOX_PATH)
		return e->text.len == 0 || map_text(a, e) == 0;
	else if (deny &&
		 (e->path.elsewhere || (e->path.foreign && !e->path.outside)))
		args_fail(a,
		    "path-map: `%.*s`: a root of path-map below it leads "
		    "elsewhere, so it cannot be denied as a whole",
		    (int)(e->path.uri.len < 300 ? e->path.uri.len : 300),
		    e->path.uri.ptr);
	return e->kind != SANDBOX_PATH || !e->path.foreign;
}

static bool
decode_entry(struct args *a, const struct json_value *v,
    struct sandbox_entry *e, bool older, bool *counts)
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
		decode_entry_path(&in, path, e, older);
	access = args_enum(&in, "access", accesses);
	e->access =
	    access > SANDBOX_DENY ? SANDBOX_DENY : (enum sandbox_access)access;
	check_enum(&in, "missing_path_behavior", missing);
	*counts = map_entry(&in, e);
	return finish(a, &in);
}

const struct json_value *
sandbox_list(struct args *a, const char *key, bool required, size_t max)
{
	const struct json_value *v = json_get(a->object, key);

	if (v == NULL && !required)
		return NULL;
	v = args_list(a, key);
	if (v != NULL && v->count > max) {
		args_fail(a, "%s: %zu items, limit is %zu", key, v->count, max);
		return NULL;
	}
	return v;
}

static void
decode_depth(struct args *a, struct sandbox_context *c)
{
	const struct json_value *v = json_get(a->object, "glob_scan_max_depth");

	c->glob_scan_max_depth = args_opt_u64(a, "glob_scan_max_depth", 0);
	if (v != NULL && v->type == JSON_NUMBER && c->glob_scan_max_depth == 0)
		args_fail(a, "invalid value: integer `0`, expected a nonzero "
			     "usize");
}

void
sandbox_entries_decode(struct args *a, struct sandbox_context *c, bool older)
{
	const struct json_value *list =
	    sandbox_list(a, "entries", !older, SANDBOX_LIST_MAX);

	decode_depth(a, c);
	if (list == NULL)
		return;
	c->entries =
	    json_alloc(a->doc, (list->count + 1) * sizeof(*c->entries));
	memset(c->entries, 0, (list->count + 1) * sizeof(*c->entries));
	for (const struct json_value *v = list->first; v; v = v->next) {
		bool counts = true;

		if (!decode_entry(
			a, v, &c->entries[c->nentries], older, &counts))
			return;
		c->nentries += counts;
	}
}

static void
decode_file_system(struct args *a, const struct json_value *v,
    struct sandbox_context *c, bool plain)
{
	static const char *const types[] = { "restricted", "unrestricted",
		NULL };
	struct args in;

	args_init(&in, a->doc, v, "FileSystemPermissions");
	c->files_unrestricted = args_enum(&in, "type", types) == 1;
	if (args_end(&in) == 0 && !c->files_unrestricted)
		sandbox_entries_decode(&in, c, plain);
	finish(a, &in);
}

static void
decode_permissions(struct args *a, const struct json_value *v,
    struct sandbox_context *c, bool plain)
{
	static const char *const types[] = { "managed", "disabled", "external",
		NULL };
	static const char *const networks[] = { "restricted", "enabled", NULL };
	const struct json_value *fs;
	struct args in;

	args_init(&in, a->doc, v, "PermissionProfile");
	c->type = (enum sandbox_type)args_enum(&in, "type", types);
	if (!finish(a, &in))
		return;
	c->files_unrestricted = c->type != SANDBOX_MANAGED;
	if (c->type == SANDBOX_MANAGED) {
		fs = args_object(&in, "file_system", "FileSystemPermissions");
		if (fs != NULL)
			decode_file_system(&in, fs, c, plain);
	}
	if (c->type == SANDBOX_DISABLED)
		c->network_enabled = true;
	else
		c->network_enabled = args_enum(&in, "network", networks) == 1;
	finish(a, &in);
}

static void
decode_roots(struct args *a, struct sandbox_context *c)
{
	const struct json_value *list =
	    sandbox_list(a, "workspaceRoots", false, SANDBOX_LIST_MAX);

	c->nroots = 0;
	if (list == NULL)
		return;
	c->roots = json_alloc(a->doc, (list->count + 1) * sizeof(*c->roots));
	for (const struct json_value *v = list->first; v; v = v->next)
		c->roots[c->nroots++] = args_path_value(a, v);
}

/* policyContext is the newer place for cwd and roots. Its roots replace the
 * outer ones, even if it has none. */
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

/* temporaryDirectories is checked only; `tmpdir` is bound by the executor. */
static void
check_temporary(struct args *a)
{
	const struct json_value *list =
	    json_get(a->object, "temporaryDirectories");

	if (list == NULL || list->type == JSON_NULL)
		return;
	list = sandbox_list(a, "temporaryDirectories", true, SANDBOX_LIST_MAX);
	if (list == NULL)
		return;
	for (const struct json_value *v = list->first; v; v = v->next)
		args_path_value(a, v);
}

bool
sandbox_windows_check(struct args *a, bool required)
{
	const struct json_value *v = json_get(a->object, "windowsSandboxLevel");
	static const char *const levels[] = { "disabled", "restricted-token",
		"elevated", "mxc", NULL };

	if (required)
		args_enum(a, "windowsSandboxLevel", levels);
	else
		check_enum(a, "windowsSandboxLevel", levels);
	args_default_bool(a, "useLegacyLandlock", false);
	return v != NULL && v->type == JSON_STRING &&
	       slice_equal(v->text, SLICE("mxc"));
}

/* Checks members that are known but have no effect here. */
static void
check_ignored(struct args *a)
{
	static const char *const overrides[] = { "noOverride",
		"escalatedSandboxWithRestrictions", "bypassSandboxFirstAttempt",
		NULL };
	static const char *const proxies[] = { "reconcile", "preserve", NULL };

	check_temporary(a);
	check_enum(a, "sandboxOverride", overrides);
	check_enum(a, "windowsSandboxProxySettingsMode", proxies);
}

static bool accept_launch;

void
sandbox_context_accept_launch(bool accept)
{
	accept_launch = accept;
}

static void
decode_launch(
    struct args *a, const struct json_value *v, struct sandbox_context *c)
{
	struct sandbox_launch launch;
	char error[ARGS_ERROR_MAX];

	if (sandbox_launch_decode(a->doc, v, NULL, c, &launch, error) < 0)
		args_fail(a, "%s", error);
	c->managed_network = launch.enforce_managed_network;
}

void
sandbox_context_decode(
    struct args *a, const struct json_value *v, struct sandbox_context *c)
{
	const struct json_value *permissions;
	struct args in;

	if (accept_launch && sandbox_is_launch_config(v)) {
		decode_launch(a, v, c);
		return;
	}
	memset(c, 0, sizeof(*c));
	args_init(&in, a->doc, v, "WireFileSystemSandboxContext");
	permissions = args_object(&in, "permissions", "PermissionProfile");
	if (permissions != NULL)
		decode_permissions(&in, permissions, c, false);
	c->has_cwd = args_opt_path(&in, "cwd", &c->cwd);
	decode_roots(&in, c);
	c->has_home = args_opt_path(&in, "userHomeDir", &c->home);
	decode_policy_context(&in, c);
	c->mxc = sandbox_windows_check(&in, true);
	check_ignored(&in);
	c->unrestricted = c->files_unrestricted && c->network_enabled;
	if (!finish(a, &in))
		memset(c, 0, sizeof(*c));
}

static void
set_plain_workspace(struct args *a, struct sandbox_context *c, const char *cwd,
    const struct json_value *roots)
{
	c->cwd = sandbox_plain_path(a, "cwd", slice_of(cwd));
	c->has_cwd = true;
	c->roots = json_alloc(a->doc, (roots->count + 1) * sizeof(*c->roots));
	for (const struct json_value *v = roots->first; v; v = v->next)
		c->roots[c->nroots++] =
		    sandbox_plain_path(a, "workspace_roots", v->text);
}

int
sandbox_profile_decode(struct json_doc *doc, const struct json_value *profile,
    const char *cwd, const struct json_value *roots,
    struct sandbox_context *out, char *error)
{
	struct args a;

	memset(out, 0, sizeof(*out));
	args_init(&a, doc, profile, "PermissionProfile");
	if (roots->count > SANDBOX_LIST_MAX)
		args_fail(&a, "workspace_roots: %zu, at most %d are permitted",
		    roots->count, SANDBOX_LIST_MAX);
	decode_permissions(&a, profile, out, true);
	if (args_end(&a) == 0 && out->type != SANDBOX_MANAGED)
		args_fail(&a, "permission_profile: only a managed profile is "
			      "run, never a command without a sandbox");
	if (args_end(&a) == 0)
		set_plain_workspace(&a, out, cwd, roots);
	out->unrestricted = out->files_unrestricted && out->network_enabled;
	if (args_end(&a) == 0)
		return 0;
	memset(out, 0, sizeof(*out));
	snprintf(error, ARGS_ERROR_MAX, "%s", a.error);
	return -EBADMSG;
}

int
sandbox_context_check_cwd(const struct sandbox_context *c, char *error)
{
	size_t n = c->cwd.uri.len < 300 ? c->cwd.uri.len : 300;

	if (!c->has_cwd || !c->cwd.foreign)
		return 0;
	snprintf(error, ARGS_ERROR_MAX,
	    "failed to prepare process sandbox: invalid sandbox policy cwd: "
	    "'%.*s' is invalid on 'linux'%s",
	    (int)n, c->cwd.uri.ptr, path_uri_hint(&c->cwd));
	return -EBADMSG;
}
