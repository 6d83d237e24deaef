/* SPDX-License-Identifier: ISC */
/*
 * What the files of the resolver share, and nobody else includes.
 *
 * Every path that matters is a node of one tree: asked of the disk once,
 * reached from its parent, never through a link. What the entries say is
 * written on the nodes, so that "the most specific entry decides" is a walk
 * upwards. The tree grows by at most STEPS_MAX components, whatever the
 * client names.
 */
#ifndef RESOLVE_PARTS_H
#define RESOLVE_PARTS_H

#include "resolve.h"

#include "path_glob.h"
#include "table.h"

#define RESOLVE_LINKS_MAX    40	     /* as the kernel */
#define RESOLVE_STEPS_MAX    4000000 /* components walked, all together */
#define RESOLVE_RECORDS_MAX  100000  /* entries times workspace roots */
#define RESOLVE_PATTERNS_MAX 20000   /* patterns times alternatives, roots */

/* What an entry or a rule says of a node itself. */
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
	enum sandbox_access access; /* of the plan, inherited or claimed */
	enum plan_kind mask;	    /* when masked */
	bool masked;		    /* missing, and must stay so */
	bool blocked;		    /* may not be looked up */
	bool absolute;		    /* the operator denies it: no reopening */
	bool write_named;	    /* a write entry names it or below it */
	bool grant_below;	    /* an entry grants something at or below */
	bool root;		    /* a write entry leads right here */
	bool protects;		    /* its protected names are done */
	bool apart;	  /* PLAN_PRIVATE stands for it, where it is writable */
	bool replaced;	  /* it or one above is, so that it is not seen */
	unsigned scanned; /* levels looked at for nested repositories */
	bool remade;	  /* a link to be made again */
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
	WALK_FILE,    /* at: a file in the middle */
	WALK_BLOCKED, /* at: a directory that may not be searched */
	WALK_PROC,    /* at: /proc, which is never looked into */
	WALK_NEVER,   /* a name too long for any file system */
};

/* Where a path leads, and the links on the way. */
struct walk {
	enum walk_state state;
	struct node *at;
	struct node *links[RESOLVE_LINKS_MAX];
	size_t nlinks;
};

int tree_init(struct tree *t, const struct fs_view *view);
void tree_clear(struct tree *t);

/* The walk that has not begun: the root. */
struct walk tree_start(const struct tree *t);

/* Goes on from where w is; an absolute text starts over. 0, -ELOOP, -E2BIG
 * beyond RESOLVE_STEPS_MAX, or the -errno of the view. */
int tree_walk(struct tree *t, struct walk *w, const char *text);

/* A name of a directory, which may be missing. */
int tree_child(
    struct tree *t, struct node *parent, struct slice name, struct node **out);

char *node_path(const struct node *n);

/* The names in a directory, in their order, NUL-terminated one after another.
 * 0, -E2BIG beyond max names, or the -errno of the view. */
struct names {
	char *text; /* owned: for each a type, its name and a NUL */
	size_t len, cap, count, max;
};

int tree_list(
    struct tree *t, const char *path, bool directories, struct names *names);

/* What the claims let a node do: the nearest one upwards decides. */
enum sandbox_access node_access(const struct node *n);

enum origin {
	ORIGIN_CLIENT,
	ORIGIN_MINIMAL,
	ORIGIN_PATTERN,
	ORIGIN_OPERATOR, /* deny_read */
	ORIGIN_HIDE,
};

/* One path of one entry, bound. */
struct record {
	enum origin origin;
	enum sandbox_access access;
	enum walk_state state;
	struct node *at;
	const char *base, *rest;   /* as it was named */
	size_t first_link, nlinks; /* resolver.links */
	bool scratch;		   /* a directory for temporary files */
	bool dropped;
};

/* A pattern and where it begins. */
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
	size_t matches;
	size_t nested_names; /* looked at for nested repositories */
	bool wants_proc;     /* an entry grants something of /proc */
	char *error;
};

/* Sets the message; -EINVAL. */
int resolve_fail(struct resolver *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* `error` of tree_walk() or the view, with the message where one is due. */
int resolve_error(
    struct resolver *s, int err, const char *base, const char *rest);

/* Grows an array so that one more item fits. */
void *resolve_grow(void *items, size_t count, size_t *cap, size_t size);

/* resolve_bind.c: entries to records and patterns. */
int resolve_bind(struct resolver *s);
int resolve_add_record(
    struct resolver *s, const struct record *record, const struct walk *w);

/* resolve_pattern.c: patterns to records. */
int resolve_add_pattern(struct resolver *s, struct slice text);
int resolve_expand(struct resolver *s);

/* resolve_claim.c: records to claims; links that a command could change. */
int resolve_claim(struct resolver *s);
int resolve_check_links(struct resolver *s, struct node *const *links,
    size_t nlinks, const char *base, const char *rest);

/* resolve_protect.c, resolve_nested.c: what writable roots keep. */
int resolve_protect(struct resolver *s);
int resolve_git_pointer(struct resolver *s, struct node *file,
    struct node *directory, struct walk *w);
int resolve_common(struct resolver *s, struct node *gitdir, struct walk *w);
int resolve_protect_nested(struct resolver *s, struct node *root);

/* resolve_plan.c: claims to mounts. */
int resolve_emit(struct resolver *s);

#endif
