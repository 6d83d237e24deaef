/* SPDX-License-Identifier: ISC */
#include "sandbox_legacy.h"

/* Names that are protected in every root, as in the policies of 0.169.0. */
static const char *const protected_names[] = { ".git", ".agents", ".codex",
	".aws" };

/* Entries of a workspace-write policy, apart from its writable roots. */
#define WORKSPACE_ENTRIES (4 + nitems(protected_names))

_Static_assert(WORKSPACE_ENTRIES + (1 + nitems(protected_names)) *
				       SANDBOX_LEGACY_ROOTS_MAX <=
		   SANDBOX_LIST_MAX,
    "a legacy policy fits into a context");

static int
finish(const struct args *a, struct sandbox_context *c, char *error)
{
	c->unrestricted = c->files_unrestricted && c->network_enabled;
	if (args_end(a) == 0)
		return 0;
	memset(c, 0, sizeof(*c));
	snprintf(error, ARGS_ERROR_MAX, "%s", a->error);
	return -EBADMSG;
}

/* Sets cwd as the policy cwd and the only root. */
static void
set_workspace(struct args *a, struct sandbox_context *c, struct path_uri cwd)
{
	c->cwd = cwd;
	c->has_cwd = true;
	c->roots = json_alloc(a->doc, sizeof(*c->roots));
	c->roots[0] = cwd;
	c->nroots = 1;
}

/* Uses the caller's cwd, unless the message contained one. */
static void
set_default_workspace(
    struct args *a, struct sandbox_context *c, const char *cwd)
{
	if (c->has_cwd || cwd == NULL)
		return;
	set_workspace(a, c, sandbox_plain_path(a, "cwd", slice_of(cwd)));
}

static struct sandbox_entry *
add_entry(struct sandbox_context *c, enum sandbox_access access)
{
	struct sandbox_entry *e = &c->entries[c->nentries++];

	*e = (struct sandbox_entry){ .access = access, .text = SLICE("") };
	return e;
}

static struct sandbox_entry *
add_special(struct sandbox_context *c, enum sandbox_special special,
    enum sandbox_access access)
{
	struct sandbox_entry *e = add_entry(c, access);

	e->kind = SANDBOX_SPECIAL;
	e->special = special;
	return e;
}

static void
add_path(
    struct sandbox_context *c, struct path_uri path, enum sandbox_access access)
{
	struct sandbox_entry *e = add_entry(c, access);

	e->kind = SANDBOX_PATH;
	e->path = path;
}

static void
alloc_entries(struct args *a, struct sandbox_context *c, size_t n)
{
	c->entries = json_alloc(a->doc, n * sizeof(*c->entries));
	c->nentries = 0;
}

/* Adds a root and its protected names. */
static void
add_root(struct args *a, struct sandbox_context *c, struct path_uri root)
{
	size_t size = strlen(root.path) + 16;
	struct slice below;
	char *path;

	add_path(c, root, SANDBOX_WRITE);
	for (size_t i = 0; i < nitems(protected_names); i++) {
		path = json_alloc(a->doc, size);
		snprintf(path, size, "%s/%s", root.path, protected_names[i]);
		below = slice_of(path);
		add_path(c, sandbox_plain_path(a, "root", below), SANDBOX_READ);
	}
}

static void
add_writable_roots(
    struct args *a, struct sandbox_context *c, const struct json_value *list)
{
	struct path_uri path;

	if (list == NULL)
		return;
	for (const struct json_value *v = list->first; v; v = v->next) {
		if (v->type != JSON_STRING) {
			args_fail(a, "writable_roots: expected strings");
			return;
		}
		path = sandbox_plain_path(a, "writable_roots", v->text);
		if (args_end(a) < 0)
			return;
		add_root(a, c, path);
	}
}

/* Some versions could restrict reading here. To ignore that would grant more
 * than was asked for, so it is refused. */
static void
refuse_restricted_reads(struct args *a, const char *key)
{
	const struct json_value *v = json_get(a->object, key);

	if (v != NULL && v->type != JSON_NULL &&
	    !json_is(json_get(v, "type"), "full-access"))
		args_fail(a, "%s: only `full-access` is supported", key);
}

static void
decode_read_only(struct args *a, struct sandbox_context *c)
{
	refuse_restricted_reads(a, "access");
	c->network_enabled = args_default_bool(a, "network_access", false);
	alloc_entries(a, c, 1);
	add_special(c, SANDBOX_ROOT, SANDBOX_READ);
}

static void
decode_workspace_write(struct args *a, struct sandbox_context *c)
{
	const struct json_value *roots =
	    sandbox_list(a, "writable_roots", false, SANDBOX_LEGACY_ROOTS_MAX);
	size_t n = roots == NULL ? 0 : roots->count;

	refuse_restricted_reads(a, "read_only_access");
	c->network_enabled = args_default_bool(a, "network_access", false);
	alloc_entries(
	    a, c, WORKSPACE_ENTRIES + n * (1 + nitems(protected_names)));
	add_special(c, SANDBOX_ROOT, SANDBOX_READ);
	add_special(c, SANDBOX_PROJECT_ROOTS, SANDBOX_WRITE);
	if (!args_default_bool(a, "exclude_slash_tmp", false))
		add_special(c, SANDBOX_SLASH_TMP, SANDBOX_WRITE);
	if (!args_default_bool(a, "exclude_tmpdir_env_var", false))
		add_special(c, SANDBOX_TMPDIR, SANDBOX_WRITE);
	for (size_t i = 0; i < nitems(protected_names); i++)
		add_special(c, SANDBOX_PROJECT_ROOTS, SANDBOX_READ)->text =
		    slice_of(protected_names[i]);
	add_writable_roots(a, c, roots);
}

static const char *const policy_types[] = { "danger-full-access", "read-only",
	"external-sandbox", "workspace-write", NULL };
enum policy_type { DANGER_FULL_ACCESS, READ_ONLY, EXTERNAL, WORKSPACE_WRITE };

static const char *const networks[] = { "restricted", "enabled", NULL };

static void
decode_policy(struct args *a, struct sandbox_context *c, enum policy_type type)
{
	c->files_unrestricted = type == DANGER_FULL_ACCESS || type == EXTERNAL;
	if (type == DANGER_FULL_ACCESS) {
		c->type = SANDBOX_DISABLED;
		c->network_enabled = true;
	} else if (type == EXTERNAL) {
		c->type = SANDBOX_EXTERNAL;
		c->network_enabled =
		    args_default_enum(a, "network_access", networks, 0) == 1;
	} else if (type == READ_ONLY) {
		decode_read_only(a, c);
	} else {
		decode_workspace_write(a, c);
	}
}

int
sandbox_policy_decode(struct json_doc *doc, const struct json_value *v,
    const char *cwd, struct sandbox_context *out, char *error)
{
	enum policy_type type;
	struct args a;

	memset(out, 0, sizeof(*out));
	args_init(&a, doc, v, "SandboxPolicy");
	type = (enum policy_type)args_enum(&a, "type", policy_types);
	if (args_end(&a) == 0)
		decode_policy(&a, out, type);
	if (args_end(&a) == 0)
		set_default_workspace(&a, out, cwd);
	return finish(&a, out, error);
}

bool
sandbox_is_launch_config(const struct json_value *v)
{
	return json_get(v, "mode") != NULL &&
	       json_get(v, "permissions") == NULL;
}

/* Returns true if an entry restricts a disk that is writable as a whole. A glob
 * pattern with read access has no effect, and write access to the root wins
 * over read access. */
static bool
narrows(const struct sandbox_entry *e)
{
	if (e->access == SANDBOX_WRITE)
		return false;
	if (e->kind != SANDBOX_SPECIAL)
		return e->kind == SANDBOX_PATH || e->access == SANDBOX_DENY;
	if (e->special == SANDBOX_ROOT)
		return e->access == SANDBOX_DENY;
	return e->special != SANDBOX_MINIMAL && e->special != SANDBOX_UNKNOWN;
}

static bool
may_write_all(const struct sandbox_context *c)
{
	bool root = false;

	for (size_t i = 0; i < c->nentries; i++) {
		const struct sandbox_entry *e = &c->entries[i];

		if (narrows(e))
			return false;
		if (e->kind == SANDBOX_SPECIAL && e->special == SANDBOX_ROOT &&
		    e->access == SANDBOX_WRITE)
			root = true;
	}
	return root;
}

/* Decides whether mode auto needs a sandbox. */
static bool
needs_sandbox(const struct sandbox_context *c, bool managed_network)
{
	if (managed_network)
		return true;
	if (!c->network_enabled)
		return c->type != SANDBOX_EXTERNAL;
	return !c->files_unrestricted && !may_write_all(c);
}

static void
decode_file_policy(
    struct args *a, const struct json_value *v, struct sandbox_context *c)
{
	static const char *const kinds[] = { "restricted", "unrestricted",
		"external-sandbox", NULL };
	struct args in;
	int kind;

	args_init(&in, a->doc, v, "FileSystemSandboxPolicy");
	kind = args_enum(&in, "kind", kinds);
	c->type = kind == 2 ? SANDBOX_EXTERNAL : SANDBOX_MANAGED;
	c->files_unrestricted = kind != 0;
	if (args_end(&in) == 0 && kind == 0)
		sandbox_entries_decode(&in, c, true);
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}

/* The member `policy` only repeats what other members say. Only its type is
 * checked. */
static void
check_shadow(struct args *a)
{
	const struct json_value *v =
	    args_opt_object(a, "policy", "SandboxPolicy");
	struct args in;

	if (v == NULL)
		return;
	args_init(&in, a->doc, v, "SandboxPolicy");
	args_enum(&in, "type", policy_types);
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}

static bool
is_given(const struct args *a, const char *key)
{
	const struct json_value *v = json_get(a->object, key);

	return v != NULL && v->type != JSON_NULL;
}

/* Decodes the two policies that are used. Without a sandbox they may be
 * absent. */
static void
decode_policies(struct args *a, struct sandbox_context *c, bool required)
{
	const struct json_value *v;

	if (required || is_given(a, "fileSystemPolicy")) {
		v = args_object(
		    a, "fileSystemPolicy", "FileSystemSandboxPolicy");
		if (v != NULL)
			decode_file_policy(a, v, c);
	}
	if (required || is_given(a, "networkPolicy"))
		c->network_enabled =
		    args_enum(a, "networkPolicy", networks) == 1;
	check_shadow(a);
}

static void
decode_workspace(struct args *a, struct sandbox_context *c, const char *cwd)
{
	struct slice own;

	if (args_opt_string(a, "sandboxPolicyCwd", &own))
		set_workspace(
		    a, c, sandbox_plain_path(a, "sandboxPolicyCwd", own));
	set_default_workspace(a, c, cwd);
}

int
sandbox_launch_decode(struct json_doc *doc, const struct json_value *v,
    const char *cwd, struct sandbox_context *out, struct sandbox_launch *launch,
    char *error)
{
	static const char *const modes[] = { "disabled", "auto", "require",
		NULL };
	struct args a;

	memset(out, 0, sizeof(*out));
	args_init(&a, doc, v, "SandboxLaunchConfig");
	launch->mode = (enum sandbox_mode)args_enum(&a, "mode", modes);
	decode_policies(&a, out, launch->mode != SANDBOX_MODE_NONE);
	decode_workspace(&a, out, cwd);
	launch->enforce_managed_network =
	    args_default_bool(&a, "enforceManagedNetwork", false);
	args_default_bool(&a, "windowsSandboxPrivateDesktop", false);
	out->mxc = sandbox_windows_check(&a, false);
	out->required = launch->mode == SANDBOX_MODE_REQUIRED;
	if (args_end(&a) < 0)
		launch->mode = SANDBOX_MODE_REQUIRED;
	else if (launch->mode == SANDBOX_MODE_WANTED &&
		 !needs_sandbox(out, launch->enforce_managed_network))
		launch->mode = SANDBOX_MODE_NONE;
	if (launch->mode == SANDBOX_MODE_NONE) {
		memset(out, 0, sizeof(*out));
		decode_policy(&a, out, DANGER_FULL_ACCESS);
	}
	return finish(&a, out, error);
}

/* --- presets ------------------------------------------------------------ */

/*
 * Decodes a preset of the runner dialect: the name or the text of a legacy
 * policy (doc/sandbox.md section A8).
 */

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
