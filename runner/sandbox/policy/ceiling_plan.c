/* SPDX-License-Identifier: ISC */
/*
 * The operator's ceiling over the resolved plan: what would be writable on this
 * disk.
 */
#include "ceiling.h"

#include <errno.h>
#include <string.h>

#include "util.h"

/* The places that may be writable, as they are on the disk now. */
struct bounds {
	const struct ceiling *c;
	struct paths workspace; /* workspace roots, /tmp and TMPDIR */
	struct paths writable;	/* what sandbox-writable-roots matches */
};

/*
 * If workspace roots are limited, TMPDIR counts only if no link is on its path,
 * because a command may have made the link.
 */
static void
add_tmpdir(struct paths *p, const struct ceiling *c, const char *tmpdir)
{
	struct paths there = { 0 };

	if (tmpdir == NULL || *tmpdir != '/')
		return;
	path_set_add(&there, tmpdir);
	if (c->workspace_roots[0] == NULL ||
	    path_set_hold(&there, tmpdir, NULL))
		path_set_copy(p, &there);
	path_set_clear(&there);
}

static void
bounds_init(struct bounds *b, const struct ceiling *c,
    const struct ceiling_grant *g, const char *tmpdir)
{
	*b = (struct bounds){ .c = c };
	path_set_copy(&b->workspace,
	    g->context.roots == &g->root ? &g->at : &g->workspace);
	path_set_add(&b->workspace, "/tmp");
	add_tmpdir(&b->workspace, c, tmpdir);
	path_set_add_patterns(&b->writable, c->writable_roots);
}

static void
bounds_clear(struct bounds *b)
{
	path_set_clear(&b->workspace);
	path_set_clear(&b->writable);
}

static bool
may_write(const struct bounds *b, const struct plan_mount *m)
{
	uint8_t profile = b->c->limits.max_profile;

	if (profile == SANDBOX_PROFILE_READ_ONLY)
		return false;
	if (path_set_hold(&b->writable, m->path, &m->seen))
		return true;
	if (profile == SANDBOX_PROFILE_WORKSPACE_WRITE &&
	    !path_set_hold(&b->workspace, m->path, &m->seen))
		return false;
	return b->c->writable_roots[0] == NULL;
}

static bool
is_writable(const struct plan_mount *m)
{
	return m->kind == PLAN_WRITE || m->kind == PLAN_PRIVATE;
}

/* --- cutting down a policy that writes the whole disk ------------------- */

static void
put_entry(struct ceiling_grant *g, const char *path)
{
	char *text = xstrdup(path);

	g->texts = xreallocarray(g->texts, g->ntexts + 1, sizeof(*g->texts));
	g->texts[g->ntexts++] = text;
	g->entries[g->context.nentries++] = (struct sandbox_entry){
		.access = SANDBOX_WRITE, .kind = SANDBOX_PATH, .path.path = text
	};
}

/* Adds a place of the workspace if the policy made it writable. */
static void
put_place(struct ceiling_grant *g, const struct plan *plan, const char *path)
{
	_cleanup_free_ char *real =
	    path != NULL && *path == '/' ? realpath(path, NULL) : NULL;

	if (real != NULL && real[1] != '\0' &&
	    plan_access(plan, real) == SANDBOX_WRITE)
		put_entry(g, real);
}

/*
 * Replaces "write everything" by what is permitted of it. Entries with other
 * access stay. Writable mounts stay where they are permitted. The workspace,
 * /tmp and TMPDIR stay writable where the policy made them so.
 */
static void
narrow(struct ceiling_grant *g, const struct bounds *b, const char *tmpdir,
    const struct plan *plan)
{
	const struct sandbox_context asked = g->context;
	struct sandbox_context *c = &g->context;

	g->entries = xcalloc(asked.nentries + plan->count + asked.nroots + 3,
	    sizeof(*g->entries));
	c->entries = g->entries;
	c->nentries = 0;
	c->files_unrestricted = false;
	c->entries[c->nentries++] = (struct sandbox_entry){
		.access = SANDBOX_READ,
		.kind = SANDBOX_SPECIAL,
		.special = SANDBOX_ROOT,
	};
	for (size_t i = 0; i < asked.nentries; i++)
		if (asked.entries[i].access != SANDBOX_WRITE)
			c->entries[c->nentries++] = asked.entries[i];
	for (size_t i = 0; i < plan->count; i++)
		if (is_writable(&plan->mounts[i]) &&
		    may_write(b, &plan->mounts[i]))
			put_entry(g, plan->mounts[i].path);
	if (b->c->limits.max_profile == SANDBOX_PROFILE_READ_ONLY)
		return;
	for (size_t i = 0; i < asked.nroots; i++)
		put_place(g, plan, asked.roots[i].path);
	put_place(g, plan, "/tmp");
	put_place(g, plan, tmpdir);
}

/* --- cutting down single mounts ----------------------------------------- */

static bool
is_idle(const struct plan *plan, const struct plan_mount *m)
{
	_cleanup_free_ char *parent = xstrdup(m->path);

	if (!plan_is_placeholder(m) && m->kind != PLAN_PIN)
		return false;
	*strrchr(parent, '/') = '\0';
	return plan_access(plan, parent) != SANDBOX_WRITE;
}

/*
 * Drops placeholders and pins whose parent is no longer writable: nobody could
 * create the missing name or rename the directory, and a pin would itself be
 * writable.
 */
static void
drop_idle(struct plan *plan)
{
	_cleanup_free_ bool *idle = xcalloc(plan->count + 1, sizeof(*idle));
	size_t kept = 0;

	for (size_t i = 0; i < plan->count; i++)
		idle[i] = is_idle(plan, &plan->mounts[i]);
	for (size_t i = 0; i < plan->count; i++)
		if (idle[i])
			free(plan->mounts[i].path);
		else
			plan->mounts[kept++] = plan->mounts[i];
	plan->count = kept;
}

static int
judge_mounts(struct ceiling *c, struct ceiling_grant *g, const struct bounds *b,
    struct plan *plan, char *error)
{
	bool less = false;

	for (size_t i = 0; i < plan->count; i++) {
		struct plan_mount *m = &plan->mounts[i];
		int err;

		if (!is_writable(m) || may_write(b, m))
			continue;
		err = ceiling_exceed(c, CEILING_WRITE, m->path, g, error);
		if (err < 0)
			return err;
		m->kind = PLAN_READ;
		less = true;
	}
	if (less)
		drop_idle(plan);
	return 0;
}

int
ceiling_judge_plan(struct ceiling *c, struct ceiling_grant *g,
    const char *tmpdir, struct plan *plan, char *error)
{
	struct bounds b;
	int err;

	if (c->limits.max_profile == SANDBOX_PROFILE_FULL &&
	    c->writable_roots[0] == NULL)
		return 0;
	bounds_init(&b, c, g, tmpdir);
	if (plan->base != PLAN_BASE_WRITE) {
		err = judge_mounts(c, g, &b, plan, error);
	} else {
		err = ceiling_exceed(c, CEILING_WRITE, "/", g, error);
		/* A link was changed after the policy was cut down. */
		if (err == 0 && g->entries != NULL)
			err = -ESTALE;
		if (err == 0)
			narrow(g, &b, tmpdir, plan);
		if (err == 0)
			err = -EAGAIN;
	}
	bounds_clear(&b);
	return err;
}
