/* SPDX-License-Identifier: ISC */
/*
 * From a client's sandbox context to a plan of mounts (doc/sandbox.md section
 * A10). Pure: what it knows of the disk it asks a fs_view, so that tests and
 * the fuzzer bring their own.
 *
 * The plan is data. Whoever builds the view opens every path again and
 * compares device and inode with what the resolver saw.
 */
#ifndef RESOLVE_H
#define RESOLVE_H

#include "sandbox_context.h"

/* Patterns may expand to so many paths, all together. */
#define RESOLVE_MATCHES_MAX 8192

/* Mounts of one plan. */
#define RESOLVE_MOUNTS_MAX 20000

enum fs_type { FS_MISSING, FS_FILE, FS_DIRECTORY, FS_LINK, FS_OTHER };

struct fs_node {
	enum fs_type type;
	uint64_t device, inode;
};

/* The file system as the session's user sees it. Paths are absolute, without
 * dot segments. Functions return 0 or -errno; FS_MISSING is no error. */
/* A name in a directory, and what it is; FS_MISSING: nobody knows without
 * looking. False: no more of them. */
typedef bool fs_visit_fn(void *arg, const char *name, enum fs_type type);

struct fs_view {
	void *owner;
	/* As lstat(2); FS_MISSING for a placeholder (placeholder.h), with its
	 * numbers.
	 */
	int (*lookup)(void *owner, const char *path, struct fs_node *node);
	/* The text of a link, NUL-terminated. */
	int (*read_link)(void *owner, const char *path, char *text, size_t cap);
	/* The first cap - 1 bytes of a small file (.git, commondir),
	 * NUL-terminated. */
	int (*read_file)(void *owner, const char *path, char *text, size_t cap);
	/* Calls visit for each name but "." and ".."; stops when it returns
	 * false. directories: what is known to be none may be left out. */
	int (*list)(void *owner, const char *path, bool directories,
	    fs_visit_fn *visit, void *arg);
};

/* What patterns match, found by one who may take his time, for one who may not.
 * The list holds while no directory on it that the second one would look into
 * is `unseen`. */
struct resolve_match {
	char *path;  /* owned */
	bool unseen; /* nobody looked for matches below it */
};

struct resolve_matches {
	struct resolve_match *items; /* owned */
	size_t count, cap;
	int err; /* of the scan: 0, or -errno with what is to be said */
	char error[ARGS_ERROR_MAX];
};

void resolve_matches_clear(struct resolve_matches *m);
void resolve_matches_add(struct resolve_matches *m, const char *path);

enum plan_base {
	PLAN_BASE_READ,	 /* the whole tree, read-only */
	PLAN_BASE_WRITE, /* the whole tree, writable */
	PLAN_BASE_EMPTY, /* nothing but the plan's mounts */
};

enum plan_kind {
	PLAN_READ,	       /* read-only; a link is re-made as a link */
	PLAN_WRITE,	       /* writable */
	PLAN_DENY_DIRECTORY,   /* empty, mode 000, or 111 when `reopened` */
	PLAN_DENY_FILE,	       /* empty, mode 000 */
	PLAN_PLACEHOLDER_FILE, /* a missing carve-out: empty file, mode 600,
				* read-only */
	PLAN_PLACEHOLDER_DIRECTORY, /* a missing protected name: empty, mode 555
				     */
	PLAN_PIN,     /* bound onto itself, so that it stays in place */
	PLAN_PRIVATE, /* writable, and not the host's: empty at first */
};

struct plan_mount {
	enum plan_kind kind;
	bool reopened; /* PLAN_DENY_DIRECTORY: mounts follow below it */
	char *path;    /* owned */
	struct fs_node
	    seen; /* FS_MISSING for placeholders, with what stands there */
};

static inline bool
plan_is_placeholder(const struct plan_mount *m)
{
	return m->kind == PLAN_PLACEHOLDER_FILE ||
	       m->kind == PLAN_PLACEHOLDER_DIRECTORY;
}

/* Mounts are ordered: a path comes before what lies below it. */
struct plan {
	enum plan_base base;
	bool network;
	bool minimal;	/* PLAN_BASE_EMPTY: /proc and a small /dev, too */
	bool deny_proc; /* no /proc at all */
	struct plan_mount *mounts; /* owned */
	size_t count, cap;
};

struct resolve_request {
	const struct sandbox_context *context;
	const char *cwd;    /* of the command; NULL: an fs/ method */
	const char *tmpdir; /* what `tmpdir` binds to; NULL: nothing */
	bool private_tmp, private_tmpdir; /* PLAN_PRIVATE in their place */
	const char *home; /* of the identity, when the context names none */
	const char *const *protected_names; /* NULL-terminated */
	/* The operator's, always added; with "-" before it, unless missing. */
	const char *const *deny_read;
	const char *const *hide;   /* likewise: PLAN_DENY_DIRECTORY */
	unsigned nested_git_depth; /* 0: off */
	bool no_scan; /* with patterns: -EINPROGRESS, unless `known` */
	const struct resolve_matches *known; /* NULL: what matches is found */
	struct resolve_matches *found;	     /* NULL; or what was */
};

/*
 * Fills *plan. 0, or -EINVAL with the -32602 message in error[ARGS_ERROR_MAX]
 * (section A9), -EINPROGRESS (no_scan), -ESTALE when `known` is not enough, or
 * the -errno of a view function. End with plan_clear() in
 * any case.
 */
int resolve(struct plan *plan, const struct resolve_request *r,
    const struct fs_view *view, char *error);
void plan_clear(struct plan *plan);

/* What the plan lets a path do: the most specific mount decides. */
enum sandbox_access plan_access(const struct plan *plan, const char *path);

#endif
