/* SPDX-License-Identifier: ISC */
/*
 * What the files of the resolver share. Nobody else includes this header.
 *
 * Every path that matters is a node of one tree. Each name is looked up on the
 * disk once, below its parent, and never through a link. The entries' claims
 * are written on the nodes, so "the most specific entry decides" is a walk
 * upwards. RESOLVE_STEPS_MAX limits how far the tree can grow, whatever the
 * client names.
 */
#pragma once

#include "resolve.h"
#include "util.h"

#include "table.h"

#define RESOLVE_LINKS_MAX    40	     /* as in the kernel */
#define RESOLVE_STEPS_MAX    4000000 /* components walked, in total */
#define RESOLVE_RECORDS_MAX  100000  /* entries times workspace roots */
#define RESOLVE_PATTERNS_MAX 20000   /* times alternatives times roots */

/* What an entry or a rule claims for the node itself. */
enum claim {
	CLAIM_NONE,
	CLAIM_READ,
	CLAIM_WRITE,
	CLAIM_DENY,
};

struct node {
	struct table_node link; /* tree.table */
	struct node *parent;	/* NULL: the root */
	struct fs_node seen;
	size_t path_len;
	enum claim claim;
	enum sandbox_access access; /* in the plan: inherited or claimed */
	enum plan_kind mask; /* the kind of its placeholder, if `masked` */
	bool masked;	     /* missing, and must stay so */
	bool blocked;	     /* looking it up is not permitted */
	bool absolute;	     /* denied by the operator; cannot be reopened */
	bool write_named;    /* a write entry names it or a path below it */
	bool grant_below;    /* an entry grants it or a path below it */
	bool root;	     /* a write entry leads exactly here */
	bool protects;	     /* its protected names have been handled */
	bool apart;	 /* where it is writable, PLAN_PRIVATE replaces it */
	bool scratch;	 /* /tmp or TMPDIR */
	bool in_scratch; /* in the plan: as in struct plan_mount */
	bool
	    only_leaves; /* it is mounted only because it is not `in_scratch` */
	bool replaced;	 /* PLAN_PRIVATE hides the host's here */
	unsigned scanned; /* levels searched for nested repositories */
	bool remade;	  /* a link that the view creates again */
	bool pinned, mounted;
	size_t name_len;
	char name[];
};

struct tree {
	const struct fs_view *view;
	struct table table;
	struct node **nodes; /* owned; parents come before children */
	size_t count, cap;
	struct node *root, *proc;
	size_t steps;
};

enum walk_state {
	WALK_FOUND,
	WALK_MISSING, /* at: the first missing component */
	WALK_FILE,    /* at: a file in the middle of the path */
	WALK_BLOCKED, /* at: a directory that may not be searched */
	WALK_PROC,    /* at: /proc, which is never looked into */
	WALK_NEVER,   /* a name too long for any file system */
};

/* The place that a path leads to, and the links on the way. */
struct walk {
	enum walk_state state;
	bool leaves_proc; /* WALK_PROC: by a link that leads to elsewhere */
	struct node *at;
	struct node *links[RESOLVE_LINKS_MAX];
	size_t nlinks;
};

int tree_init(struct tree *t, const struct fs_view *view);
void tree_clear(struct tree *t);

/* Returns a walk that stands at the root. */
struct walk tree_start(const struct tree *t);

/*
 * Continues the walk along text; an absolute text starts again at the root.
 * Returns 0, -ELOOP, -E2BIG beyond RESOLVE_STEPS_MAX, or the -errno of the
 * view.
 */
int tree_walk(struct tree *t, struct walk *w, const char *text);

/*
 * Finds or adds a name in a directory. The name may be missing on the disk.
 * Returns 0 or the -errno of the view.
 */
int tree_child(
    struct tree *t, struct node *parent, struct slice name, struct node **out);

char *node_path(const struct node *n);

/*
 * The names in a directory, in the order of the view. tree_list() returns 0,
 * -E2BIG beyond `max` names, or the -errno of the view.
 */
struct names {
	char *text; /* owned: for each name its type, the name and a NUL */
	size_t len, cap, count, max;
};

int tree_list(
    struct tree *t, const char *path, bool directories, struct names *names);

/* Tells what the claims permit for a node: the nearest one upwards decides. */
enum sandbox_access node_access(const struct node *n);

enum origin {
	ORIGIN_CLIENT,
	ORIGIN_MINIMAL,
	ORIGIN_PATTERN,
	ORIGIN_OPERATOR, /* deny_read */
	ORIGIN_HIDE,
};

/* One path that an entry names, with the node it leads to. */
struct record {
	enum origin origin;
	enum sandbox_access access;
	enum walk_state state;
	struct node *at;
	const char *base, *rest;   /* as it was named, for messages */
	size_t first_link, nlinks; /* resolver.links */
	bool scratch; /* a directory for temporary files (/tmp, TMPDIR) */
	bool dropped;
};

/* A pattern without braces and the directory where its scan begins. */
struct pattern {
	const struct glob *glob;
	struct node *at;
};

struct place {
	const char *path;
	struct walk walk;
};

struct resolver {
	const struct resolve_request *r;
	const struct sandbox_context *c;
	struct plan *plan;
	struct tree tree;
	struct record *records; /* owned */
	size_t nrecords, records_cap;
	struct node **links; /* owned */
	size_t nlinks, links_cap;
	struct place *roots; /* owned */
	size_t nroots;
	char **texts; /* owned */
	size_t ntexts, texts_cap;
	struct glob_list *lists; /* owned */
	size_t nlists, lists_cap;
	struct pattern *patterns; /* owned */
	size_t npatterns, patterns_cap;
	struct fs_mount *mounts; /* owned; NULL: not read yet */
	size_t nmounts;
	size_t matches;
	size_t nested_names; /* directories searched for nested repositories */
	bool wants_proc;     /* an entry grants something in /proc */
	char *error;
};

/* Sets the message and returns -EINVAL. */
int resolve_fail(struct resolver *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Passes on an error of tree_walk() or of the view. -ELOOP and -E2BIG become
 * -EINVAL with a message.
 */
int resolve_error(
    struct resolver *s, int err, const char *base, const char *rest);

/* Grows an array so that one more item fits. */
void *resolve_grow(void *items, size_t count, size_t *cap, size_t size);

/* resolve_bind.c: turns entries into records and patterns. */
int resolve_bind(struct resolver *s);
int resolve_add_record(
    struct resolver *s, const struct record *record, const struct walk *w);

/* Tells whether the text leads below the place where it begins: it is not
 * absolute and has no "..", and if `strict` no ".". */
bool resolve_is_below(struct slice text, bool strict);

/* resolve_mounts.c: calls deny with each other path at which a mount shows the
 * file of this path, or something in it. Returns 0 or an error of deny's. */
int resolve_elsewhere(struct resolver *s, const char *path,
    int (*deny)(struct resolver *s, const char *path));

/* resolve_pattern.c: turns patterns into records. */
int resolve_add_pattern(struct resolver *s, struct slice text);
int resolve_expand(struct resolver *s);

int resolve_check_links(struct resolver *s, struct node *const *links,
    size_t nlinks, const char *base, const char *rest);

/*
 * resolve_protect.c: what commands may not write in a
 * writable root.
 */
int resolve_protect(struct resolver *s);

/* Tells whether the record is a protected name, and a link that is held there,
 * so that it may be read-only. */
bool resolve_holds(struct resolver *s, const struct record *r);

/* --- path_glob.c -------------------------------------------------------- */

/*
 * Patterns of denied paths (doc/sandbox.md section A6).
 *
 * `*` and `?` do not match a slash. `**` as a whole component matches any
 * number of components. `[a-z]` and `[!a]` are classes; a `[` that is not
 * closed is an ordinary letter. `{a,b}` lists alternatives. A backslash quotes
 * the next byte. A leading dot is not special. The code is pure and reads no
 * disk.
 */

/*
 * Limits: bytes of a pattern, its wild components, the results of its braces.
 */
#define GLOB_TEXT_MAX	      4096
#define GLOB_PARTS_MAX	      62
#define GLOB_ALTERNATIVES_MAX 256

/*
 * One pattern without braces: fixed components, then wild ones. While a path is
 * matched, a set of states tells which parts may come next. Bit i stands for
 * part i, and bit `nparts` means that the whole pattern matched.
 */
struct glob {
	char *base; /* owned: the fixed components, "/a/b" or "a/b" or "" */
	char *text; /* owned: the slices in `parts` point into it */
	struct slice parts[GLOB_PARTS_MAX];
	size_t nparts;
	uint64_t deep; /* a bit for each part that is `**` */
};

struct glob_list {
	struct glob *globs; /* owned */
	size_t count;
};

/*
 * Makes one glob of each alternative of a pattern. Returns 0, or -EINVAL with
 * *reason set to a static text. The caller calls glob_list_clear() in both
 * cases.
 */
int glob_parse(
    struct glob_list *out, struct slice pattern, const char **reason);
void glob_list_clear(struct glob_list *list);

/* Tells whether a part, which is not `**`, matches a name, which ends with a
 * NUL. */
bool glob_part_matches(const struct glob *g, size_t part, struct slice name);

/* Return the set of states before the first name, and the set after one more
 * name; NULL: one that no part matches. */
uint64_t glob_start(const struct glob *g);
uint64_t glob_step(const struct glob *g, uint64_t states, const char *name);

/*
 * Tells whether the names so far match the whole pattern, and whether a name
 * further below may match.
 */
bool glob_matched(const struct glob *g, uint64_t states);
bool glob_goes_on(const struct glob *g, uint64_t states);
