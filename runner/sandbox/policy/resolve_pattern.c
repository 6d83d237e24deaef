/* SPDX-License-Identifier: ISC */
/*
 * Finds the paths that patterns match now (doc/sandbox.md sections A6 and A10,
 * rule 8; O9, O16). Patterns that begin in the same directory share one scan. A
 * scan follows no link and does not enter /proc.
 */
#include "base.h"
#include "resolve_parts.h"

#define PROJECT_ROOTS "codex-project-roots://"

/* The names that one resolution looks at. How long that may take is for whoever
 * asks for it. */
#define SCAN_NAMES_MAX 10000000

static int
fail_pattern(struct resolver *s, struct slice text, const char *reason)
{
	return resolve_fail(s, "sandbox pattern `%.*s` is invalid: %s",
	    (int)(text.len < 300 ? text.len : 300), text.ptr, reason);
}

/*
 * Removes ".." by the text alone, because a pattern is not yet a path on the
 * disk.
 */
static char *
join(const char *base, const char *rest)
{
	char *path = xmalloc(strlen(base) + strlen(rest) + 2);
	size_t len = 0;

	for (int i = 0; i < 2; i++) {
		const char *p = i == 0 ? base : rest;

		while (*(p += strspn(p, "/")) != '\0') {
			size_t n = strcspn(p, "/");

			if (n == 2 && memcmp(p, "..", 2) == 0) {
				while (len > 0 && path[--len] != '/')
					continue;
			} else {
				path[len++] = '/';
				memcpy(path + len, p, n);
				len += n;
			}
			p += n;
		}
	}
	if (len == 0)
		path[len++] = '/';
	path[len] = '\0';
	return path;
}

static int
put_pattern(struct resolver *s, const struct glob *g, struct node *at)
{
	if (s->npatterns == RESOLVE_PATTERNS_MAX)
		return resolve_fail(
		    s, "more than %d sandbox patterns", RESOLVE_PATTERNS_MAX);
	s->patterns = resolve_grow(
	    s->patterns, s->npatterns, &s->patterns_cap, sizeof(*s->patterns));
	s->patterns[s->npatterns++] = (struct pattern){ g, at };
	return 0;
}

static int
put_match(struct resolver *s, const struct walk *w)
{
	static const struct record record = { .origin = ORIGIN_PATTERN,
		.access = SANDBOX_DENY };

	if (w->state == WALK_MISSING || w->state == WALK_FILE ||
	    w->state == WALK_NEVER)
		return 0;
	if (++s->matches > RESOLVE_MATCHES_MAX)
		return resolve_fail(s,
		    "sandbox patterns match more than %d paths",
		    RESOLVE_MATCHES_MAX);
	return resolve_add_record(s, &record, w);
}

/*
 * Handles one alternative below one base: it is a match, or a place to scan. A
 * base that may not be searched or that leads into /proc is denied as a whole.
 */
static int
place_glob(struct resolver *s, struct slice text, const struct glob *g,
    const char *base)
{
	_cleanup_free_ char *path =
	    join(g->base[0] == '/' ? "" : base, g->base);
	struct walk w = tree_start(&s->tree);
	int err = tree_walk(&s->tree, &w, path);

	if (err == -ELOOP)
		return 0;
	if (err < 0)
		return resolve_error(s, err, "", path);
	if (g->nparts == 0 || w.state != WALK_FOUND)
		return put_match(s, &w);
	if (w.at == s->tree.root && (g->deep & 1) &&
	    s->c->glob_scan_max_depth == 0)
		return fail_pattern(
		    s, text, "it would scan the whole file system");
	return w.at->seen.type == FS_DIRECTORY ? put_pattern(s, g, w.at) : 0;
}

static int
place_list(struct resolver *s, struct slice text, const char *base)
{
	const struct glob_list *list = &s->lists[s->nlists - 1];
	int err = 0;

	for (size_t i = 0; i < list->count && err == 0; i++)
		err = place_glob(s, text, &list->globs[i], base);
	return err;
}

static int
place_below_roots(struct resolver *s, struct slice text)
{
	int err = 0;

	for (size_t i = 0; i < s->nroots && err == 0; i++)
		err = place_list(s, text, s->roots[i].path);
	return err;
}

/* The home for "~": the context's, or else the identity's. */
static const char *
home_of(const struct resolver *s)
{
	return s->c->has_home && !s->c->home.foreign ? s->c->home.path
						     : s->r->home;
}

static const char *
cwd_of(const struct resolver *s)
{
	return s->c->has_cwd ? s->c->cwd.path : s->r->cwd;
}

static bool
begins(struct slice text, const char *with)
{
	size_t n = strlen(with);

	return text.len >= n && memcmp(text.ptr, with, n) == 0;
}

static struct slice
skip(struct slice text, size_t n, bool slashes)
{
	while (slashes && n < text.len && text.ptr[n] == '/')
		n++;
	return (struct slice){ text.ptr + n, text.len - n };
}

/*
 * What is no plain path below a root stands for all of the root, as with the
 * peer: it was meant to hide something, and nobody knows what.
 */
static struct slice
below_root(struct slice text)
{
	struct slice rest = skip(text, strlen(PROJECT_ROOTS), false);

	return resolve_is_below(rest, true) ? rest : SLICE(".");
}

static int
parse(struct resolver *s, struct slice text, struct slice pattern)
{
	const char *reason = "";

	s->lists =
	    resolve_grow(s->lists, s->nlists, &s->lists_cap, sizeof(*s->lists));
	if (glob_parse(&s->lists[s->nlists++], pattern, &reason) < 0)
		return fail_pattern(s, text, reason);
	return 0;
}

int
resolve_add_pattern(struct resolver *s, struct slice text)
{
	bool roots = begins(text, PROJECT_ROOTS);
	bool home = begins(text, "~/") || (text.len == 1 && text.ptr[0] == '~');
	struct slice pattern =
	    roots ? below_root(text) : skip(text, home, home);
	const char *base = home ? home_of(s) : cwd_of(s);
	int err;

	if (pattern.len == 0 && text.len > 0)
		pattern = SLICE(".");
	/* For the peer the pattern ends there. */
	if (memchr(text.ptr, '\n', text.len) != NULL)
		return fail_pattern(s, text, "it has more than one line");
	if (home && base == NULL)
		return fail_pattern(s, text, "there is no home directory");
	err = parse(s, text, pattern);
	if (err < 0 || roots)
		return err < 0 ? err : place_below_roots(s, text);
	return place_list(s, text, base != NULL ? base : "/");
}

/* A directory to scan, with the state of each pattern of the group. */
struct scan_directory {
	struct scan_directory *next;
	uint64_t depth;
	char *path; /* owned */
	uint64_t states[];
};

/* What names of a directory are compared with: one part of one pattern. */
struct scan_part {
	const struct glob *glob;
	size_t part;
};

struct scan {
	struct resolver *s;
	const struct pattern *patterns; /* all with the same base */
	size_t npatterns;
	struct scan_directory *todo;
	struct scan_directory *at; /* the one that is scanned */
	struct scan_part *parts;   /* owned: those that count there */
	size_t nparts, parts_cap;
	bool all; /* each name there matches a pattern that ends with `**` */
	size_t names; /* the sum of all scans */
	int err;
};

static struct scan_directory *
new_directory(const struct scan *scan, char *path, uint64_t depth)
{
	struct scan_directory *d =
	    xmalloc(sizeof(*d) + scan->npatterns * sizeof(d->states[0]));

	d->next = NULL;
	d->path = path;
	d->depth = depth;
	return d;
}

static void
free_directory(struct scan_directory *d)
{
	free(d->path);
	free(d);
}

/*
 * Computes the states after a name; NULL: after one that no part matches. Tells
 * whether a pattern matched and whether a pattern may match further below.
 */
static void
step(struct scan *scan, const char *name, struct scan_directory *next,
    bool *matched, bool *goes_on)
{
	*matched = *goes_on = false;
	for (size_t i = 0; i < scan->npatterns; i++) {
		const struct glob *g = scan->patterns[i].glob;

		next->states[i] = glob_step(g, scan->at->states[i], name);
		*matched |= glob_matched(g, next->states[i]);
		*goes_on |= glob_goes_on(g, next->states[i]);
	}
}

/* Most names of a tree match nothing, and are compared with these alone. */
static void
find_parts(struct scan *scan)
{
	scan->nparts = 0;
	scan->all = false;
	for (size_t i = 0; i < scan->npatterns; i++) {
		const struct glob *g = scan->patterns[i].glob;

		scan->all |=
		    (scan->at->states[i] & g->deep) >> (g->nparts - 1) & 1;
		for (size_t part = 0; part < g->nparts; part++) {
			if (!(scan->at->states[i] & ~g->deep &
				(uint64_t)1 << part))
				continue;
			scan->parts = resolve_grow(scan->parts, scan->nparts,
			    &scan->parts_cap, sizeof(*scan->parts));
			scan->parts[scan->nparts++] =
			    (struct scan_part){ g, part };
		}
	}
}

static bool
matches_part(const struct scan *scan, struct slice name)
{
	for (size_t i = 0; i < scan->nparts; i++)
		if (glob_part_matches(
			scan->parts[i].glob, scan->parts[i].part, name))
			return true;
	return false;
}

static int
match(struct resolver *s, const char *path, struct walk *w)
{
	int err;

	*w = tree_start(&s->tree);
	err = tree_walk(&s->tree, w, path);
	if (err == -ELOOP) {
		w->state = WALK_NEVER;
		return 0;
	}
	return err < 0 ? resolve_error(s, err, "", path) : put_match(s, w);
}

/*
 * Takes ownership of `next` and returns 1 if it is a directory to scan; else 0
 * or -errno. A directory that matched is hidden, so it is scanned only if
 * something below it is granted.
 */
static int
visit(struct scan *scan, struct scan_directory *next, enum fs_type type,
    bool matched)
{
	struct resolver *s = scan->s;
	const struct fs_view *view = s->tree.view;
	uint64_t max = s->c->glob_scan_max_depth;
	struct fs_node seen = { .type = type };
	struct walk w = { 0 };
	int err = matched ? match(s, next->path, &w) : 0;

	if (err < 0)
		return err;
	if (max != 0 && next->depth >= max)
		return 0;
	if (type == FS_MISSING)
		err = view->lookup(view->owner, next->path, &seen);
	if (err < 0 || seen.type != FS_DIRECTORY ||
	    strcmp(next->path, "/proc") == 0 ||
	    (matched && w.at != NULL && !w.at->grant_below))
		return 0;
	next->next = scan->todo;
	scan->todo = next;
	return 1;
}

/* A name that matches a part, or a directory. */
static int
scan_name(struct scan *scan, const char *name, enum fs_type type, bool match_it)
{
	const struct scan_directory *d = scan->at;
	bool root = strcmp(d->path, "/") == 0, matched, goes_on;
	struct scan_directory *next = new_directory(scan, NULL, d->depth + 1);
	int taken = 0;

	step(scan, match_it ? name : NULL, next, &matched, &goes_on);
	/* Only a directory has names below it. */
	if (type != FS_DIRECTORY && type != FS_MISSING && !matched)
		goes_on = false;
	if (matched || goes_on) {
		next->path = xasprintf("%s/%s", root ? "" : d->path, name);
		if (goes_on)
			taken = visit(scan, next, type, matched);
		else
			taken = match(scan->s, next->path, &(struct walk){ 0 });
	}
	if (taken != 1)
		free_directory(next);
	return taken < 0 ? taken : 0;
}

static bool
take_name(void *arg, const char *name, enum fs_type type)
{
	struct scan *scan = arg;
	struct slice text = { name, strlen(name) };
	bool matches = scan->all || matches_part(scan, text);

	if (scan->err < 0)
		return false;
	if (++scan->names > SCAN_NAMES_MAX)
		scan->err = resolve_fail(scan->s,
		    "sandbox patterns look at more than %d names",
		    SCAN_NAMES_MAX);
	else if ((matches || type == FS_DIRECTORY || type == FS_MISSING) &&
		 text.len > 0 && memchr(name, '/', text.len) == NULL)
		scan->err = scan_name(scan, name, type, matches);
	return scan->err == 0;
}

/*
 * A directory that may not be listed is hidden, because its owner could open it
 * later.
 */
static int
scan_directory(struct scan *scan, struct scan_directory *d)
{
	const struct fs_view *view = scan->s->tree.view;
	struct walk w;
	int err;

	scan->at = d;
	find_parts(scan);
	err = view->list(view->owner, d->path, false, take_name, scan);
	if (scan->err < 0)
		return scan->err;
	if (err == -EACCES || err == -EPERM)
		return match(scan->s, d->path, &w);
	return err == -ENOENT || err == -ENOTDIR ? 0 : err;
}

static int
run(struct scan *scan)
{
	struct scan_directory *d;
	int err = 0;

	d = new_directory(scan, node_path(scan->patterns[0].at), 0);
	for (size_t i = 0; i < scan->npatterns; i++)
		d->states[i] = glob_start(scan->patterns[i].glob);
	for (scan->todo = d; scan->todo != NULL; free_directory(d)) {
		d = scan->todo;
		scan->todo = d->next;
		if (err == 0)
			err = scan_directory(scan, d);
	}
	return err;
}

static int
compare_bases(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct pattern *)a)->at;
	uintptr_t y = (uintptr_t)((const struct pattern *)b)->at;

	return x < y ? -1 : x > y;
}

static int
scan_all(struct resolver *s)
{
	struct scan scan = { .s = s };
	int err = 0;

	if (s->npatterns > 0)
		qsort(s->patterns, s->npatterns, sizeof(*s->patterns),
		    compare_bases);
	for (size_t i = 0; i < s->npatterns && err == 0; i += scan.npatterns) {
		scan.patterns = &s->patterns[i];
		scan.npatterns = 1;
		while (i + scan.npatterns < s->npatterns &&
		       scan.patterns[scan.npatterns].at == scan.patterns->at)
			scan.npatterns++;
		err = run(&scan);
	}
	free(scan.parts);
	return err;
}

int
resolve_expand(struct resolver *s)
{
	if (s->npatterns > 0 && s->r->no_scan)
		return -EINPROGRESS;
	return scan_all(s);
}
