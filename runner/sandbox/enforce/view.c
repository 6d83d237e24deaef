/* SPDX-License-Identifier: ISC */
/*
 * Builds the view: the old root stays open, the new root is put together beside
 * it, and then takes its place.
 *
 * Until then the new root is mounted on the old /proc, and the empty files are
 * on the old /dev. Every system has these two directories, and they are
 * replaced anyway.
 */
#include "view.h"

#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "mounts.h"

#define HARDENED (MOUNTS_NO_SUID | MOUNTS_NO_DEV)

/* Tells whether fd is what the resolver saw. */
static bool
view_is_same(int fd, const struct fs_node *seen)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == seen->device &&
	       st.st_ino == seen->inode;
}

/*
 * A grant in /dev gets what every view has there. The host's devices would not
 * work in a view.
 */
static bool
view_is_dev_grant(const struct plan_mount *m)
{
	return m->kind != PLAN_DENY_DIRECTORY && m->kind != PLAN_DENY_FILE &&
	       plan_is_own_dev(m);
}

/* --- mount points ------------------------------------------------------- */

/*
 * Mount points in the new root. They are found without following a link, and
 * made if the view itself made the file system.
 */

/* The kernel's words, "Stale file handle", say nothing to a person. */
static int
tell_replaced(char *step, int err)
{
	size_t n = strlen(step);

	if (err == -ESTALE)
		snprintf(
		    step + n, VIEW_STEP_MAX - n, ": it was replaced meanwhile");
	return err;
}

void
view_step(struct view *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->step, VIEW_STEP_MAX, fmt, ap);
	va_end(ap);
}

static bool
is_own(const struct view *v, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < v->nown; i++)
		if (v->own[i] == st.st_dev)
			return true;
	return false;
}

int
view_own(struct view *v, int fd, bool seal)
{
	struct stat st;
	int root = seal ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;

	if (seal && root < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		if (seal)
			close(root);
		return -errno;
	}
	if (v->nown == v->own_cap) {
		v->own_cap = v->own_cap ? v->own_cap * 2 : 8;
		v->own = xreallocarray(v->own, v->own_cap, sizeof(*v->own));
		v->own_roots = xreallocarray(
		    v->own_roots, v->own_cap, sizeof(*v->own_roots));
	}
	v->own[v->nown] = st.st_dev;
	v->own_roots[v->nown++] = root;
	return 0;
}

int
view_tmpfs(struct view *v, int target, const char *path, unsigned flags,
    const char *options)
{
	_cleanup_close_ int fd = -1;
	char name[32];

	/* The working directory is the old /proc. */
	snprintf(name, sizeof(name), "self/fd/%d", target);
	if (mount("execd", name, "tmpfs", flags, options) < 0)
		return -errno;
	if (path == NULL)
		return 0;
	fd = mounts_open(v->root, path);
	return fd < 0 ? fd : view_own(v, fd, true);
}

/*
 * Walks one component. A missing one is made if the view made the file system.
 */
static int
step_into(struct view *v, int at, const char *name, bool directory)
{
	int fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err;

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	if (!is_own(v, at))
		return -ESTALE;
	if (directory) {
		err = mkdirat(at, name, 0755);
	} else {
		fd = openat(at, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
		err = fd < 0 ? -1 : close(fd);
	}
	if (err < 0)
		return -errno;
	fd = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Walks a path and makes missing components. The text is modified. */
static int
make_point(struct view *v, char *text, bool directory)
{
	int at = fcntl(v->root, F_DUPFD_CLOEXEC, 3);

	for (char *next, *name = text; at >= 0; name = next) {
		int fd;

		name += strspn(name, "/");
		if (*name == '\0')
			return at;
		next = name + strcspn(name, "/");
		if (*next == '/')
			*next++ = '\0';
		fd = step_into(v, at, name, directory || *next != '\0');
		close(at);
		if (fd < 0)
			return fd;
		at = fd;
	}
	return -errno;
}

int
view_point(struct view *v, const char *path, bool directory, bool *own)
{
	_cleanup_free_ char *text = NULL;
	int fd = mounts_open(v->root, path);

	if (fd == -ENOENT) {
		text = xstrdup(path);
		fd = make_point(v, text, directory);
	}
	if (fd >= 0)
		*own = is_own(v, fd);
	return fd;
}

/*
 * Opens the directory in which a link is to be made. *name points into path.
 * Returns a descriptor that the caller owns, or -errno.
 */
static int
view_parent(struct view *v, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent = xstrndup(path, (size_t)(slash - path));
	bool own;

	*name = slash + 1;
	return view_point(v, *parent ? parent : "/", true, &own);
}

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
	if (m->seen.type == FS_LINK && m->kind != PLAN_PIN)
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
		make_empty, add_proc, view_add_system, add_plan, view_add_ssh,
		seal, replace_root };
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
	return tell_replaced(step, err);
}

/* --- the finished view -------------------------------------------------- */

/*
 * The finished view: covers placeholders, and checks that everything is still
 * mounted.
 */

/*
 * Mounts something empty over a placeholder. The placeholder itself is never
 * shown, because what somebody puts into it later must not be visible. Whatever
 * has its name by now is covered. A view without /dev has nothing empty to
 * mount, so there the placeholder is mounted on itself, read-only.
 */
static int
cover(int directory, const char *name, bool is_directory, int *tree)
{
	_cleanup_close_ int fd = -1;

	*tree = open_tree(AT_FDCWD,
	    is_directory ? VIEW_EMPTY_DIRECTORY : VIEW_EMPTY_BLANK,
	    AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (*tree < 0 && errno == ENOENT) {
		fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		return fd < 0 ? -errno
			      : mounts_bind(fd, fd, HARDENED | MOUNTS_READONLY);
	}
	if (*tree < 0 ||
	    move_mount(*tree, "", directory, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* Covers the next ones, which lie in one directory. Sets how many. */
static int
cover_some(const struct plan_mount *m, size_t most, size_t *n, char *step)
{
	size_t len = (size_t)(strrchr(m->path, '/') + 1 - m->path), ntrees = 0;
	_cleanup_free_ char *parent = xstrndup(m->path, len);
	_cleanup_close_ int directory = mounts_open(AT_FDCWD, parent);
	int trees[16], err = directory < 0 ? directory : 0;

	*n = 1;
	if (directory == -ENOENT && view_is_dev_grant(m))
		return 0;
	for (*n = 0; *n < most && *n < nitems(trees) && err == 0; ++*n, m++) {
		if (strncmp(m->path, parent, len) != 0 ||
		    strchr(m->path + len, '/') != NULL)
			break;
		snprintf(step, VIEW_STEP_MAX, "covering %.200s", m->path);
		err = cover(directory, m->path + len,
		    m->seen.type == FS_DIRECTORY, &trees[ntrees]);
		ntrees += trees[ntrees] >= 0;
		/* The host's /dev has one, and the view's is another. */
		if (err == -ENOENT && view_is_dev_grant(m))
			err = 0;
	}
	mounts_close(trees, ntrees);
	return err;
}

/* The working directory is "/". */
int
view_cover(const struct plan *placeholders, char *step)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < placeholders->count && err == 0; i += n)
		err = cover_some(&placeholders->mounts[i],
		    placeholders->count - i, &n, step);
	return tell_replaced(
	    step, err == -ENOENT || err == -ENOTDIR ? -ESTALE : err);
}

/* Tells whether the path is a mount point, and of what the resolver saw. */
static bool
is_mounted(const struct plan_mount *m)
{
	bool ours = m->kind == PLAN_DENY_DIRECTORY ||
		    m->kind == PLAN_DENY_FILE || m->kind == PLAN_PRIVATE;
	struct statx st;

	if (statx(AT_FDCWD, m->path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		STATX_INO, &st) < 0)
		return false;
	if (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT &&
	    !(st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return false;
	return ours || (st.stx_ino == m->seen.inode &&
			   makedev(st.stx_dev_major, st.stx_dev_minor) ==
			       m->seen.device);
}

int
view_check(const struct plan *plan, char *step)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		if ((m->seen.type == FS_LINK && m->kind != PLAN_PIN) ||
		    view_is_dev_grant(m) || is_mounted(m))
			continue;
		snprintf(step, VIEW_STEP_MAX, "%.200s was replaced", m->path);
		return -ESTALE;
	}
	return 0;
}

int
view_open_host(const struct plan_mount *m)
{
	_cleanup_close_ int fd = mounts_open(AT_FDCWD, m->path);

	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR ? -ESTALE
								       : fd;
	return view_is_same(fd, &m->seen) ? steal_fd(&fd) : -ESTALE;
}

int
view_check_host(const struct plan *plan, char *step)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];
		_cleanup_close_ int fd = view_open_host(m);

		if (fd >= 0)
			continue;
		snprintf(step, VIEW_STEP_MAX, "%.200s was replaced", m->path);
		return -ESTALE;
	}
	return 0;
}
