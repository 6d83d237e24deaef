/* SPDX-License-Identifier: ISC */
/*
 * Resolves a client's sandbox context to a plan of mounts (doc/sandbox.md
 * section A10). The resolver is pure: it asks a fs_view about the disk, and the
 * tests and the fuzzer bring their own.
 *
 * The plan is data. The code that builds the view opens every path again and
 * compares device and inode with what the resolver saw.
 */
#pragma once

#include "sandbox_context.h"

/* The most paths that all patterns of a request together may match. */
#define RESOLVE_MATCHES_MAX 8192

/*
 * Where X servers make their sockets. In a host's /tmp this is a PLAN_PRIVATE,
 * if it is there.
 */
#define RESOLVE_X11 "/tmp/.X11-unix"

/* The most mounts of one plan. */
#define RESOLVE_MOUNTS_MAX 20000

enum fs_type { FS_MISSING, FS_FILE, FS_DIRECTORY, FS_LINK, FS_OTHER };

struct fs_node {
	enum fs_type type;
	uint64_t device, inode;
};

/*
 * Receives a name in a directory and its type. FS_MISSING: the type is unknown
 * until somebody looks. Returns false to stop.
 */
typedef bool fs_visit_fn(void *arg, const char *name, enum fs_type type);

/* A mount, as in proc_pid_mountinfo(5). */
struct fs_mount {
	int id;
	uint64_t device;    /* of the file system */
	char *root, *point; /* owned: the path in it, and where that is seen */
};

/*
 * The file system as the session's user sees it. Paths are absolute and have no
 * dot segments. The functions return 0 or -errno; a missing file is FS_MISSING
 * and not an error.
 */
struct fs_view {
	void *owner;
	/*
	 * Like lstat(2). A placeholder (placeholder.h) is FS_MISSING with its
	 * own device and inode.
	 */
	int (*lookup)(void *owner, const char *path, struct fs_node *node);
	/* Reads the target of a link, NUL-terminated. */
	int (*read_link)(void *owner, const char *path, char *text, size_t cap);
	/*
	 * Reads the first cap - 1 bytes of a small file (.git, commondir),
	 * NUL-terminated.
	 */
	int (*read_file)(void *owner, const char *path, char *text, size_t cap);
	/*
	 * Calls visit for each name except "." and "..", until it returns
	 * false. With `directories`, names that are known not to be directories
	 * may be left out.
	 */
	int (*list)(void *owner, const char *path, bool directories,
	    fs_visit_fn *visit, void *arg);
	/*
	 * All mounts, the caller's, with their number in *n; and the id of the
	 * mount on which a path lies, or -errno. NULL: nothing is known of
	 * mounts.
	 */
	int (*mounts)(void *owner, struct fs_mount **mounts, size_t *n);
	int (*mount_of)(void *owner, const char *path);
};

enum plan_base {
	PLAN_BASE_READ,	 /* the whole tree is read-only */
	PLAN_BASE_WRITE, /* the whole tree is writable */
	PLAN_BASE_EMPTY, /* nothing but the plan's mounts */
};

enum plan_kind {
	PLAN_READ,  /* read-only; a symbolic link is created again as a link */
	PLAN_WRITE, /* writable */
	PLAN_DENY_DIRECTORY,   /* empty, mode 000, or 111 when `reopened` */
	PLAN_DENY_FILE,	       /* empty, mode 000 */
	PLAN_PLACEHOLDER_FILE, /* missing path to protect: empty file,
				* mode 600, read-only */
	PLAN_PLACEHOLDER_DIRECTORY, /* missing protected name, mode 555 */
	PLAN_PIN,     /* mounted onto itself, so that it cannot be renamed */
	PLAN_PRIVATE, /* writable, empty at first, and not the host's */
};

struct plan_mount {
	enum plan_kind kind;
	bool reopened; /* PLAN_DENY_DIRECTORY: other mounts lie below it */
	char *path;    /* owned */
	struct fs_node seen; /* for placeholders FS_MISSING, with the inode that
				stands there */
	/*
	 * PLAN_WRITE: a directory for temporary files of the host's, where no
	 * sockets are made, because programs outside look for sockets there.
	 */
	bool scratch;
};

static inline bool
plan_is_writable(const struct plan_mount *m)
{
	return m->kind == PLAN_WRITE || m->kind == PLAN_PRIVATE;
}

static inline bool
plan_is_placeholder(const struct plan_mount *m)
{
	return m->kind == PLAN_PLACEHOLDER_FILE ||
	       m->kind == PLAN_PLACEHOLDER_DIRECTORY;
}

/*
 * Tells whether a view has its own of this, whatever the host has: all of /dev,
 * but not a directory of the host in /dev/shm, nor /dev/shm itself if the
 * policy makes it writable.
 */
static inline bool
plan_is_own_dev(const struct plan_mount *m)
{
	static const char shm[] = "/dev/shm";

	if (path_lies_in(m->path, shm))
		return m->path[strlen(shm)] == '\0' && m->kind != PLAN_WRITE;
	return path_lies_in(m->path, "/dev");
}

/* The mounts are sorted: a path comes before what lies below it. */
struct plan {
	enum plan_base base;
	bool network;
	char *hosts;	/* owned: struct network_list.text; NULL: no list */
	bool minimal;	/* PLAN_BASE_EMPTY: also has /proc and a small /dev */
	bool deny_proc; /* no /proc at all */
	struct plan_mount *mounts; /* owned */
	size_t count, cap;
};

struct resolve_request {
	const struct sandbox_context *context;
	const char *cwd;    /* the command's; NULL: an fs/ method */
	const char *tmpdir; /* what `tmpdir` stands for; NULL: nothing */
	bool private_tmp, private_tmpdir; /* use PLAN_PRIVATE for them */
	const char *home; /* the identity's, used if the context names none */
	const char *const *protected_names; /* NULL-terminated */
	/*
	 * The operator's paths, always denied. A path with "-" before it is
	 * skipped if it is missing.
	 */
	const char *const *deny_read;
	const char *const *hide;   /* the same syntax: PLAN_DENY_DIRECTORY */
	const char *lists;	   /* of placeholders: always denied; or NULL */
	unsigned nested_git_depth; /* 0: off */
	bool no_scan;		   /* patterns give -EINPROGRESS */
};

/*
 * Fills *plan. Returns 0, or:
 * - -EINVAL with the message of error -32602 in error[ARGS_ERROR_MAX] (section
 *   A9),
 * - -EINPROGRESS if `no_scan` forbids a scan that is needed,
 * - the -errno of a view function.
 *
 * The caller calls plan_clear() in any case.
 */
int resolve(struct plan *plan, const struct resolve_request *r,
    const struct fs_view *view, char *error);
void plan_clear(struct plan *plan);

/* Tells how the plan lets a path be used: the most specific mount decides. */
enum sandbox_access plan_access(const struct plan *plan, const char *path);

/* Tells whether no mount shows a path, and none denies it. */
bool plan_leaves_out(const struct plan *plan, const char *path);
