/* SPDX-License-Identifier: ISC */
/*
 * Resolves a client's sandbox context to a plan of mounts: the order of the
 * steps (doc/sandbox.md section A10).
 */
#include "base.h"
#include "resolve_parts.h"

/* --- claims ------------------------------------------------------------- */

/*
 * Decides which entry counts where (doc/sandbox.md section A10, rules 4, 6, 7
 * and 9), and which entries cannot count because a command could change a link
 * on their path.
 *
 * Commands control every link in a directory that the policy lets them write. A
 * grant through such a link is dropped. A protection or a denial through such a
 * link cannot be enforced and is an error. All grants are in force when this is
 * judged, so the order of the entries does not matter.
 */

/* On one path, deny wins over write, and write wins over read. */
static void
raise_claim(struct node *n, enum sandbox_access access)
{
	enum claim claim = access == SANDBOX_DENY    ? CLAIM_DENY
			   : access == SANDBOX_WRITE ? CLAIM_WRITE
						     : CLAIM_READ;

	if (claim > n->claim)
		n->claim = claim;
}

static bool
is_below_absolute(const struct node *n)
{
	for (; n != NULL; n = n->parent)
		if (n->absolute)
			return true;
	return false;
}

/* The operator's denials win over all entries. */
static void
claim_operator(struct resolver *s)
{
	for (size_t i = 0; i < s->nrecords; i++) {
		struct record *r = &s->records[i];

		if (r->origin != ORIGIN_OPERATOR || r->state == WALK_MISSING ||
		    r->state == WALK_FILE)
			continue;
		r->at->absolute = true;
		r->at->claim = CLAIM_DENY;
	}
	for (size_t i = 0; i < s->nrecords; i++) {
		struct record *r = &s->records[i];

		r->dropped =
		    r->origin != ORIGIN_OPERATOR && is_below_absolute(r->at);
	}
}

/* The host's /proc is never mounted: a grant of /proc asks for a new one. */
static void
claim_record(struct resolver *s, const struct record *r)
{
	bool deny = r->access == SANDBOX_DENY;

	if (r->state == WALK_PROC && !deny)
		s->wants_proc = true;
	else if (r->state == WALK_FOUND ||
		 (deny && (r->state == WALK_PROC || r->state == WALK_BLOCKED)))
		raise_claim(r->at, r->access);
}

static void
claim_entries(struct resolver *s)
{
	for (size_t i = 0; i < s->tree.count; i++)
		if (!s->tree.nodes[i]->absolute)
			s->tree.nodes[i]->claim = CLAIM_NONE;
	for (size_t i = 0; i < s->nrecords; i++) {
		const struct record *r = &s->records[i];

		if (!r->dropped && r->origin != ORIGIN_OPERATOR &&
		    r->origin != ORIGIN_HIDE)
			claim_record(s, r);
	}
}

/* A hidden path stays visible if an entry names exactly this path. */
static void
claim_hidden(struct resolver *s)
{
	for (size_t i = 0; i < s->nrecords; i++) {
		const struct record *r = &s->records[i];

		if (r->origin == ORIGIN_HIDE && !r->dropped &&
		    r->at->claim == CLAIM_NONE)
			claim_record(s, r);
	}
}

static const struct node *
writable_link(struct node *const *links, size_t nlinks)
{
	for (size_t i = 0; i < nlinks; i++)
		if (node_access(links[i]->parent) == SANDBOX_WRITE)
			return links[i];
	return NULL;
}

static struct node *const *
links_of(const struct resolver *s, const struct record *r)
{
	return r->nlinks > 0 ? &s->links[r->first_link] : NULL;
}

/*
 * Drops grants that go through a command's link. All of them are judged with
 * the same claims before the claims are made again.
 */
static bool
drop_grants(struct resolver *s)
{
	bool any = false;

	for (size_t i = 0; i < s->nrecords; i++) {
		struct record *r = &s->records[i];
		bool grant =
		    r->access == SANDBOX_WRITE || r->origin == ORIGIN_MINIMAL;

		if (!r->dropped && grant &&
		    writable_link(links_of(s, r), r->nlinks) != NULL)
			r->dropped = any = true;
	}
	return any;
}

int
resolve_check_links(struct resolver *s, struct node *const *links,
    size_t nlinks, const char *base, const char *rest)
{
	const struct node *link = writable_link(links, nlinks);
	_cleanup_free_ char *path = link ? node_path(link) : NULL;
	const char *slash = *base != '\0' && *rest != '\0' ? "/" : "";

	if (link == NULL)
		return 0;
	if (strcmp(base, "/") == 0)
		slash = "";
	return resolve_fail(s,
	    "cannot enforce sandbox read-only path %s%s%s because it crosses "
	    "writable symlink %s",
	    base, slash, rest, path);
}

/*
 * Checks only the paths that the client named, but for protected names. A match
 * of a pattern describes this moment only, and the operator's paths are denied
 * where they lead now.
 */
static int
check_carve_outs(struct resolver *s)
{
	int err = 0;

	for (size_t i = 0; i < s->nrecords && err == 0; i++) {
		const struct record *r = &s->records[i];

		if (!r->dropped && r->origin == ORIGIN_CLIENT &&
		    r->access != SANDBOX_WRITE && !resolve_holds(s, r))
			err = resolve_check_links(
			    s, links_of(s, r), r->nlinks, r->base, r->rest);
	}
	return err;
}

/* For rule 5: marks what a write entry names, whether it exists or not. */
static void
mark_named(struct resolver *s)
{
	for (size_t i = 0; i < s->nrecords; i++) {
		const struct record *r = &s->records[i];

		if (r->access == SANDBOX_WRITE && r->state == WALK_FOUND)
			r->at->root = true;
		if (r->dropped || r->access != SANDBOX_WRITE ||
		    (r->state != WALK_FOUND && r->state != WALK_MISSING))
			continue;
		for (struct node *n = r->at; n && !n->write_named;
		     n = n->parent)
			n->write_named = true;
	}
}

/*
 * In an empty view the links on the way are created again, so that a path is
 * reached under both names.
 */
static void
mark_links(struct resolver *s)
{
	for (size_t i = 0; i < s->nrecords; i++) {
		const struct record *r = &s->records[i];

		if (r->dropped || r->access == SANDBOX_DENY ||
		    r->state != WALK_FOUND)
			continue;
		for (size_t k = 0; k < r->nlinks; k++)
			s->links[r->first_link + k]->remade = true;
	}
}

/* Turns records into claims, and checks for links that a command could
 * change. */
static int
resolve_claim(struct resolver *s)
{
	int err;

	claim_operator(s);
	claim_entries(s);
	if (drop_grants(s))
		claim_entries(s);
	mark_named(s);
	err = check_carve_outs(s);
	if (err < 0)
		return err;
	claim_hidden(s);
	mark_links(s);
	return 0;
}

/* Gives a policy that may write to the host's /tmp a place for X servers. */
static int
resolve_x11(struct resolver *s)
{
	struct walk w = tree_start(&s->tree);
	struct node *tmp;
	int err = tree_walk(&s->tree, &w, "/tmp");

	tmp = w.at;
	if (err < 0 || w.state != WALK_FOUND || tmp->apart ||
	    tmp->claim != CLAIM_WRITE || s->tree.root->claim == CLAIM_WRITE)
		return err == -ELOOP ? 0 : err;
	err = tree_walk(&s->tree, &w, strrchr(RESOLVE_X11, '/') + 1);
	if (err < 0 || w.state != WALK_FOUND || w.nlinks > 0 ||
	    w.at->parent != tmp || w.at->seen.type != FS_DIRECTORY ||
	    w.at->claim != CLAIM_NONE)
		return err == -ELOOP ? 0 : err;
	w.at->apart = true;
	w.at->claim = CLAIM_WRITE;
	return 0;
}

/* --- the plan ----------------------------------------------------------- */

/*
 * Turns claims into sorted mounts: those that change access, and pins that keep
 * them in place (doc/sandbox.md sections A10, rule 3, and C3, steps 1 to 3;
 * O4).
 */

static enum sandbox_access
access_of(enum claim claim)
{
	return claim == CLAIM_WRITE  ? SANDBOX_WRITE
	       : claim == CLAIM_READ ? SANDBOX_READ
				     : SANDBOX_DENY;
}

static int
put_mount(struct resolver *s, struct node *n, enum plan_kind kind)
{
	struct plan *plan = s->plan;

	if (plan->count == RESOLVE_MOUNTS_MAX)
		return resolve_fail(s,
		    "sandbox policy needs more than %d mounts",
		    RESOLVE_MOUNTS_MAX);
	plan->mounts = resolve_grow(
	    plan->mounts, plan->count, &plan->cap, sizeof(*plan->mounts));
	plan->mounts[plan->count++] = (struct plan_mount){ .kind = kind,
		.scratch = kind == PLAN_WRITE && n->in_scratch,
		.path = node_path(n),
		.seen = n->seen };
	n->mounted = true;
	return 0;
}

static enum plan_kind
kind_of(const struct node *n)
{
	if (n->access == SANDBOX_READ)
		return PLAN_READ;
	if (n->access == SANDBOX_WRITE)
		return PLAN_WRITE;
	return n->seen.type == FS_DIRECTORY ? PLAN_DENY_DIRECTORY
					    : PLAN_DENY_FILE;
}

/*
 * Below a replaced directory nothing of the host's is visible, except what has
 * a claim of its own.
 */
static int
emit_replaced(struct resolver *s, struct node *n)
{
	n->replaced =
	    n->claim == CLAIM_NONE || n->claim == CLAIM_DENY || n->masked;
	return n->replaced || n->seen.type == FS_MISSING
		   ? 0
		   : put_mount(s, n, kind_of(n));
}

/*
 * A directory that an entry makes writable ends the scratch place in which it
 * lies, for example a workspace in /tmp. There it is mounted, so that nothing
 * that is made in it can be renamed into the scratch place.
 */
static void
note_scratch(struct resolver *s, struct node *n, enum sandbox_access above)
{
	bool inherited = n->parent->in_scratch;

	n->in_scratch = inherited;
	if (n->claim != CLAIM_WRITE || n->seen.type != FS_DIRECTORY ||
	    s->plan->base == PLAN_BASE_WRITE)
		return;
	n->in_scratch = n->scratch && (inherited || above != SANDBOX_WRITE);
	n->only_leaves = inherited && !n->in_scratch && above == SANDBOX_WRITE;
}

/* A node whose claim changes nothing needs no mount. */
static int
emit_node(struct resolver *s, struct node *n)
{
	enum sandbox_access above = n->parent->access;

	n->access = n->claim != CLAIM_NONE ? access_of(n->claim) : above;
	note_scratch(s, n, above);
	if (n->apart && n->claim == CLAIM_WRITE) {
		n->replaced = true;
		return put_mount(s, n, PLAN_PRIVATE);
	}
	if (n->parent->replaced)
		return emit_replaced(s, n);
	if (n == s->tree.proc) {
		s->plan->deny_proc = n->claim == CLAIM_DENY;
		return 0;
	}
	if (n->masked)
		return above == SANDBOX_WRITE ? put_mount(s, n, n->mask) : 0;
	if (n->remade && above == SANDBOX_DENY)
		return put_mount(s, n, PLAN_READ);
	if (n->seen.type == FS_MISSING ||
	    (n->access == above && !n->only_leaves))
		return 0;
	return put_mount(s, n, kind_of(n));
}

static void
set_base(struct resolver *s)
{
	struct node *root = s->tree.root;
	struct plan *plan = s->plan;

	root->access = access_of(root->claim);
	plan->base = root->access == SANDBOX_WRITE  ? PLAN_BASE_WRITE
		     : root->access == SANDBOX_READ ? PLAN_BASE_READ
						    : PLAN_BASE_EMPTY;
	plan->minimal = plan->base == PLAN_BASE_EMPTY && s->wants_proc;
}

/* Tells whether the node's mount changes what may be done with the path. */
static bool
changes_access(const struct node *n)
{
	return n->mounted && !n->only_leaves;
}

/*
 * Pins writable directories above a mount; otherwise they could be renamed
 * together with what is mounted below.
 */
static void
mark_pins(const struct resolver *s)
{
	for (size_t i = 0; i < s->tree.count; i++) {
		struct node *n = s->tree.nodes[i];

		if (!changes_access(n) && !n->pinned)
			continue;
		for (n = n->parent;
		     n != NULL && n->parent != NULL && !changes_access(n) &&
		     !n->pinned && !n->replaced && n->access == SANDBOX_WRITE;
		     n = n->parent)
			n->pinned = true;
	}
}

static int
emit_pins(struct resolver *s)
{
	int err = 0;

	mark_pins(s);
	for (size_t i = 0; i < s->tree.count && err == 0; i++) {
		struct node *n = s->tree.nodes[i];

		if (n->pinned && !n->mounted && !n->replaced &&
		    n->access == SANDBOX_WRITE)
			err = put_mount(s, n, PLAN_PIN);
	}
	return err;
}

/* Compares in tree order: a slash sorts before every other byte. */
static int
compare_paths(const char *a, const char *b)
{
	while (*a == *b && *a != '\0') {
		a++;
		b++;
	}
	if (*a == *b || *a == '\0' || *b == '\0')
		return (*a != '\0') - (*b != '\0');
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int
compare_mounts(const void *a, const void *b)
{
	const struct plan_mount *x = a, *y = b;

	return compare_paths(x->path, y->path);
}

static void
sort_mounts(struct plan *plan)
{
	if (plan->count > 0)
		qsort(plan->mounts, plan->count, sizeof(*plan->mounts),
		    compare_mounts);
	for (size_t i = 0; i + 1 < plan->count; i++) {
		struct plan_mount *m = &plan->mounts[i];

		m->reopened = m->kind == PLAN_DENY_DIRECTORY &&
			      path_lies_in(m[1].path, m->path);
	}
}

/* Turns claims into mounts. */
static int
resolve_emit(struct resolver *s)
{
	int err = 0;

	set_base(s);
	for (size_t i = 1; i < s->tree.count && err == 0; i++)
		err = emit_node(s, s->tree.nodes[i]);
	if (err == 0)
		err = emit_pins(s);
	sort_mounts(s->plan);
	return err;
}

void
plan_clear(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		free(plan->mounts[i].path);
	free(plan->mounts);
	free(plan->hosts);
	*plan = (struct plan){ 0 };
}

static const struct plan_mount *
find_mount(const struct plan *plan, const char *path)
{
	struct plan_mount key = { .path = (char *)(uintptr_t)path };

	if (plan->count == 0)
		return NULL;
	return bsearch(
	    &key, plan->mounts, plan->count, sizeof(key), compare_mounts);
}

static enum sandbox_access
kind_access(enum plan_kind kind)
{
	if (kind == PLAN_WRITE || kind == PLAN_PRIVATE)
		return SANDBOX_WRITE;
	return kind == PLAN_DENY_DIRECTORY || kind == PLAN_DENY_FILE
		   ? SANDBOX_DENY
		   : SANDBOX_READ;
}

static enum sandbox_access
base_access(const struct plan *plan)
{
	return plan->base == PLAN_BASE_WRITE  ? SANDBOX_WRITE
	       : plan->base == PLAN_BASE_READ ? SANDBOX_READ
					      : SANDBOX_DENY;
}

/* Returns the most specific mount that decides about a path, or NULL. */
static const struct plan_mount *
deciding_mount(const struct plan *plan, const char *path)
{
	_cleanup_free_ char *prefix = xstrdup(path);
	const struct plan_mount *m;
	char *slash;

	while (*prefix != '\0') {
		m = find_mount(plan, prefix);
		if (m != NULL && m->kind != PLAN_PIN)
			return m;
		slash = strrchr(prefix, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
	return NULL;
}

enum sandbox_access
plan_access(const struct plan *plan, const char *path)
{
	const struct plan_mount *m;

	if (plan->deny_proc && path_lies_in(path, "/proc"))
		return SANDBOX_DENY;
	m = deciding_mount(plan, path);
	return m != NULL ? kind_access(m->kind) : base_access(plan);
}

bool
plan_leaves_out(const struct plan *plan, const char *path)
{
	return plan->base == PLAN_BASE_EMPTY &&
	       deciding_mount(plan, path) == NULL;
}

/* --- the steps ---------------------------------------------------------- */

int
resolve_fail(struct resolver *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->error, ARGS_ERROR_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int
resolve_error(struct resolver *s, int err, const char *base, const char *rest)
{
	const char *slash = *base != '\0' && *rest != '\0' ? "/" : "";

	if (err == -ELOOP)
		return resolve_fail(s,
		    "cannot resolve sandbox path %s%s%s: Too many levels of "
		    "symbolic links (os error 40)",
		    base, slash, rest);
	if (err == -E2BIG)
		return resolve_fail(s,
		    "sandbox paths have more than %d components",
		    RESOLVE_STEPS_MAX);
	return err;
}

void *
resolve_grow(void *items, size_t count, size_t *cap, size_t size)
{
	if (count < *cap)
		return items;
	*cap = *cap ? *cap * 2 : 16;
	return xreallocarray(items, *cap, size);
}

static void
clear(struct resolver *s)
{
	tree_clear(&s->tree);
	for (size_t i = 0; i < s->ntexts; i++)
		free(s->texts[i]);
	for (size_t i = 0; i < s->nlists; i++)
		glob_list_clear(&s->lists[i]);
	free(s->texts);
	for (size_t i = 0; i < s->nmounts; i++) {
		free(s->mounts[i].root);
		free(s->mounts[i].point);
	}
	free(s->mounts);
	free(s->lists);
	free(s->patterns);
	free(s->records);
	free(s->links);
	free(s->roots);
}

static int
run(struct resolver *s, const struct fs_view *view)
{
	int (*const steps[])(struct resolver *) = { resolve_bind,
		resolve_expand, resolve_claim, resolve_protect, resolve_x11,
		resolve_emit };
	int err = tree_init(&s->tree, view);

	for (size_t i = 0; i < nitems(steps) && err == 0; i++)
		err = steps[i](s);
	return err;
}

int
resolve(struct plan *plan, const struct resolve_request *r,
    const struct fs_view *view, char *error)
{
	struct resolver s = {
		.r = r, .c = r->context, .plan = plan, .error = error
	};
	int err;

	*plan = (struct plan){ .network = r->context->network_enabled };
	error[0] = '\0';
	err = run(&s, view);
	clear(&s);
	return err;
}
