/* SPDX-License-Identifier: ISC */
/*
 * resolve: whatever the context and the tree, the plan grants no more than
 * was named, keeps what is protected, and depends on no order. The input is
 * the JSON of a context, a newline, and a tree (fake_fs.h).
 */
#include "../unit/fake_fs.h"
#include "json_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define LINKS_MAX 40

static const char *const names[] = { ".git", ".codex", ".aws", NULL };
static const char *const deny[] = { "/s", "~/.k", NULL };
static const char *const hide[] = { "/run", NULL };

struct input {
	struct fake_fs fs;
	struct sandbox_context context;
	struct plan plan;
};

/* A path as text while its links are followed, slowly and apart from the
 * resolver's way. */
struct real {
	char path[64 * FAKE_FS_PATH]; /* done */
	char rest[64 * FAKE_FS_PATH];
	bool found, failed;
};

static void
real_up(struct real *r)
{
	*strrchr(r->path, '/') = '\0';
}

static void
real_link(struct real *r, const struct fake_node *node)
{
	char rest[sizeof(r->rest)];
	int n = snprintf(rest, sizeof(rest), "%s/%s", node->text, r->rest);

	r->failed |= n < 0 || (size_t)n >= sizeof(rest) || !node->text[0];
	memcpy(r->rest, rest, sizeof(rest));
	if (rest[0] == '/')
		r->path[0] = '\0';
	else
		real_up(r);
}

/* Takes one name from rest; what is not there ends it. */
static void
real_step(struct real *r, struct fake_fs *fs, int *links)
{
	char *name = r->rest + strspn(r->rest, "/");
	size_t n = strcspn(name, "/"), at = strlen(r->path);
	const struct fake_node *node;
	char taken[sizeof(r->rest)];
	struct fs_node seen;

	memcpy(taken, name, n);
	taken[n] = '\0';
	memmove(r->rest, name + n, strlen(name + n) + 1);
	if (n == 0 || strcmp(taken, ".") == 0)
		return;
	if (strcmp(taken, "..") == 0) {
		if (at > 0)
			real_up(r);
		return;
	}
	r->failed |= at + n + 2 > sizeof(r->path);
	if (r->failed)
		return;
	r->path[at] = '/';
	memcpy(r->path + at + 1, taken, n + 1);
	node = fake_find(fs, r->path, strlen(r->path));
	r->found = fake_lookup(fs, r->path, &seen) == 0 && node != NULL;
	if (r->found && node->type == FS_LINK) {
		r->failed |= ++*links > LINKS_MAX;
		real_link(r, node);
	}
}

/* "" is the root. What is missing keeps its text. */
static void
real_path(struct real *r, struct fake_fs *fs, const char *path)
{
	int links = 0;

	memset(r, 0, sizeof(*r));
	r->failed = strlen(path) >= sizeof(r->rest);
	r->found = true;
	if (!r->failed)
		strcpy(r->rest, path);
	while (!r->failed && r->found && r->rest[strspn(r->rest, "/")])
		real_step(r, fs, &links);
	if (!r->failed && !r->found && r->rest[0] != '\0' &&
	    strlen(r->path) + strlen(r->rest) < sizeof(r->path))
		strcat(r->path, r->rest);
}

/* Is a path at or below another one? */
static bool
is_below(const char *path, const char *above)
{
	size_t n = strcmp(above, "/") == 0 ? 0 : strlen(above);

	return strncmp(path, above, n) == 0 &&
	       (path[n] == '\0' || path[n] == '/');
}

/* The paths an entry names, one per root; NULL ends them. */
static char *
entry_path(const struct input *in, const struct sandbox_entry *e, size_t i)
{
	const struct sandbox_context *c = &in->context;

	if (e->kind == SANDBOX_PATH)
		return i == 0 && e->path.path ? xstrdup(e->path.path) : NULL;
	if (e->kind != SANDBOX_SPECIAL)
		return NULL;
	if (e->special == SANDBOX_PROJECT_ROOTS ||
	    e->special == SANDBOX_CURRENT_WORKING_DIRECTORY)
		return i >= c->nroots ? NULL
				      : xasprintf("%s/%.*s", c->roots[i].path,
					    (int)e->text.len, e->text.ptr);
	if (i > 0 || e->special == SANDBOX_MINIMAL ||
	    e->special == SANDBOX_UNKNOWN)
		return NULL;
	return xstrdup(e->special == SANDBOX_ROOT     ? "/"
		       : e->special == SANDBOX_TMPDIR ? "/t"
						      : "/tmp");
}

/* Does a write entry name `path`, or something it lies below; or, turned
 * round, something at or below `path`? */
static bool
is_named(struct input *in, const char *path, bool below)
{
	static struct real r;

	for (size_t k = 0; k < in->context.nentries; k++) {
		const struct sandbox_entry *e = &in->context.entries[k];
		char *named = NULL;

		for (size_t i = 0; e->access == SANDBOX_WRITE &&
				   (named = entry_path(in, e, i)) != NULL;
		     i++) {
			real_path(&r, &in->fs, named);
			free(named);
			if (!r.failed && (below ? is_below(r.path, path)
						: is_below(path, r.path)))
				return true;
		}
	}
	return false;
}

static bool
has_mount(const struct plan *plan, const char *path, size_t n)
{
	for (size_t i = 0; i < plan->count; i++)
		if (strlen(plan->mounts[i].path) == n &&
		    memcmp(plan->mounts[i].path, path, n) == 0)
			return true;
	return false;
}

/* Nothing above a mount may be renamed away. */
static void
check_pins(const struct plan *plan, const char *path)
{
	_cleanup_free_ char *up = xstrdup(path);

	for (char *slash = strrchr(up, '/'); slash > up;
	     slash = strrchr(up, '/')) {
		*slash = '\0';
		assert(plan_access(plan, up) != SANDBOX_WRITE ||
		       has_mount(plan, up, strlen(up)));
	}
}

static void
check_mounts(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		assert(m->path[0] == '/' && m->path[1] != '\0');
		assert(strstr(m->path, "//") == NULL);
		assert(!has_dot_segment(m->path));
		assert(!is_below(m->path, "/proc"));
		assert((m->kind == PLAN_PLACEHOLDER_FILE ||
			   m->kind == PLAN_PLACEHOLDER_DIRECTORY) ==
		       (m->seen.type == FS_MISSING));
		for (size_t k = i + 1; k < plan->count; k++)
			assert(!is_below(m->path, plan->mounts[k].path));
		assert(m->reopened ==
		       (m->kind == PLAN_DENY_DIRECTORY && i + 1 < plan->count &&
			   is_below(plan->mounts[i + 1].path, m->path)));
		check_pins(plan, m->path);
	}
}

static void
check_nodes(struct input *in)
{
	for (size_t i = 0; i < in->fs.count; i++) {
		const struct fake_node *n = &in->fs.nodes[i];

		if (n->type == FS_LINK)
			continue;
		if (is_below(n->path, "/s") || is_below(n->path, "/h/.k"))
			assert(plan_access(&in->plan, n->path) == SANDBOX_DENY);
		if (plan_access(&in->plan, n->path) == SANDBOX_WRITE)
			assert(in->context.files_unrestricted ||
			       is_named(in, n->path, false));
	}
}

static void
check_names(struct input *in, const char *root)
{
	for (size_t i = 0; names[i] != NULL; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", root, names[i]);

		if (!is_named(in, path, true))
			assert(plan_access(&in->plan, path) != SANDBOX_WRITE);
	}
}

/* Scratch places keep no names. */
static bool
is_scratch(const struct sandbox_entry *e)
{
	return e->kind == SANDBOX_SPECIAL &&
	       (e->special == SANDBOX_TMPDIR ||
		   e->special == SANDBOX_SLASH_TMP);
}

/* Denied means denied, and a writable root keeps its names. */
static void
check_entry(struct input *in, const struct sandbox_entry *e)
{
	static struct real r;
	char *named = NULL;

	for (size_t i = 0; (named = entry_path(in, e, i)) != NULL; i++) {
		enum sandbox_access access;
		const struct fake_node *node;

		real_path(&r, &in->fs, named);
		free(named);
		node = fake_find(&in->fs, r.path, strlen(r.path));
		if (r.failed || !r.found || node == NULL ||
		    is_below(r.path, "/proc"))
			continue;
		access = plan_access(&in->plan, r.path);
		if (e->kind == SANDBOX_PATH && e->access == SANDBOX_DENY)
			assert(access == SANDBOX_DENY);
		if (e->access == SANDBOX_WRITE && access == SANDBOX_WRITE &&
		    node->type == FS_DIRECTORY && !is_scratch(e))
			check_names(in, r.path);
	}
}

static int
run(struct input *in, struct plan *plan, char *error)
{
	struct fs_view view = fake_view(&in->fs);
	struct resolve_request r = { .context = &in->context,
		.cwd = "/ws",
		.tmpdir = "/t",
		.home = "/h",
		.protected_names = names,
		.deny_read = deny,
		.hide = hide,
		.nested_git_depth = 3 };
	int err;

	memset(error, 'x', ARGS_ERROR_MAX);
	err = resolve(plan, &r, &view, error);
	assert(memchr(error, '\0', ARGS_ERROR_MAX) != NULL);
	assert(err != -EINVAL || error[0] != '\0');
	return err;
}

/* The order of the entries says nothing. */
static void
check_reversed(struct input *in, int err)
{
	struct sandbox_context *c = &in->context;
	char error[ARGS_ERROR_MAX];
	struct plan again;

	for (size_t i = 0; i < c->nentries / 2; i++) {
		struct sandbox_entry e = c->entries[i];

		c->entries[i] = c->entries[c->nentries - 1 - i];
		c->entries[c->nentries - 1 - i] = e;
	}
	assert(run(in, &again, error) == err);
	if (err == 0) {
		assert(again.base == in->plan.base);
		assert(again.count == in->plan.count);
		assert(again.minimal == in->plan.minimal);
		assert(again.deny_proc == in->plan.deny_proc);
	}
	for (size_t i = 0; err == 0 && i < again.count; i++) {
		assert(again.mounts[i].kind == in->plan.mounts[i].kind);
		assert(
		    strcmp(again.mounts[i].path, in->plan.mounts[i].path) == 0);
	}
	plan_clear(&again);
}

static void
check_resolve(struct input *in)
{
	char error[ARGS_ERROR_MAX];
	int err = run(in, &in->plan, error);

	if (err == 0) {
		check_mounts(&in->plan);
		check_nodes(in);
		for (size_t i = 0; i < in->context.nentries; i++)
			check_entry(in, &in->context.entries[i]);
		assert(in->plan.network == in->context.network_enabled);
	}
	check_reversed(in, err);
	plan_clear(&in->plan);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct input in;
	const char *text = (const char *)data;
	const char *line = len > 0 ? memchr(text, '\n', len) : NULL;
	size_t n = line ? (size_t)(line - text) : len;
	struct json_doc doc;
	struct args a;

	memset(&in, 0, sizeof(in));
	fake_fs_init(&in.fs, text + n, len - n);
	if (json_parse(&doc, text, n) == 0) {
		a = (struct args){ .doc = &doc };
		sandbox_context_decode(&a, doc.root, &in.context);
		if (args_end(&a) == 0)
			check_resolve(&in);
	}
	json_clear(&doc);
	return 0;
}
