/* SPDX-License-Identifier: ISC */
/*
 * The resolver's picture of the disk. Each name is looked up once, and links
 * are followed here and not by the kernel (doc/sandbox.md section A10, rules 1
 * and 9). This file knows nothing of entries.
 */
#include "base.h"
#include "resolve_parts.h"

#include "siphash.h"

struct name_key {
	const struct node *parent;
	struct slice name;
};

static bool
matches(const struct table_node *link, const void *key)
{
	const struct node *n = TABLE_OBJECT(link, struct node, link);
	const struct name_key *k = key;

	return n->parent == k->parent && n->name_len == k->name.len &&
	       memcmp(n->name, k->name.ptr, n->name_len) == 0;
}

static struct node *
add_node(struct tree *t, struct node *parent, struct slice name)
{
	struct node *n = xcalloc(1, sizeof(*n) + name.len + 1);

	n->parent = parent;
	n->name_len = name.len;
	memcpy(n->name, name.ptr, name.len);
	if (parent != NULL)
		n->path_len =
		    parent->path_len + (parent->parent != NULL) + name.len;
	else
		n->path_len = 1;
	t->nodes = resolve_grow(t->nodes, t->count, &t->cap, sizeof(*t->nodes));
	t->nodes[t->count++] = n;
	return n;
}

char *
node_path(const struct node *n)
{
	char *path = xmalloc(n->path_len + 1), *to = path + n->path_len;

	*to = '\0';
	if (n->parent == NULL)
		*--to = '/';
	for (; n->parent != NULL; n = n->parent) {
		to -= n->name_len;
		memcpy(to, n->name, n->name_len);
		*--to = '/';
	}
	return path;
}

/*
 * Looks the node up. A path that cannot exist counts as missing, and a path
 * that may not be looked at is blocked.
 */
static int
look(struct tree *t, struct node *n)
{
	_cleanup_free_ char *path = node_path(n);
	int err = -ENAMETOOLONG;

	if (n->path_len < PATH_MAX)
		err = t->view->lookup(t->view->owner, path, &n->seen);
	if (err == 0)
		return 0;
	n->seen = (struct fs_node){ .type = FS_MISSING };
	n->blocked = err == -EACCES || err == -ENAMETOOLONG || err == -EPERM;
	return n->blocked || err == -ENOENT || err == -ENOTDIR ? 0 : err;
}

int
tree_child(
    struct tree *t, struct node *parent, struct slice name, struct node **out)
{
	struct name_key key = { parent, name };
	uint64_t h = siphash_bytes(key.name.ptr, key.name.len) ^
		     siphash_bytes(&key.parent, sizeof(key.parent));
	struct table_node *found = table_find(&t->table, h, matches, &key);

	if (found != NULL) {
		*out = TABLE_OBJECT(found, struct node, link);
		return 0;
	}
	*out = add_node(t, parent, name);
	table_insert(&t->table, &(*out)->link, h);
	return look(t, *out);
}

int
tree_init(struct tree *t, const struct fs_view *view)
{
	int err;

	*t = (struct tree){ .view = view };
	t->root = add_node(t, NULL, SLICE(""));
	err = look(t, t->root);
	return err < 0 ? err : tree_child(t, t->root, SLICE("proc"), &t->proc);
}

void
tree_clear(struct tree *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->nodes[i]);
	free(t->nodes);
	table_clear(&t->table);
	*t = (struct tree){ 0 };
}

struct walk
tree_start(const struct tree *t)
{
	return (struct walk){ .state = WALK_FOUND, .at = t->root };
}

/* The rest of the path. A link's target is put in front of it. */
struct rest {
	char *text; /* owned */
	const char *at;
};

static int
follow(struct tree *t, struct walk *w, struct node *link, struct rest *rest)
{
	_cleanup_free_ char *path = node_path(link);
	char target[PATH_MAX];
	char *text;
	int err;

	if (w->nlinks == RESOLVE_LINKS_MAX)
		return -ELOOP;
	w->links[w->nlinks++] = link;
	err = t->view->read_link(t->view->owner, path, target, sizeof(target));
	if (err < 0)
		return err;
	if (target[0] == '\0') {
		w->state = WALK_NEVER;
		return 0;
	}
	text = xasprintf("%s/%s", target, rest->at);
	t->steps += strlen(text) / 64; /* copying is work, too */
	free(rest->text);
	rest->text = text;
	rest->at = text;
	if (text[0] == '/')
		w->at = t->root;
	return 0;
}

static void
stop(struct walk *w, enum walk_state state, struct node *at)
{
	w->state = state;
	w->at = at;
}

/* These links lead wherever a process stands (proc_pid(5)). */
static bool
has_magic_link(const char *path)
{
	static const struct slice names[] = { { "root", 4 }, { "cwd", 3 },
		{ "exe", 3 }, { "fd", 2 }, { "map_files", 9 } };
	bool found = false;

	while (!found && *(path += strspn(path, "/")) != '\0') {
		struct slice name = { path, strcspn(path, "/") };

		for (size_t i = 0; i < nitems(names); i++)
			found |= slice_equal(name, names[i]);
		path += name.len;
	}
	return found;
}

/* Walks one name below a directory. */
static int
enter(struct tree *t, struct walk *w, struct slice name, struct rest *rest)
{
	struct node *child;
	int err = tree_child(t, w->at, name, &child);

	if (err < 0)
		return err;
	if (child->blocked)
		w->state = WALK_BLOCKED;
	else if (child->seen.type == FS_MISSING && child != t->proc)
		stop(w, WALK_MISSING, child);
	else if (child->seen.type == FS_LINK)
		return follow(t, w, child, rest);
	else
		w->at = child;
	return 0;
}

static int
step(struct tree *t, struct walk *w, struct rest *rest)
{
	struct slice name = { rest->at, strcspn(rest->at, "/") };

	rest->at += name.len;
	if (++t->steps > RESOLVE_STEPS_MAX)
		return -E2BIG;
	if (name.len == 1 && name.ptr[0] == '.')
		return 0;
	if (w->at == t->proc) {
		w->leaves_proc = has_magic_link(name.ptr);
		stop(w, WALK_PROC, t->proc);
	} else if (w->at->seen.type != FS_DIRECTORY)
		stop(w, WALK_FILE, w->at);
	else if (name.len == 2 && memcmp(name.ptr, "..", 2) == 0)
		w->at = w->at->parent != NULL ? w->at->parent : w->at;
	else if (name.len > NAME_MAX)
		stop(w, WALK_NEVER, w->at);
	else
		return enter(t, w, name, rest);
	return 0;
}

int
tree_walk(struct tree *t, struct walk *w, const char *text)
{
	struct rest rest = { .text = xstrdup(text) };
	int err = 0;

	rest.at = rest.text;
	if (*text == '/')
		*w = tree_start(t);
	while (err == 0 && w->state == WALK_FOUND) {
		rest.at += strspn(rest.at, "/");
		if (*rest.at == '\0')
			break;
		err = step(t, w, &rest);
	}
	if (err == 0 && w->state == WALK_FOUND && w->at == t->proc)
		w->state = WALK_PROC;
	free(rest.text);
	return err;
}

static bool
take_name(void *arg, const char *name, enum fs_type type)
{
	struct names *names = arg;
	size_t n = strlen(name) + 2;

	if (n == 2 || strchr(name, '/') != NULL)
		return true;
	if (++names->count > names->max)
		return false;
	while (names->cap - names->len < n) {
		names->cap = names->cap ? names->cap * 2 : 1024;
		names->text = xreallocarray(names->text, names->cap, 1);
	}
	names->text[names->len] = (char)(type + 1); /* never a NUL */
	memcpy(names->text + names->len + 1, name, n - 1);
	names->len += n;
	return true;
}

int
tree_list(
    struct tree *t, const char *path, bool directories, struct names *names)
{
	int err =
	    t->view->list(t->view->owner, path, directories, take_name, names);

	return err == 0 && names->count > names->max ? -E2BIG : err;
}

enum sandbox_access
node_access(const struct node *n)
{
	enum claim claim = CLAIM_NONE;

	for (; n != NULL; n = n->parent) {
		if (n->absolute)
			return SANDBOX_DENY;
		if (claim == CLAIM_NONE)
			claim = n->claim;
	}
	return claim == CLAIM_WRITE  ? SANDBOX_WRITE
	       : claim == CLAIM_READ ? SANDBOX_READ
				     : SANDBOX_DENY;
}
