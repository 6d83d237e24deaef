/* SPDX-License-Identifier: ISC */
/*
 * A private copy of /etc/ssh. In a sandbox root has no name, so that what is
 * root's seems to be nobody's, and ssh(1) refuses each file that its
 * configuration includes ("Bad owner or permissions"). The copy is the
 * command's user's and read-only. Root itself is never mapped for it: the
 * command would be the host's root where a file is concerned.
 */
#include "view.h"

#include <dirent.h>
#include <sys/mount.h>

#include "mounts.h"

#define SSH	    "/etc/ssh"
#define FILE_BYTES  (64u << 10) /* a longer one is left out, as moduli */
#define DEPTH	    1		/* directories in it */
#define TMPFS_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* A link may lead to what the policy denies. The working directory is the old
 * /proc. */
static bool
is_denied(const struct view *v, int fd)
{
	char name[32], path[PATH_MAX];
	ssize_t n;

	snprintf(name, sizeof(name), "self/fd/%d", fd);
	n = readlink(name, path, sizeof(path) - 1);
	if (n < 0)
		return true;
	path[n] = '\0';
	return plan_access(v->plan, path) == SANDBOX_DENY;
}

/* What cannot be read, such as a host's key, is left out. */
static ssize_t
read_file(const struct view *v, int from, const char *name, char *text)
{
	_cleanup_close_ int fd =
	    openat(from, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > (off_t)FILE_BYTES || is_denied(v, fd))
		return -1;
	return pread(fd, text, FILE_BYTES, 0);
}

static void
copy_file(const struct view *v, int from, int to, const char *name)
{
	static char text[FILE_BYTES];
	ssize_t n = read_file(v, from, name, text);
	_cleanup_close_ int fd =
	    n < 0 ? -1
		  : openat(to, name,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0444);

	if (fd >= 0 && write(fd, text, (size_t)n) != n)
		unlinkat(to, name, 0);
}

static void
copy_directory(const struct view *v, int from, int to, int depth)
{
	int again = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again >= 0 ? fdopendir(again) : NULL;
	const struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		_cleanup_close_ int sub = -1, into = -1;

		if (e->d_name[0] == '.')
			continue;
		if (e->d_type != DT_DIR) {
			copy_file(v, from, to, e->d_name);
			continue;
		}
		if (depth == 0 || mkdirat(to, e->d_name, 0755) < 0)
			continue;
		sub = openat(from, e->d_name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		into = openat(to, e->d_name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0 && into >= 0)
			copy_directory(v, sub, into, depth - 1);
	}
	if (d != NULL)
		closedir(d);
	else if (again >= 0)
		close(again);
}

/* A plan that has a mount there stays as it is: view_check() looks for it. */
static bool
is_planned(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (path_lies_in(plan->mounts[i].path, SSH))
			return true;
	return false;
}

int
view_add_ssh(struct view *v)
{
	_cleanup_close_ int target = mounts_open(v->root, SSH);
	_cleanup_close_ int from =
	    open(SSH, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int to = -1;
	struct stat st;
	int err;

	view_step(v, SSH);
	if (target < 0 || from < 0 || is_planned(v->plan) ||
	    plan_access(v->plan, SSH) == SANDBOX_DENY ||
	    fstat(target, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	err = view_tmpfs(
	    v, target, SSH, TMPFS_FLAGS, "mode=0755,size=1m,nr_inodes=256");
	to = err < 0 ? err : mounts_open(v->root, SSH);
	if (to < 0)
		return to;
	copy_directory(v, from, to, DEPTH);
	return 0;
}
