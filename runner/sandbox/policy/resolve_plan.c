/* SPDX-License-Identifier: ISC */
/*
 * Turns claims into sorted mounts: those that change access, and pins that keep
 * them in place (doc/sandbox.md sections A10, rule 3, and C3, steps 1 to 3;
 * O4).
 */
#include "resolve_parts.h"

#include <string.h>

#include "path.h"

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
	plan->mounts[plan->count++] = (struct plan_mount){
		.kind = kind, .path = node_path(n), .seen = n->seen
	};
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

/* A node whose claim changes nothing needs no mount. */
static int
emit_node(struct resolver *s, struct node *n)
{
	enum sandbox_access above = n->parent->access;

	n->access = n->claim != CLAIM_NONE ? access_of(n->claim) : above;
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
	if (n->seen.type == FS_MISSING || n->access == above)
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

/*
 * Pins writable directories above a mount; otherwise they could be renamed
 * together with what is mounted below.
 */
static void
mark_pins(const struct resolver *s)
{
	for (size_t i = 0; i < s->tree.count; i++) {
		struct node *n = s->tree.nodes[i];

		if (!n->mounted && !n->pinned)
			continue;
		for (n = n->parent;
		     n != NULL && n->parent != NULL && !n->mounted &&
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

int
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

enum sandbox_access
plan_access(const struct plan *plan, const char *path)
{
	_cleanup_free_ char *prefix = xstrdup(path);
	const struct plan_mount *m;
	char *slash;

	if (plan->deny_proc && path_lies_in(path, "/proc"))
		return SANDBOX_DENY;
	while (*prefix != '\0') {
		m = find_mount(plan, prefix);
		if (m != NULL && m->kind != PLAN_PIN)
			return kind_access(m->kind);
		slash = strrchr(prefix, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
	return base_access(plan);
}
