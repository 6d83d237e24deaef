/*
 * The operator's ceiling over a client's policy.
 */
#include "ceiling.h"

#include <errno.h>
#include <glob.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "log.h"
#include "util.h"

#define EXCEEDED "sandbox policy exceeds this executor's limit: "

/* --- lists -------------------------------------------------------------- */

/* The lines of text as a vector; one free() frees it. "~" is the home. */
static const char **
split(const char *text, const char *home)
{
	size_t lines = 2, bytes = strlen(text) + 1;
	const char **list;
	char *at;

	for (const char *p = text; *p != '\0'; p++) {
		lines += *p == '\n';
		bytes += *p == '~' ? strlen(home) : 0;
	}
	list = xcalloc(1, lines * sizeof(*list) + bytes);
	at = (char *)(list + lines);
	lines = 0;
	while (*text != '\0') {
		size_t n = strcspn(text, "\n");
		bool tilde = text[0] == '~' && (n == 1 || text[1] == '/');

		if (n > 0)
			list[lines++] = at;
		if (tilde)
			at = stpcpy(at, home);
		at = mempcpy(at, text + tilde, n - tilde);
		*at++ = '\0';
		text += n + (text[n] == '\n');
	}
	return list;
}

void
ceiling_init(
    struct ceiling *c, const struct sandbox_limits *limits, const char *home)
{
	/* All but the lines, which are split: pages that stay zero are not the
	 * session's. */
	memcpy(&c->limits, limits,
	    offsetof(struct sandbox_limits, workspace_roots));
	c->home = home;
	c->told = false;
	c->workspace_roots = split(limits->workspace_roots, home);
	c->writable_roots = split(limits->writable_roots, home);
	c->deny_read = split(limits->deny_read, home);
	c->hide = split(limits->hide, home);
	c->protected_names = split(limits->protected_names, home);
}

/* --- paths -------------------------------------------------------------- */

static bool
is_match(const char *path, const struct stat *st)
{
	struct stat other;

	return stat(path, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

/* One of the patterns, as they lead somewhere now, is the very place. */
static bool
is_listed(const char *const *patterns, const struct stat *st)
{
	bool found = false;

	for (; *patterns != NULL && !found; patterns++) {
		glob_t g = { 0 };

		if (glob(*patterns, GLOB_NOSORT, NULL, &g) == 0)
			for (size_t i = 0; i < g.gl_pathc && !found; i++)
				found = is_match(g.gl_pathv[i], st);
		globfree(&g);
	}
	return found;
}

/* Where a path leads, without links: ".." of what comes out is where it says.
 * What is not there yet is where its directory is. */
static char *
real_path(const char *path)
{
	_cleanup_free_ char *at = xstrdup(path);
	char *real, *slash;

	while ((real = realpath(*at ? at : "/", NULL)) == NULL) {
		slash = strrchr(at, '/');
		if (slash == NULL)
			return xstrdup("/");
		*slash = '\0';
	}
	return real;
}

/* A place, or one above it. */
static bool
is_below(const char *const *patterns, const char *path)
{
	_cleanup_free_ char *at = real_path(path);
	char *slash;
	struct stat st;

	for (;;) {
		if (stat(*at ? at : "/", &st) == 0 && is_listed(patterns, &st))
			return true;
		slash = strrchr(at, '/');
		if (slash == NULL)
			return false;
		*slash = '\0';
	}
}

static int
refuse(char *error, const char *what, const char *path)
{
	snprintf(error, ARGS_ERROR_MAX, EXCEEDED "%s%s%.900s", what,
	    *path ? " " : "", path);
	return -EINVAL;
}

/* Less than was asked: said once, then 0; or refused. */
static int
exceed(struct ceiling *c, const char *what, const char *path, char *error)
{
	if (!c->limits.clamp)
		return refuse(error, what, path);
	if (!c->told)
		log_warn(0,
		    "a sandbox policy was cut down to this executor's limit: "
		    "%s",
		    what);
	c->told = true;
	return 0;
}

/* --- before resolving --------------------------------------------------- */

static struct sandbox_entry
special(enum sandbox_special kind, enum sandbox_access access)
{
	return (struct sandbox_entry){
		.access = access, .kind = SANDBOX_SPECIAL, .special = kind
	};
}

/* The maximum profile, in place of no sandbox. The workspace is where the
 * command is. */
static void
grant_maximum(const struct ceiling *c, const char *cwd, struct ceiling_grant *g)
{
	bool write = c->limits.max_profile >= SANDBOX_PROFILE_WORKSPACE_WRITE;
	bool full = c->limits.max_profile == SANDBOX_PROFILE_FULL;

	g->entries[0] =
	    special(SANDBOX_ROOT, full ? SANDBOX_WRITE : SANDBOX_READ);
	g->entries[1] = special(SANDBOX_SLASH_TMP, SANDBOX_WRITE);
	g->entries[2] = special(SANDBOX_TMPDIR, SANDBOX_WRITE);
	/* Last: a file operation has no workspace. */
	g->entries[3] = special(SANDBOX_PROJECT_ROOTS, SANDBOX_WRITE);
	g->root = (struct path_uri){ .path = (char *)(uintptr_t)cwd };
	g->context = (struct sandbox_context){
		.type = SANDBOX_MANAGED,
		.network_enabled = c->limits.network,
		.entries = g->entries,
		.nentries = !write	  ? 1
			    : cwd == NULL ? 3
					  : 4,
		.has_cwd = cwd != NULL,
		.cwd = g->root,
		.roots = &g->root,
		.nroots = cwd != NULL ? 1 : 0,
	};
}

/* A request without a context, and one that asks for none, are the same. */
static int
judge_unsandboxed(
    struct ceiling *c, const char *cwd, struct ceiling_grant *g, char *error)
{
	int err;

	g->context = (struct sandbox_context){ .type = SANDBOX_DISABLED,
		.network_enabled = true,
		.files_unrestricted = true,
		.unrestricted = true };
	if (c->limits.unsandboxed)
		return 0;
	err = exceed(c, "unsandboxed", "", error);
	if (err == 0)
		grant_maximum(c, cwd, g);
	return err;
}

static int
judge_external(
    struct ceiling *c, const char *cwd, struct ceiling_grant *g, char *error)
{
	int err = exceed(c, "external", "", error);

	if (err == 0)
		grant_maximum(c, cwd, g);
	return err;
}

static int
judge_roots(struct ceiling *c, const struct sandbox_context *asked,
    const char *cwd, char *error)
{
	const char *const *roots = (const char *const *)c->workspace_roots;

	if (roots[0] == NULL)
		return 0;
	if (cwd != NULL && !is_below(roots, cwd))
		return refuse(error, "cwd", cwd);
	for (size_t i = 0; asked != NULL && i < asked->nroots; i++)
		if (!asked->roots[i].foreign &&
		    !is_below(roots, asked->roots[i].path))
			return refuse(error, "root", asked->roots[i].path);
	return 0;
}

int
ceiling_judge(struct ceiling *c, const struct sandbox_context *asked,
    const char *cwd, struct ceiling_grant *g, char *error)
{
	int err = judge_roots(c, asked, cwd, error);

	if (err < 0)
		return err;
	if (asked == NULL || asked->unrestricted)
		return judge_unsandboxed(c, cwd, g, error);
	if (asked->type == SANDBOX_EXTERNAL && !c->limits.external)
		return judge_external(c, cwd, g, error);
	if (asked->files_unrestricted &&
	    c->limits.max_profile < SANDBOX_PROFILE_FULL) {
		err = exceed(c, "write", "/", error);
		if (err == 0)
			grant_maximum(c, cwd, g);
		g->context.network_enabled &= asked->network_enabled;
		return err;
	}
	g->context = *asked;
	if (asked->network_enabled && !c->limits.network) {
		err = exceed(c, "network", "", error);
		g->context.network_enabled = false;
	}
	return err;
}

int
ceiling_judge_network(const struct ceiling *c, char *error)
{
	return c->limits.network ? 0 : refuse(error, "network", "");
}

/* --- after resolving ---------------------------------------------------- */

/* Inside what the profile opens by itself: roots, /tmp, TMPDIR. */
static bool
is_of_workspace(
    const struct sandbox_context *granted, const char *tmpdir, const char *path)
{
	const char *const places[] = { "/tmp", tmpdir, NULL };
	struct stat st;

	if (is_below(places, path))
		return true;
	for (size_t i = 0; i < granted->nroots; i++) {
		const char *const root[] = { granted->roots[i].path, NULL };

		if (!granted->roots[i].foreign && stat(root[0], &st) == 0 &&
		    is_below(root, path))
			return true;
	}
	return false;
}

static bool
may_write(const struct ceiling *c, const struct sandbox_context *granted,
    const char *tmpdir, const char *path)
{
	const char *const *roots = (const char *const *)c->writable_roots;

	if (c->limits.max_profile == SANDBOX_PROFILE_READ_ONLY)
		return false;
	if (roots[0] != NULL && is_below(roots, path))
		return true;
	if (c->limits.max_profile == SANDBOX_PROFILE_WORKSPACE_WRITE &&
	    !is_of_workspace(granted, tmpdir, path))
		return false;
	return roots[0] == NULL;
}

/* Where nothing is writable any more, nothing missing needs a mask. */
static void
drop_masks(struct plan *plan)
{
	size_t kept = 0;

	for (size_t i = 0; i < plan->count; i++) {
		struct plan_mount *m = &plan->mounts[i];
		_cleanup_free_ char *parent = xstrdup(m->path);

		*strrchr(parent, '/') = '\0';
		if (plan_is_mask(m) &&
		    plan_access(plan, parent) != SANDBOX_WRITE)
			free(m->path);
		else
			plan->mounts[kept++] = *m;
	}
	plan->count = kept;
}

int
ceiling_judge_plan(struct ceiling *c, const struct sandbox_context *granted,
    const char *tmpdir, struct plan *plan, char *error)
{
	bool less = false;
	int err;

	if (c->limits.max_profile == SANDBOX_PROFILE_FULL &&
	    c->writable_roots[0] == NULL)
		return 0;
	if (plan->base == PLAN_BASE_WRITE) {
		err = exceed(c, "write", "/", error);
		if (err < 0)
			return err;
		plan->base = PLAN_BASE_READ;
		less = true;
	}
	for (size_t i = 0; i < plan->count; i++) {
		struct plan_mount *m = &plan->mounts[i];

		if ((m->kind != PLAN_WRITE && m->kind != PLAN_PRIVATE) ||
		    may_write(c, granted, tmpdir, m->path))
			continue;
		err = exceed(c, "write", m->path, error);
		if (err < 0)
			return err;
		m->kind = PLAN_READ;
		less = true;
	}
	if (less)
		drop_masks(plan);
	return 0;
}
