/* SPDX-License-Identifier: ISC */
/*
 * Protects parts of a writable root from its commands: the protected names, the
 * git directory that a `.git` file points to, and paths to protect that do not
 * exist yet (doc/sandbox.md section A10, rules 5 and 6; O5).
 */
#include "base.h"
#include "resolve_parts.h"

static int resolve_protect_nested(struct resolver *s, struct node *root);

static bool
is_name(const struct resolver *s, const char *name)
{
	const char *const *p = s->r->protected_names;

	while (p != NULL && *p != NULL && strcmp(*p, name) != 0)
		p++;
	return p != NULL && *p != NULL;
}

/*
 * A writable directory that an entry names, even through a link that grants
 * nothing. The root of the tree does not count.
 */
static bool
is_root(const struct node *n)
{
	return n->root && n->parent != NULL && n->seen.type == FS_DIRECTORY &&
	       node_access(n) == SANDBOX_WRITE;
}

/* A path with a claim of its own keeps that claim. */
static void
protect_node(struct node *n)
{
	if (n->claim == CLAIM_NONE && node_access(n) == SANDBOX_WRITE)
		n->claim = CLAIM_READ;
}

static void
placeholder_node(const struct resolver *s, struct node *n)
{
	if (n->masked || node_access(n) != SANDBOX_WRITE)
		return;
	n->masked = true;
	n->mask = is_root(n->parent) && is_name(s, n->name)
		      ? PLAN_PLACEHOLDER_DIRECTORY
		      : PLAN_PLACEHOLDER_FILE;
}

/*
 * Reads the rest of a small file's first line after a prefix. Returns 1 with
 * *line, which the caller frees; 0 if there is no such line or the file is
 * gone. Every other error refuses the policy: a lease, a mode or a change of
 * the file's type must not make a pointer look absent, because its target would
 * then be writable.
 */
static int
read_line(struct resolver *s, const struct node *file, const char *prefix,
    char **line)
{
	_cleanup_free_ char *path = node_path(file);
	const struct fs_view *view = s->tree.view;
	char text[PATH_MAX + 16], *p = text;
	int err;

	*line = NULL;
	if (file->seen.type != FS_FILE)
		return 0;
	err = view->read_file(view->owner, path, text, sizeof(text));
	if (err == -ENOENT)
		return 0;
	if (err < 0)
		return resolve_fail(s,
		    "cannot read %.400s, which may name a git directory to "
		    "protect: %s (os error %d)",
		    path, strerror(-err), -err);
	if (strncmp(text, prefix, strlen(prefix)) != 0)
		return 0;
	p += strlen(prefix);
	p += strspn(p, " \t");
	p[strcspn(p, "\r\n")] = '\0';
	if (*p == '\0')
		return 0;
	*line = xstrdup(p);
	return 1;
}

/*
 * Refuses the policy if a directory on the way may not be searched but lies
 * where commands may write. A command could change the mode back, so what lies
 * behind the directory is not absent.
 */
static int
check_way(struct resolver *s, const struct walk *w, const char *text)
{
	_cleanup_free_ char *path = NULL;

	if (w->state != WALK_BLOCKED || node_access(w->at) != SANDBOX_WRITE)
		return 0;
	path = node_path(w->at);
	return resolve_fail(s,
	    "cannot look into %.400s, where the git directory %.400s to "
	    "protect may lie",
	    path, text);
}

/*
 * Follows a pointer from a directory. Returns 1 if it leads to a directory, 0
 * if not, or -errno.
 */
static int
walk_pointer(struct resolver *s, const char *text, struct node *directory,
    struct walk *w)
{
	int err;

	*w = tree_start(&s->tree);
	w->at = directory;
	err = text != NULL ? tree_walk(&s->tree, w, text) : 0;
	if (err == -ELOOP)
		w->state = WALK_NEVER;
	else if (err < 0)
		return resolve_error(s, err, text, "");
	err = text != NULL ? check_way(s, w, text) : 0;
	if (err < 0)
		return err;
	return text != NULL && w->state == WALK_FOUND &&
	       w->at->seen.type == FS_DIRECTORY;
}

/*
 * Finds the directory that a `.git` file points to. Returns 1, 0 if there is
 * none, or -errno.
 */
static int
resolve_git_pointer(struct resolver *s, struct node *file,
    struct node *directory, struct walk *w)
{
	_cleanup_free_ char *text = NULL;
	int err = read_line(s, file, "gitdir:", &text);

	return err < 0 ? err : walk_pointer(s, text, directory, w);
}

/* The same for the common directory of a worktree's git directory. */
static int
resolve_common(struct resolver *s, struct node *gitdir, struct walk *w)
{
	_cleanup_free_ char *text = NULL;
	struct node *file;
	int err = tree_child(&s->tree, gitdir, SLICE("commondir"), &file);

	if (err < 0)
		return err;
	err = read_line(s, file, "", &text);
	return err < 0 ? err : walk_pointer(s, text, gitdir, w);
}

static int
protect_walked(struct resolver *s, const struct walk *w)
{
	_cleanup_free_ char *path = node_path(w->at);

	protect_node(w->at);
	return resolve_check_links(s, w->links, w->nlinks, path, "");
}

static int
protect_worktree(struct resolver *s, struct node *file)
{
	struct walk w;
	int found = resolve_git_pointer(s, file, file->parent, &w);
	int err = found > 0 ? protect_walked(s, &w) : found;

	if (found <= 0 || err < 0)
		return err;
	found = resolve_common(s, w.at, &w);
	return found > 0 ? protect_walked(s, &w) : found;
}

/*
 * Holds a protected name that is a link as it is, with every link that follows,
 * and protects what it leads to. Refuses the policy where a command could still
 * write to that, and for a pointer, which git looks for beside the link.
 */
static int
protect_link(struct resolver *s, struct node *link)
{
	_cleanup_free_ char *path = node_path(link);
	struct walk w = tree_start(&s->tree);
	int err;

	w.at = link->parent;
	err = tree_walk(&s->tree, &w, link->name);
	for (size_t i = 0; i < w.nlinks; i++)
		w.links[i]->pinned |= node_access(w.links[i]) == SANDBOX_WRITE;
	if (err == -ELOOP) /* they lead to nothing, and stay so */
		return 0;
	if (err < 0)
		return resolve_error(s, err, path, "");
	if (w.state == WALK_MISSING) {
		placeholder_node(s, w.at);
		w.at->mask = PLAN_PLACEHOLDER_DIRECTORY;
		return 0;
	}
	protect_node(w.at);
	return node_access(w.at) == SANDBOX_WRITE ||
		       (w.at->seen.type == FS_FILE &&
			   strcmp(link->name, ".git") == 0)
		   ? resolve_check_links(s, &link, 1, path, "")
		   : 0;
}

bool
resolve_holds(struct resolver *s, const struct record *r)
{
	const struct node *link =
	    r->nlinks > 0 ? s->links[r->first_link] : NULL;
	struct walk w = tree_start(&s->tree);

	if (link == NULL || r->access != SANDBOX_READ ||
	    !is_root(link->parent) || !is_name(s, link->name))
		return false;
	w.at = link->parent;
	return tree_walk(&s->tree, &w, link->name) == 0 && w.at == r->at &&
	       w.nlinks == r->nlinks;
}

static int
protect_child(struct resolver *s, struct node *child)
{
	if (child->write_named)
		return 0;
	if (child->blocked) {
		child->parent->claim = CLAIM_READ;
		return 0;
	}
	switch (child->seen.type) {
	case FS_LINK:
		return protect_link(s, child);
	case FS_MISSING:
		placeholder_node(s, child);
		return 0;
	default:
		protect_node(child);
	}
	return child->seen.type == FS_FILE && strcmp(child->name, ".git") == 0
		   ? protect_worktree(s, child)
		   : 0;
}

static int
protect_root(struct resolver *s, struct node *root)
{
	const char *const *name = s->r->protected_names;
	struct node *child;
	int err = 0;

	for (; name != NULL && *name != NULL && err == 0; name++) {
		struct slice text = { *name, strlen(*name) };

		err = tree_child(&s->tree, root, text, &child);
		if (err == 0)
			err = protect_child(s, child);
	}
	return err;
}

static int
protect_once(struct resolver *s, struct node *root)
{
	if (root->protects)
		return 0;
	root->protects = true;
	return protect_root(s, root);
}

/*
 * Directories for temporary files protect no names. They are nobody's
 * workspace, and any user who may write there could make another user's policy
 * fail.
 */
static int
protect_roots(
    struct resolver *s, int (*protect)(struct resolver *, struct node *))
{
	int err = 0;

	for (size_t i = 0; i < s->nrecords && err == 0; i++) {
		const struct record *r = &s->records[i];

		if (is_root(r->at) && !r->at->apart && !r->scratch)
			err = protect(s, r->at);
	}
	return err;
}

/* Makes sure that nobody creates a missing path that must be protected. */
static void
hold_missing(struct resolver *s, const struct record *r)
{
	switch (r->state) {
	case WALK_MISSING:
		placeholder_node(s, r->at);
		break;
	case WALK_FILE:
		if (node_access(r->at) == SANDBOX_WRITE)
			r->at->pinned = true;
		break;
	case WALK_BLOCKED:
		protect_node(r->at);
		break;
	default:
		break;
	}
}

int
resolve_protect(struct resolver *s)
{
	int err = protect_roots(s, protect_once);

	if (err == 0 && s->r->nested_git_depth > 0)
		err = protect_roots(s, resolve_protect_nested);
	for (size_t i = 0; i < s->nrecords && err == 0; i++) {
		const struct record *r = &s->records[i];

		if (!r->dropped && r->access != SANDBOX_WRITE &&
		    r->origin != ORIGIN_PATTERN && r->origin != ORIGIN_HIDE)
			hold_missing(s, r);
	}
	return err;
}

/* --- nested repositories ------------------------------------------------ */

/*
 * Protects repositories below a writable root, if the operator asks for it:
 * `hooks` and `config` of each repository stay read-only, down to a configured
 * depth. A directory that may not be looked at becomes read-only as a whole,
 * because a command that owns it could open it again and write there. If a tree
 * has more directories than one start may look at, the policy is refused: a
 * search that ended early would protect less than the operator believes.
 */

/*
 * The search happens before every command and asks the disk twice for each
 * name.
 */
#define NESTED_NAMES_MAX 5000

struct level {
	struct node *directory;
	unsigned depth;
};

struct queue {
	struct level *items; /* owned */
	size_t count, cap, next;
};

/* Searches a directory again if another root allows more levels below it. */
static void
put(struct resolver *s, struct queue *q, struct node *directory, unsigned depth)
{
	unsigned levels = s->r->nested_git_depth - depth;

	if (directory->scanned >= levels)
		return;
	directory->scanned = levels;
	q->items = resolve_grow(q->items, q->count, &q->cap, sizeof(*q->items));
	q->items[q->count++] = (struct level){ directory, depth };
}

static void
protect_closed(struct node *directory)
{
	if (directory->claim == CLAIM_NONE &&
	    node_access(directory) == SANDBOX_WRITE)
		directory->claim = CLAIM_READ;
}

/*
 * Missing `hooks` get a placeholder only if `config` exists; otherwise the
 * placeholder itself would make the directory look like a repository.
 */
static int
protect_repository(struct resolver *s, struct node *git)
{
	struct node *hooks, *config;
	int err;

	err = tree_child(&s->tree, git, SLICE("hooks"), &hooks);
	if (err == 0)
		err = tree_child(&s->tree, git, SLICE("config"), &config);
	if (err < 0 || git->claim == CLAIM_WRITE ||
	    node_access(git) != SANDBOX_WRITE)
		return err;
	if (hooks->blocked || config->blocked)
		protect_closed(git);
	if (hooks->claim == CLAIM_NONE && hooks->seen.type == FS_DIRECTORY)
		hooks->claim = CLAIM_READ;
	if (hooks->seen.type == FS_MISSING && !hooks->blocked &&
	    config->seen.type == FS_FILE) {
		hooks->masked = true;
		hooks->mask = PLAN_PLACEHOLDER_DIRECTORY;
	}
	if (config->claim == CLAIM_NONE && config->seen.type == FS_FILE)
		config->claim = CLAIM_READ;
	return 0;
}

static int
protect_pointed(struct resolver *s, struct node *file)
{
	struct walk w;
	int found = resolve_git_pointer(s, file, file->parent, &w);
	int err = found > 0 ? protect_repository(s, w.at) : found;

	if (found <= 0 || err < 0)
		return err;
	found = resolve_common(s, w.at, &w);
	return found > 0 ? protect_repository(s, w.at) : found;
}

/*
 * Protects the directory if it is a repository. The root's own `.git` is
 * already protected as a whole.
 */
static int
look_for_git(struct resolver *s, struct node *directory)
{
	struct node *git;
	int err = tree_child(&s->tree, directory, SLICE(".git"), &git);

	if (err < 0)
		return err;
	if (git->blocked)
		protect_closed(directory);
	if (git->seen.type == FS_DIRECTORY)
		return protect_repository(s, git);
	return git->seen.type == FS_FILE ? protect_pointed(s, git) : 0;
}

static int
visit(struct resolver *s, struct queue *q, const struct level *l,
    const char *name)
{
	struct slice text = { name, strlen(name) };
	struct node *child;
	int err;

	if (strcmp(name, ".git") == 0)
		return 0;
	err = tree_child(&s->tree, l->directory, text, &child);
	if (err == 0 && child->blocked)
		protect_closed(l->directory);
	if (err < 0 || child->seen.type != FS_DIRECTORY ||
	    node_access(child) == SANDBOX_DENY)
		return err;
	if (l->depth + 1 < s->r->nested_git_depth)
		put(s, q, child, l->depth + 1);
	return look_for_git(s, child);
}

static int
fail_too_many(struct resolver *s, const char *path)
{
	return resolve_fail(s,
	    "nested-git: more than %d directories to search for repositories, "
	    "at %.400s: lower nested-git-depth (%u), or set nested-git = off",
	    NESTED_NAMES_MAX, path, s->r->nested_git_depth);
}

static int
visit_names(struct resolver *s, struct queue *q, const struct level *l)
{
	_cleanup_free_ char *path = node_path(l->directory);
	struct names names = { .max = NESTED_NAMES_MAX - s->nested_names };
	int err = tree_list(&s->tree, path, true, &names);

	if (err == -E2BIG) {
		err = fail_too_many(s, path);
	} else if (err == -EACCES || err == -EPERM) {
		protect_closed(l->directory);
		err = 0;
	} else if (err == -ENOENT || err == -ENOTDIR) {
		err = 0;
	}
	for (size_t at = 0; at < names.len && err == 0;
	     at += strlen(names.text + at) + 1)
		err = visit(s, q, l, names.text + at + 1);
	s->nested_names += names.count;
	free(names.text);
	return err;
}

static int
resolve_protect_nested(struct resolver *s, struct node *root)
{
	struct queue q = { 0 };
	int err = 0;

	put(s, &q, root, 0);
	while (q.next < q.count && err == 0) {
		struct level l = q.items[q.next++];

		err = visit_names(s, &q, &l);
	}
	free(q.items);
	return err;
}
