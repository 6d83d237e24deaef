/* SPDX-License-Identifier: ISC */
/*
 * The view: the file system as the commands of one policy see it
 * (doc/sandbox.md C3). The sandbox builds it once; it has capabilities only in
 * its own user namespace. Every command gets a copy, with the /proc of its own
 * pid namespace.
 */
#pragma once

#include "resolve.h"

#define VIEW_STEP_MAX 240

/* A directory for temporary files that belongs to the sandbox alone. */
#define VIEW_TMP "/dev/tmp"

/*
 * Replaces the root of the calling process, which must be alone in its mount
 * namespace, with what the plan says. Returns 0, or -errno with the failed step
 * in step[VIEW_STEP_MAX]; then the mount namespace is unusable. -ESTALE: a path
 * is not what the resolver saw.
 */
int view_build(const struct plan *plan, uint64_t shm_bytes, char *step);

/*
 * Covers the plan's placeholders in the finished view, unless they are already
 * covered. Returns 0 or -errno, with step as above.
 */
int view_cover(const struct plan *placeholders, char *step);

/*
 * Checks that everything is still mounted: when a directory is removed outside,
 * what is mounted on it here disappears. Returns 0, or -ESTALE with step as
 * above.
 */
int view_check(const struct plan *plan, char *step);

/*
 * Opens what a mount of the plan names on the host, without a view, with
 * O_PATH. Returns a descriptor that the caller owns, -ESTALE if it is not what
 * the resolver saw, or another -errno.
 */
int view_open_host(const struct plan_mount *m);

/*
 * Checks the whole plan in the same way. Returns 0, or -ESTALE with step as
 * above.
 */
int view_check_host(const struct plan *plan, char *step);

/* Tells whether commands get a /proc. */
bool view_has_proc(const struct plan *plan);

/* Tells whether the view has a /dev. */
bool view_has_dev(const struct plan *plan);

/* Tells whether view_mount_resolver() has a file to mount over. For the
 * finished view. */
bool view_has_resolver(void);

/*
 * Mounts a resolv.conf that names this server (in host order) and no other,
 * in the mount namespace of one command. Makes only system calls. Returns 0 or
 * -errno.
 */
int view_mount_resolver(uint32_t server);

/*
 * Mounts a new, empty /dev/pts in the mount namespace of one command. Makes
 * only system calls. Returns 0 or -errno.
 */
int view_mount_terminals(void);

/* Tells whether a command may see its control group. */
bool view_has_group(const struct plan *plan);

/*
 * Mounts the version 2 group of the calling process, read-only, in the mount
 * and cgroup namespace of one command: node, Go and the JVM look there how much
 * they may take. Where that cannot be done, the directory stays empty. Makes
 * only system calls.
 */
void view_mount_group(void);

/*
 * Mounts /proc in the mount and pid namespace of one command, and covers what
 * shows or changes the host. Makes only system calls. Returns 0 or -errno.
 */
int view_mount_proc(void);

/* --- shared by view.c, view_ssh.c and view_system.c --------------------- */

/* The empty files and directories that cover names in the finished view. */
#define VIEW_EMPTY	     "/dev/.empty"
#define VIEW_EMPTY_FILE	     VIEW_EMPTY "/file"
#define VIEW_EMPTY_DIRECTORY VIEW_EMPTY "/directory"
#define VIEW_EMPTY_BLANK     VIEW_EMPTY "/blank"

/* The devices in the view's /dev. */
#define VIEW_DEVICES 6
extern const char *const view_device_names[VIEW_DEVICES];

struct view {
	const struct plan *plan;
	uint64_t shm_bytes;
	char *step;
	int old;		   /* the root to be replaced */
	int dev;		   /* its /dev, which make_empty() covers */
	int proc;		   /* its /proc, used to name descriptors */
	int devices[VIEW_DEVICES]; /* -1 or -ENOENT: the host has none */
	int empty; /* a file system with empty files and directories */
	int closed_directory, closed_file, empty_directory;
	int root;	/* the new root */
	dev_t *own;	/* owned: the file systems made here */
	int *own_roots; /* owned, closed at the end; -1: do not seal */
	size_t nown, own_cap;
};

void view_step(struct view *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Mounts a new tmpfs on `target`. If `path`, its place in the new root, is
 * given, it is sealed at the end. Returns 0 or -errno.
 */
int view_tmpfs(struct view *v, int target, const char *path, unsigned flags,
    const char *options);

/*
 * Records that the view made the file system at fd, so missing mount points may
 * be made in it. With `seal` it becomes read-only at the end. Returns 0 or
 * -errno.
 */
int view_own(struct view *v, int fd, bool seal);

/*
 * Writes the options of a tmpfs that commands may fill to text[96]: its size
 * and the number of files.
 */
void view_memory_options(const struct view *v, char *text, size_t cap);

/*
 * Opens a mount point in the new root with O_PATH. A missing one is made if the
 * view made the file system that it is missing in; elsewhere it is -ESTALE.
 * *own: the point is in such a file system, so it is not what the resolver saw.
 * Returns a descriptor that the caller owns, or -errno.
 */
int view_point(struct view *v, const char *path, bool directory, bool *own);

/* Adds /dev and /sys. Returns 0 or -errno. */
int view_add_system(struct view *v);

/* view_ssh.c: covers /etc/ssh with a copy that is the user's, unless the plan
 * has something to say about it. Returns 0 or -errno. */
int view_add_ssh(struct view *v);
