/* SPDX-License-Identifier: ISC */
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
#include "resolve_parts.h"

#include <string.h>

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
 * Checks only the paths that the client named. A match of a pattern describes
 * this moment only, and the operator's paths are denied where they lead now.
 */
static int
check_carve_outs(struct resolver *s)
{
	int err = 0;

	for (size_t i = 0; i < s->nrecords && err == 0; i++) {
		const struct record *r = &s->records[i];

		if (!r->dropped && r->origin == ORIGIN_CLIENT &&
		    r->access != SANDBOX_WRITE)
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

int
resolve_claim(struct resolver *s)
{
	int err;

	claim_operator(s);
	claim_entries(s);
	if (drop_grants(s))
		claim_entries(s);
	err = check_carve_outs(s);
	if (err < 0)
		return err;
	claim_hidden(s);
	mark_named(s);
	mark_links(s);
	return 0;
}
