/* SPDX-License-Identifier: ISC */
#include "ceiling.h"

#define EXCEEDED "sandbox policy exceeds this executor's limit: "

/* --- lists -------------------------------------------------------------- */

/*
 * Splits the lines of a text into a vector, which one free() releases. "~"
 * becomes the home directory, also after a "-".
 */
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
		size_t n = strcspn(text, "\n"), skip = *text == '-';
		bool tilde = text[skip] == '~' &&
			     (n == skip + 1 || text[skip + 1] == '/');

		if (n > 0)
			list[lines++] = at;
		at = mempcpy(at, text, skip);
		if (tilde)
			at = stpcpy(at, home);
		skip += tilde;
		at = mempcpy(at, text + skip, n - skip);
		*at++ = '\0';
		text += n + (text[n] == '\n');
	}
	return list;
}

void
ceiling_init(
    struct ceiling *c, const struct sandbox_limits *limits, const char *home)
{
	/*
	 * The long texts at the end are not copied, because they are split
	 * below. Their pages stay untouched and cost the session no memory.
	 */
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

void
ceiling_clear(struct ceiling *c)
{
	free(c->workspace_roots);
	free(c->writable_roots);
	free(c->deny_read);
	free(c->hide);
	free(c->protected_names);
}

/* --- answers ------------------------------------------------------------ */

static const char *const words[] = {
	[CEILING_UNSANDBOXED] = "unsandboxed",
	[CEILING_EXTERNAL] = "external",
	[CEILING_NETWORK] = "network",
	[CEILING_WRITE] = "write",
	[CEILING_ROOT] = "root",
	[CEILING_CWD] = "cwd",
};

static const char *
origin_of(const struct sandbox_origins *o, enum ceiling_limit what)
{
	switch (what) {
	case CEILING_UNSANDBOXED:
		return o->unsandboxed;
	case CEILING_EXTERNAL:
		return o->external;
	case CEILING_NETWORK:
		return o->network;
	case CEILING_WRITE:
		return o->write;
	default:
		return o->roots;
	}
}

/*
 * What users can do themselves. With `policy`, another policy for execctl's -s
 * helps.
 */
static const struct {
	const char *text;
	bool policy;
} advice[] = {
	[CEILING_UNSANDBOXED] = { "use a policy", true },
	[CEILING_EXTERNAL] = { "use a policy", true },
	[CEILING_NETWORK] = { "use a policy without a network", false },
	[CEILING_WRITE] = { "use a policy that writes less", true },
	[CEILING_ROOT] = { "use a workspace below those", false },
	[CEILING_CWD] = { "use a directory below those", false },
};

static const char *const keys[] = {
	[CEILING_UNSANDBOXED] = "allow-unsandboxed = yes",
	[CEILING_EXTERNAL] = "allow-external = yes",
	[CEILING_NETWORK] = "allow-network = yes",
	[CEILING_WRITE] = "max-profile or sandbox-writable-roots",
	[CEILING_ROOT] = "workspace-roots",
	[CEILING_CWD] = "workspace-roots",
};

/*
 * Tells who set the limit and what can be done. Without an origin there is no
 * operator to ask.
 */
static void
explain(const struct ceiling *c, enum ceiling_limit what, struct buf *b)
{
	const char *origin = origin_of(&c->limits.origins, what);
	bool writes = c->limits.max_profile >= SANDBOX_PROFILE_WORKSPACE_WRITE;

	if (*origin == '\0')
		return;
	buf_printf(b, " (limited by %s; %s", origin, advice[what].text);
	if (advice[what].policy)
		buf_printf(b, " (execctl: -s %s)",
		    writes ? "workspace-write" : "read-only");
	buf_printf(b, ", or ask the operator for sandbox-%s in [identity %s])",
	    keys[what], c->limits.origins.identity);
}

static int
refuse(const struct ceiling *c, enum ceiling_limit what, const char *path,
    char *error)
{
	struct buf b;

	buf_init(&b, ARGS_ERROR_MAX);
	buf_printf(
	    &b, EXCEEDED "%s%s%.400s", words[what], *path ? " " : "", path);
	explain(c, what, &b);
	snprintf(error, ARGS_ERROR_MAX, "%.*s", (int)b.len, (char *)b.data);
	buf_clear(&b);
	return -EINVAL;
}

/*
 * Records that a request exceeds a limit. If policies are cut down, it notes
 * that in the grant, logs the first case and returns 0. Otherwise it refuses
 * with -EINVAL and the message.
 */
static int
ceiling_exceed(struct ceiling *c, enum ceiling_limit what, const char *path,
    struct ceiling_grant *g, char *error)
{
	if (!c->limits.clamp)
		return refuse(c, what, path, error);
	if (!c->told)
		log_warn(0,
		    "a sandbox policy was cut down to this executor's limit: "
		    "%s",
		    words[what]);
	c->told = true;
	g->clamped |= 1u << what;
	return 0;
}

const char *
ceiling_word(enum ceiling_limit what)
{
	return words[what];
}

/* --- before resolving --------------------------------------------------- */

static struct sandbox_entry
special(enum sandbox_special kind, enum sandbox_access access)
{
	return (struct sandbox_entry){
		.access = access, .kind = SANDBOX_SPECIAL, .special = kind
	};
}

/* The workspace is what the request names, or else the command's directory. */
static void
set_workspace(struct ceiling_grant *g, const struct sandbox_context *asked,
    const char *cwd)
{
	struct sandbox_context *c = &g->context;

	g->root = (struct path_uri){ .path = cwd };
	c->has_cwd = true;
	c->cwd = (struct path_uri){ .path = cwd != NULL ? cwd : "/" };
	c->roots = &g->root;
	c->nroots = cwd != NULL ? 1 : 0;
	if (asked != NULL && asked->nroots > 0) {
		c->roots = asked->roots;
		c->nroots = asked->nroots;
	}
}

/*
 * Grants the maximum profile where the request asked for no sandbox or for
 * more.
 */
static void
grant_maximum(const struct ceiling *c, const struct sandbox_context *asked,
    const char *cwd, struct ceiling_grant *g)
{
	bool write = c->limits.max_profile >= SANDBOX_PROFILE_WORKSPACE_WRITE;
	bool full = c->limits.max_profile == SANDBOX_PROFILE_FULL;

	g->fixed[0] =
	    special(SANDBOX_ROOT, full ? SANDBOX_WRITE : SANDBOX_READ);
	g->fixed[1] = special(SANDBOX_SLASH_TMP, SANDBOX_WRITE);
	g->fixed[2] = special(SANDBOX_TMPDIR, SANDBOX_WRITE);
	g->fixed[3] = special(SANDBOX_PROJECT_ROOTS, SANDBOX_WRITE);
	g->context = (struct sandbox_context){
		.type = SANDBOX_MANAGED,
		.network_enabled = c->limits.network,
		.entries = g->fixed,
		.nentries = write ? nitems(g->fixed) : 1,
	};
	set_workspace(g, asked, cwd);
}

/* Grants reading of the whole disk, except what every sandbox hides. */
static void
grant_reading(struct ceiling_grant *g)
{
	g->fixed[0] = special(SANDBOX_ROOT, SANDBOX_READ);
	g->context = (struct sandbox_context){
		.type = SANDBOX_MANAGED,
		.entries = g->fixed,
		.nentries = 1,
	};
	set_workspace(g, NULL, NULL);
}

/* Judges a request without a context, or with one that asks for no sandbox. */
static int
judge_unsandboxed(struct ceiling *c, bool reads, const char *cwd,
    struct ceiling_grant *g, char *error)
{
	int err;

	g->context = (struct sandbox_context){ .type = SANDBOX_DISABLED,
		.network_enabled = true,
		.files_unrestricted = true,
		.unrestricted = true };
	if (c->limits.unsandboxed)
		return 0;
	if (reads) {
		grant_reading(g);
		return 0;
	}
	err = ceiling_exceed(c, CEILING_UNSANDBOXED, "", g, error);
	if (err == 0)
		grant_maximum(c, NULL, cwd, g);
	return err;
}

/*
 * Judges a request for more files than the ceiling permits. It never gets more
 * of the network than it asked for.
 */
static int
judge_everything(struct ceiling *c, const struct sandbox_context *asked,
    enum ceiling_limit what, const char *cwd, struct ceiling_grant *g,
    char *error)
{
	int err =
	    ceiling_exceed(c, what, what == CEILING_WRITE ? "/" : "", g, error);

	if (err == 0)
		grant_maximum(c, asked, cwd, g);
	g->context.network_enabled &= asked->network_enabled;
	return err;
}

/* Judges each root; those outside are refused or left out. */
static int
judge_each_root(struct ceiling *c, const struct sandbox_context *asked,
    const struct paths *permitted, struct ceiling_grant *g, char *error)
{
	int err = 0;

	g->roots = xcalloc(asked->nroots + 1, sizeof(*g->roots));
	for (size_t i = 0; i < asked->nroots && err == 0; i++) {
		const struct path_uri *root = &asked->roots[i];

		if (root->foreign ||
		    path_set_hold_target(permitted, root->path, &g->workspace))
			g->roots[g->nroots++] = *root;
		else
			err = ceiling_exceed(
			    c, CEILING_ROOT, root->path, g, error);
	}
	return err;
}

/*
 * Checks where the workspace may lie. The places that cwd and the roots lead to
 * now are recorded and used from here on.
 */
static int
judge_roots(struct ceiling *c, const struct sandbox_context *asked,
    const char *cwd, struct ceiling_grant *g, char *error)
{
	bool anywhere = c->workspace_roots[0] == NULL;
	struct paths set = { 0 }, *permitted = anywhere ? NULL : &set;
	int err = 0;

	path_set_add_patterns(&set, c->workspace_roots);
	if (cwd != NULL && !path_set_hold_target(permitted, cwd, &g->at))
		err = refuse(c, CEILING_CWD, cwd, error);
	if (err == 0 && asked != NULL)
		err = judge_each_root(c, asked, permitted, g, error);
	path_set_clear(&set);
	return err;
}

static int
judge_policy(struct ceiling *c, const struct sandbox_context *asked, bool reads,
    const char *cwd, struct ceiling_grant *g, char *error)
{
	int err = 0;

	if (asked == NULL)
		return judge_unsandboxed(c, reads, cwd, g, error);
	if (asked->type == SANDBOX_EXTERNAL && !c->limits.external)
		return judge_everything(
		    c, asked, CEILING_EXTERNAL, cwd, g, error);
	if (asked->unrestricted && !asked->required)
		return judge_unsandboxed(c, reads, cwd, g, error);
	if (asked->files_unrestricted &&
	    c->limits.max_profile < SANDBOX_PROFILE_FULL)
		return judge_everything(c, asked, CEILING_WRITE, cwd, g, error);
	g->context = *asked;
	g->context.unrestricted = false;
	if (asked->network_enabled && !c->limits.network) {
		err = ceiling_exceed(c, CEILING_NETWORK, "", g, error);
		g->context.network_enabled = false;
	}
	return err;
}

/* Nothing needs to be compared if everything is permitted. */
bool
ceiling_has_bounds(const struct ceiling *c)
{
	return c->limits.max_profile < SANDBOX_PROFILE_FULL ||
	       c->workspace_roots[0] != NULL || c->writable_roots[0] != NULL;
}

int
ceiling_judge(struct ceiling *c, const struct sandbox_context *asked,
    bool reads, const char *cwd, struct ceiling_grant *g, char *error)
{
	int err = 0;

	*g = (struct ceiling_grant){ .clamped = 0 };
	if (ceiling_has_bounds(c))
		err = judge_roots(c, asked, cwd, g, error);
	if (err == 0)
		err = judge_policy(c, asked, reads, cwd, g, error);
	if (err == 0 && g->roots != NULL && g->context.roots == asked->roots) {
		g->context.roots = g->roots;
		g->context.nroots = g->nroots;
	}
	if (err < 0)
		ceiling_grant_clear(g);
	return err;
}

void
ceiling_grant_clear(struct ceiling_grant *g)
{
	path_set_clear(&g->workspace);
	path_set_clear(&g->at);
	free(g->roots);
	free(g->entries);
	for (size_t i = 0; i < g->ntexts; i++)
		free(g->texts[i]);
	free(g->texts);
	*g = (struct ceiling_grant){ .clamped = 0 };
}

int
ceiling_judge_network(const struct ceiling *c, char *error)
{
	if (!c->limits.network)
		return refuse(c, CEILING_NETWORK, "", error);
	return 0;
}

bool
ceiling_holds_requests(const struct ceiling *c)
{
	return !c->limits.network_host && !c->limits.unsandboxed;
}

int
ceiling_judge_loopback(const struct ceiling *c, char *error)
{
	if (!c->limits.unsandboxed)
		return refuse(c, CEILING_UNSANDBOXED, "", error);
	return ceiling_judge_network(c, error);
}

/*
 * The operator's ceiling over the resolved plan: what would be writable on this
 * disk.
 */

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
		if (plan_is_writable(&plan->mounts[i]) &&
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

		if (!plan_is_writable(m) || may_write(b, m))
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
	path_set_clear(&b.workspace);
	path_set_clear(&b.writable);
	return err;
}
