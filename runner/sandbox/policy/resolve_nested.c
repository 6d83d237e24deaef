/* SPDX-License-Identifier: ISC */
/*
 * Protects repositories below a writable root, if the operator asks for it:
 * `hooks` and `config` of each repository stay read-only, down to a configured
 * depth. A directory that may not be looked at becomes read-only as a whole,
 * because a command that owns it could open it again and write there. If a tree
 * has more directories than one start may look at, the policy is refused: a
 * search that ended early would protect less than the operator believes.
 */
#include "resolve_parts.h"

#include <errno.h>
#include <string.h>

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

int
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
