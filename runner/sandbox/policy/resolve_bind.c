/* SPDX-License-Identifier: ISC */
/*
 * Turns entries into paths: what each symbol stands for (doc/sandbox.md
 * sections A3, A6 and A10, rules 1 and 2). This step makes no claims.
 */
#include "base.h"
#include "resolve_parts.h"

int
resolve_add_record(
    struct resolver *s, const struct record *record, const struct walk *w)
{
	struct record *r;

	if (s->nrecords == RESOLVE_RECORDS_MAX)
		return resolve_fail(s,
		    "sandbox entries name more than %d paths",
		    RESOLVE_RECORDS_MAX);
	/* What is meant there can be read by its own name. */
	if (record->access == SANDBOX_DENY && w->leaves_proc)
		return resolve_fail(
		    s, "a sandbox entry denies what a link of /proc leads to");
	s->records = resolve_grow(
	    s->records, s->nrecords, &s->records_cap, sizeof(*s->records));
	r = &s->records[s->nrecords++];
	*r = *record;
	r->state = w->state;
	r->at = w->at;
	r->first_link = s->nlinks;
	r->nlinks = w->nlinks;
	for (size_t i = 0; i < w->nlinks; i++) {
		s->links = resolve_grow(
		    s->links, s->nlinks, &s->links_cap, sizeof(*s->links));
		s->links[s->nlinks++] = w->links[i];
	}
	return 0;
}

/* Lets a scan of patterns look below a directory that they hide. */
static void
mark_grant(struct node *n)
{
	for (; n != NULL && !n->grant_below; n = n->parent)
		n->grant_below = true;
}

/*
 * Walks from a place along `rest`. A loop of links is an error only if the
 * client named the path.
 */
static int
add_bind(struct resolver *s, const struct place *from, const char *rest,
    enum sandbox_access access, enum origin origin)
{
	struct record record = { origin, access, .base = from->path,
		.rest = rest };
	struct walk w = from->walk;
	int err = tree_walk(&s->tree, &w, rest);

	if (err == -ELOOP && origin != ORIGIN_CLIENT)
		return 0;
	if (err < 0)
		return resolve_error(s, err, from->path, rest);
	if (access != SANDBOX_DENY)
		mark_grant(w.at);
	return w.state == WALK_NEVER ? 0 : resolve_add_record(s, &record, &w);
}

static int
bind_absolute(struct resolver *s, const char *path, enum sandbox_access access,
    enum origin origin)
{
	struct place root = { "", tree_start(&s->tree) };

	return add_bind(s, &root, path, access, origin);
}

static int
fail_foreign(struct resolver *s, const char *what, const struct path_uri *p)
{
	return resolve_fail(s,
	    "failed to prepare process sandbox: invalid sandbox %s: '%.*s' is "
	    "invalid on 'linux'%s",
	    what, (int)(p->uri.len < 300 ? p->uri.len : 300), p->uri.ptr,
	    path_uri_hint(p));
}

static int
compare_texts(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Walks the sorted roots and keeps those that exist, each once. */
static int
walk_roots(struct resolver *s, size_t named)
{
	for (size_t i = 0; i < named; i++) {
		struct place place = s->roots[i];
		int err;

		if (s->nroots > 0 &&
		    strcmp(s->roots[s->nroots - 1].path, place.path) == 0)
			continue;
		place.walk = tree_start(&s->tree);
		err = tree_walk(&s->tree, &place.walk, place.path);
		if (err < 0)
			return resolve_error(s, err, "", place.path);
		if (place.walk.state == WALK_FOUND)
			s->roots[s->nroots++] = place;
	}
	return 0;
}

static int
bind_roots(struct resolver *s)
{
	const struct sandbox_context *c = s->c;

	s->roots = xcalloc(c->nroots, sizeof(*s->roots));
	for (size_t i = 0; i < c->nroots; i++) {
		if (c->roots[i].foreign)
			return fail_foreign(s, "workspace root", &c->roots[i]);
		s->roots[i].path = c->roots[i].path;
	}
	if (c->nroots > 0)
		qsort(s->roots, c->nroots, sizeof(*s->roots), compare_texts);
	return walk_roots(s, c->nroots);
}

bool
resolve_is_below(struct slice text, bool strict)
{
	/* An empty text may be NULL, to which nothing may be added. */
	const char *p = text.ptr, *end = text.len > 0 ? p + text.len : p;

	if (text.len > 0 && *p == '/')
		return false;
	while (p < end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t n = (size_t)((slash != NULL ? slash : end) - p);

		if ((n == 2 && memcmp(p, "..", 2) == 0) ||
		    (strict && n == 1 && *p == '.'))
			return false;
		p += n + (slash != NULL);
	}
	return true;
}

/* Copies a subpath. NULL: it grants nothing. */
static const char *
take_subpath(struct resolver *s, struct slice text)
{
	char *copy = xstrndup(text.ptr ? text.ptr : "", text.len);

	s->texts =
	    resolve_grow(s->texts, s->ntexts, &s->texts_cap, sizeof(*s->texts));
	s->texts[s->ntexts++] = copy;
	return resolve_is_below(text, false) ? copy : NULL;
}

static int
bind_project_roots(struct resolver *s, const struct sandbox_entry *e)
{
	const char *subpath;
	int err = 0;

	if (e->text.len > 0 && memchr(e->text.ptr, '\0', e->text.len) != NULL)
		return resolve_fail(s, "sandbox subpath holds a NUL byte");
	subpath = take_subpath(s, e->text);
	for (size_t i = 0; subpath && i < s->nroots && err == 0; i++)
		err = add_bind(
		    s, &s->roots[i], subpath, e->access, ORIGIN_CLIENT);
	return err;
}

/*
 * Grants at most reading, because the executor chose this list and not the
 * client.
 */
static int
bind_minimal(struct resolver *s, const struct sandbox_entry *e)
{
	static const char *const paths[] = { "/bin", "/sbin", "/usr", "/etc",
		"/lib", "/lib64", "/nix/store", "/run/current-system/sw" };
	enum sandbox_access access =
	    e->access == SANDBOX_DENY ? SANDBOX_DENY : SANDBOX_READ;
	int err = 0;

	for (size_t i = 0; i < nitems(paths) && err == 0; i++)
		err = bind_absolute(s, paths[i], access, ORIGIN_MINIMAL);
	s->wants_proc |= access == SANDBOX_READ;
	return err;
}

/*
 * Binds a directory that the executor chose. A path that is not a directory is
 * ignored.
 */
static int
bind_directory(struct resolver *s, const char *path, enum sandbox_access access)
{
	struct walk w = tree_start(&s->tree);
	int err;

	if (path == NULL || path[0] != '/')
		return 0;
	err = tree_walk(&s->tree, &w, path);
	if (err == -ELOOP)
		return 0;
	if (err < 0)
		return resolve_error(s, err, "", path);
	if (w.state != WALK_FOUND || w.at->seen.type != FS_DIRECTORY ||
	    w.at == s->tree.root)
		return 0;
	err = bind_absolute(s, path, access, ORIGIN_CLIENT);
	if (err == 0)
		s->records[s->nrecords - 1].scratch = true;
	return err;
}

static int
bind_special(struct resolver *s, const struct sandbox_entry *e)
{
	switch (e->special) {
	case SANDBOX_ROOT:
		return bind_absolute(s, "/", e->access, ORIGIN_CLIENT);
	case SANDBOX_MINIMAL:
		return bind_minimal(s, e);
	case SANDBOX_CURRENT_WORKING_DIRECTORY:
	case SANDBOX_PROJECT_ROOTS:
		return bind_project_roots(s, e);
	case SANDBOX_TMPDIR:
		return bind_directory(s, s->r->tmpdir, e->access);
	case SANDBOX_SLASH_TMP:
		return bind_directory(s, "/tmp", e->access);
	case SANDBOX_UNKNOWN:
		break;
	}
	return 0;
}

static int
bind_entry(struct resolver *s, const struct sandbox_entry *e)
{
	if (e->kind == SANDBOX_SPECIAL)
		return bind_special(s, e);
	if (e->kind == SANDBOX_GLOB)
		return e->access == SANDBOX_DENY
			   ? resolve_add_pattern(s, e->text)
			   : 0;
	if (e->path.foreign)
		return fail_foreign(s, "path", &e->path);
	return bind_absolute(s, e->path.path, e->access, ORIGIN_CLIENT);
}

/* The path was made here, and is kept for messages. */
static int
deny_here(struct resolver *s, const char *path)
{
	char *copy = xstrdup(path);

	s->texts =
	    resolve_grow(s->texts, s->ntexts, &s->texts_cap, sizeof(*s->texts));
	s->texts[s->ntexts++] = copy;
	return bind_absolute(s, copy, SANDBOX_DENY, ORIGIN_OPERATOR);
}

/* What the operator denies is denied wherever it is seen. */
static int
deny_elsewhere(struct resolver *s, size_t record)
{
	const struct record r = s->records[record];
	_cleanup_free_ char *path = NULL;

	if (r.state != WALK_FOUND && r.state != WALK_BLOCKED)
		return 0;
	path = r.state == WALK_FOUND || r.base[0] != '\0' ? node_path(r.at)
							  : xstrdup(r.rest);
	return resolve_elsewhere(s, path, deny_here);
}

/*
 * Binds the operator's list. A path is absolute or begins with "~", the
 * identity's home. A path with "-" before it is left out if it is missing.
 */
static int
bind_list(struct resolver *s, const char *const *list, enum origin origin)
{
	struct place home = { s->r->home, tree_start(&s->tree) };
	int err = 0;

	if (home.path != NULL)
		err = tree_walk(&s->tree, &home.walk, home.path);
	if (err < 0)
		return resolve_error(s, err, "", home.path);
	for (; list != NULL && *list != NULL && err == 0; list++) {
		const char *path = *list + (**list == '-');
		size_t known = s->nrecords;

		if (path[0] == '/')
			err = bind_absolute(s, path, SANDBOX_DENY, origin);
		else if (path[0] != '~' || (path[1] && path[1] != '/'))
			err = resolve_fail(s,
			    "configured sandbox path %s is not absolute", path);
		else if (home.path != NULL && home.walk.state == WALK_FOUND)
			err =
			    add_bind(s, &home, path + 1 + strspn(path + 1, "/"),
				SANDBOX_DENY, origin);
		if (path != *list && s->nrecords > known &&
		    s->records[known].state == WALK_MISSING)
			s->nrecords = known;
		if (err == 0 && origin == ORIGIN_OPERATOR &&
		    s->nrecords > known)
			err = deny_elsewhere(s, known);
	}
	return err;
}

/* Tells whether the entry depends on the working directory. */
static bool
is_dynamic(const struct sandbox_entry *e)
{
	if (e->kind == SANDBOX_GLOB)
		return e->text.len == 0 || e->text.ptr[0] != '/';
	return e->kind == SANDBOX_SPECIAL &&
	       (e->special == SANDBOX_PROJECT_ROOTS ||
		   e->special == SANDBOX_CURRENT_WORKING_DIRECTORY);
}

static int
check_cwd(struct resolver *s)
{
	if (s->c->has_cwd && s->c->cwd.foreign)
		return fail_foreign(s, "policy cwd", &s->c->cwd);
	if (s->c->has_cwd || s->r->cwd != NULL)
		return 0;
	for (size_t i = 0; i < s->c->nentries; i++)
		if (is_dynamic(&s->c->entries[i]))
			return resolve_fail(s,
			    "file system sandbox context with dynamic "
			    "permissions requires cwd");
	return 0;
}

static int
bind_entries(struct resolver *s)
{
	int err = bind_roots(s);

	for (size_t i = 0; i < s->c->nentries && err == 0; i++)
		err = bind_entry(s, &s->c->entries[i]);
	return err;
}

static int
set_scratch(struct resolver *s, const char *path, bool apart)
{
	struct walk w = tree_start(&s->tree);
	int err =
	    path != NULL && path[0] == '/' ? tree_walk(&s->tree, &w, path) : 0;

	if (err == -ELOOP)
		return 0;
	if (err < 0)
		return resolve_error(s, err, "", path);
	if (w.state != WALK_FOUND || w.at == s->tree.root ||
	    w.at->seen.type != FS_DIRECTORY)
		return 0;
	w.at->scratch = true;
	w.at->apart |= apart;
	return 0;
}

static int
set_scratches(struct resolver *s)
{
	int err = set_scratch(s, "/tmp", s->r->private_tmp);

	return err < 0 ? err
		       : set_scratch(s, s->r->tmpdir, s->r->private_tmpdir);
}

int
resolve_bind(struct resolver *s)
{
	int err = check_cwd(s);

	if (err < 0)
		return err;
	if (s->c->files_unrestricted)
		err = bind_absolute(s, "/", SANDBOX_WRITE, ORIGIN_CLIENT);
	else
		err = bind_entries(s);
	if (err == 0)
		err = set_scratches(s);
	if (err == 0)
		err = bind_list(s, s->r->deny_read, ORIGIN_OPERATOR);
	if (err == 0 && s->r->lists != NULL)
		err = bind_absolute(
		    s, s->r->lists, SANDBOX_DENY, ORIGIN_OPERATOR);
	if (err == 0)
		err = bind_list(s, s->r->hide, ORIGIN_HIDE);
	return err;
}
