/* SPDX-License-Identifier: ISC */
/*
 * Builds the view: the old root stays open, the new root is put together beside
 * it, and then takes its place.
 *
 * Until then the new root is mounted on the old /proc, and the empty files are
 * on the old /dev. Every system has these two directories, and they are
 * replaced anyway.
 */
#include "view_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mounts.h"
#include "util.h"

#define HARDENED (MOUNTS_NO_SUID | MOUNTS_NO_DEV)

/* --- what is needed from the old root ----------------------------------- */

static int
open_old(struct view *v)
{
	view_step(v, "opening the old root");
	v->old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (v->old < 0)
		return -errno;
	view_step(v, "opening the old /dev");
	v->dev = mounts_open(v->old, "/dev");
	if (v->dev < 0)
		return v->dev;
	view_step(v, "opening the old /proc");
	v->proc = mounts_open(v->old, "/proc");
	if (v->proc < 0)
		return v->proc;
	if (fchdir(v->proc) < 0 || access("self/fd", X_OK) < 0)
		return -errno;
	for (size_t i = 0; i < nitems(v->devices); i++) {
		char name[32];

		snprintf(name, sizeof(name), "/dev/%s", view_device_names[i]);
		view_step(v, "opening %s", name);
		v->devices[i] = mounts_open(v->old, name);
		if (v->devices[i] < 0 && v->devices[i] != -ENOENT)
			return v->devices[i];
	}
	return 0;
}

static int
make_empty_file(int at, const char *name, mode_t mode)
{
	_cleanup_close_ int fd =
	    openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

/*
 * Makes what covers names: a directory that nobody may enter, a file that
 * nobody may open, and a directory and a file that are empty.
 */
static int
make_empty(struct view *v)
{
	int err;

	view_step(v, "making empty things to cover names with");
	err = view_tmpfs(v, v->dev, NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    "mode=0755,size=64k,nr_inodes=16");
	if (err < 0)
		return err;
	v->empty = mounts_open(v->old, "/dev");
	if (v->empty < 0 || mkdirat(v->empty, "closed", 0) < 0 ||
	    mkdirat(v->empty, "directory", 0555) < 0)
		return v->empty < 0 ? v->empty : -errno;
	err = make_empty_file(v->empty, "file", 0);
	if (err == 0)
		err = make_empty_file(v->empty, "blank", 0444);
	if (err < 0)
		return err;
	v->closed_directory = mounts_open(v->empty, "/closed");
	v->closed_file = mounts_open(v->empty, "/file");
	v->empty_directory = mounts_open(v->empty, "/directory");
	return mounts_seal(v->empty, MOUNTS_READONLY);
}

/* --- base --------------------------------------------------------------- */

static int
add_base(struct view *v)
{
	const struct plan *plan = v->plan;
	int err;

	view_step(v, "copying the tree of mounts");
	if (plan->base == PLAN_BASE_EMPTY)
		err = view_tmpfs(v, v->proc, NULL, MS_NOSUID | MS_NODEV,
		    "mode=0755,size=4m,nr_inodes=400000");
	else
		err = mounts_bind(v->old, v->proc,
		    HARDENED |
			(plan->base == PLAN_BASE_READ ? MOUNTS_READONLY : 0));
	if (err < 0)
		return err;
	v->root = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (v->root < 0)
		return -errno;
	return plan->base == PLAN_BASE_EMPTY ? view_own(v, v->root, true) : 0;
}

/* --- the plan ----------------------------------------------------------- */

/* Opens a path in the old root. For /dev, what covers it now is skipped. */
static int
open_source(const struct view *v, const char *path)
{
	if (strcmp(path, "/dev") == 0)
		return mounts_open(v->dev, "/");
	if (strncmp(path, "/dev/", 5) == 0)
		return mounts_open(v->dev, path + 4);
	return mounts_open(v->old, path);
}

/* Creates a link of the old root again. */
static int
add_link(struct view *v, const struct plan_mount *m)
{
	_cleanup_close_ int parent = -1;
	_cleanup_close_ int source = open_source(v, m->path);
	char text[4096];
	const char *name;
	ssize_t n;

	if (source < 0)
		return source;
	if (!view_is_same(source, &m->seen))
		return -ESTALE;
	n = readlinkat(source, "", text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	parent = view_parent(v, m->path, &name);
	if (parent < 0)
		return parent;
	return symlinkat(text, parent, name) < 0 ? -errno : 0;
}

/*
 * Mounts an empty directory in which only later mounts of the plan are visible.
 */
static int
add_reopened(struct view *v, const struct plan_mount *m, int target)
{
	return view_tmpfs(v, target, m->path, MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    "mode=0111,size=64k,nr_inodes=100000");
}

/*
 * The tmpfs is as large as /dev/shm. Its content counts as memory of the
 * process that wrote it.
 */
static int
add_private(struct view *v, const struct plan_mount *m, int target)
{
	_cleanup_close_ int fd = -1;
	char options[96];
	int err;

	view_memory_options(v, options, sizeof(options));
	err = view_tmpfs(v, target, NULL, MS_NOSUID | MS_NODEV, options);
	fd = err < 0 ? err : mounts_open(v->root, m->path);
	return fd < 0 ? fd : view_own(v, fd, false);
}

static int
add_copy(struct view *v, const struct plan_mount *m, int target)
{
	_cleanup_close_ int source = open_source(v, m->path);
	bool write = m->kind == PLAN_WRITE || m->kind == PLAN_PIN;

	if (source < 0)
		return source;
	if (!view_is_same(source, &m->seen))
		return -ESTALE;
	return mounts_bind(
	    source, target, HARDENED | (write ? 0 : MOUNTS_READONLY));
}

static bool
is_given(const struct view *v, const struct plan_mount *m)
{
	_cleanup_close_ int fd =
	    view_is_dev_grant(m) ? mounts_open(v->root, m->path) : -1;

	return fd >= 0;
}

static int
add_mount(struct view *v, const struct plan_mount *m)
{
	bool directory = m->seen.type == FS_DIRECTORY, own = false;
	_cleanup_close_ int target = -1;

	view_step(v, "mounting %.200s", m->path);
	if (is_given(v, m))
		return 0;
	if (m->seen.type == FS_LINK)
		return add_link(v, m);
	target = view_point(v, m->path, directory, &own);
	if (target < 0)
		return target;
	if (!own && !view_is_same(target, &m->seen))
		return -ESTALE;
	switch (m->kind) {
	case PLAN_DENY_DIRECTORY:
		if (m->reopened)
			return add_reopened(v, m, target);
		return mounts_bind(v->closed_directory, target, 0);
	case PLAN_DENY_FILE:
		return mounts_bind(v->closed_file, target, 0);
	case PLAN_PRIVATE:
		return add_private(v, m, target);
	default:
		return add_copy(v, m, target);
	}
}

static int
add_plan(struct view *v)
{
	int err = 0;

	for (size_t i = 0; i < v->plan->count && err == 0; i++)
		err = add_mount(v, &v->plan->mounts[i]);
	return err;
}

bool
view_has_proc(const struct plan *plan)
{
	return !plan->deny_proc &&
	       (plan->base != PLAN_BASE_EMPTY || plan->minimal);
}

/*
 * Each command mounts its own /proc over this one. The kernel permits that only
 * if a /proc is already visible.
 */
static int
add_proc(struct view *v)
{
	_cleanup_close_ int target = -1;
	bool own;

	view_step(v, "/proc");
	if (!view_has_proc(v->plan) && !v->plan->deny_proc)
		return 0;
	target = view_point(v, "/proc", true, &own);
	if (target < 0)
		return target;
	if (v->plan->deny_proc)
		return mounts_bind(v->closed_directory, target, 0);
	if (v->plan->base != PLAN_BASE_EMPTY)
		return 0;
	return mounts_bind(v->proc, target, HARDENED | MOUNTS_READONLY);
}

/* --- the end ------------------------------------------------------------ */

/*
 * Makes the file systems of the view read-only, so that no write succeeds where
 * the data would be lost.
 */
static int
seal(struct view *v)
{
	int err = 0;

	view_step(v, "sealing the view");
	for (size_t i = 0; i < v->nown && err == 0; i++)
		if (v->own_roots[i] >= 0)
			err = mounts_seal(v->own_roots[i], MOUNTS_READONLY);
	return err;
}

static int
replace_root(struct view *v)
{
	view_step(v, "replacing the root");
	if (fchdir(v->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

static void
close_all(struct view *v)
{
	int fds[] = { v->old, v->dev, v->proc, v->empty, v->closed_directory,
		v->closed_file, v->empty_directory, v->root };

	for (size_t i = 0; i < nitems(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (size_t i = 0; i < nitems(v->devices); i++)
		if (v->devices[i] >= 0)
			close(v->devices[i]);
	for (size_t i = 0; i < v->nown; i++)
		if (v->own_roots[i] >= 0)
			close(v->own_roots[i]);
	free(v->own);
	free(v->own_roots);
}

int
view_build(const struct plan *plan, uint64_t shm_bytes, char *step)
{
	static int (*const steps[])(struct view *) = { open_old, add_base,
		make_empty, add_proc, view_add_system, add_plan, seal,
		replace_root };
	struct view v = { .plan = plan,
		.shm_bytes = shm_bytes,
		.step = step,
		.old = -1,
		.dev = -1,
		.proc = -1,
		.empty = -1,
		.closed_directory = -1,
		.closed_file = -1,
		.empty_directory = -1,
		.root = -1 };
	int err;

	memset(v.devices, -1, sizeof(v.devices));
	view_step(&v, "making mounts private");
	err = mounts_make_private();
	for (size_t i = 0; i < nitems(steps) && err == 0; i++)
		err = steps[i](&v);
	close_all(&v);
	return err;
}
