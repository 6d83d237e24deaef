/* SPDX-License-Identifier: ISC */
/* Operations on mounts, by descriptor where the kernel can. */
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"
#include "util.h"

/* --- before Linux 5.12 -------------------------------------------------- */

/*
 * Mounts for kernels before Linux 5.12 (doc/sandbox.md C7), with mount(2) by
 * name. A bind mount has the flags of its source. So each mount of the copy is
 * listed from mountinfo and remounted with more flags.
 */

/* More than the kernel permits by default (fs.mount-max). */
#define MOUNTINFO_MAX_BYTES (16u << 20)
#define MOUNTINFO_MAX_LINES 131072

/*
 * Names a file of this process in /proc. While the view is built, /proc is the
 * working directory.
 */
static const char *
proc_name(char name[64], const char *file)
{
	snprintf(name, 64, "self/%s", file);
	if (access(name, F_OK) < 0)
		snprintf(name, 64, "/proc/self/%s", file);
	return name;
}

static void
name_fd(char name[64], int fd)
{
	char file[32];

	snprintf(file, sizeof(file), "fd/%d", fd);
	proc_name(name, file);
}

/* Decodes the \ooo of mountinfo in place. */
static void
unescape(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		unsigned c;

		if (*text == '\\' && sscanf(text + 1, "%3o", &c) == 1) {
			*to++ = (char)c;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/*
 * Keeps the flags that a mount has, because a user namespace may not remove
 * them.
 */
static unsigned long
flags_of(char *options)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} known[] = {
		{ "ro", MS_RDONLY },
		{ "nosuid", MS_NOSUID },
		{ "nodev", MS_NODEV },
		{ "noexec", MS_NOEXEC },
		{ "noatime", MS_NOATIME },
		{ "nodiratime", MS_NODIRATIME },
		{ "relatime", MS_RELATIME },
	};
	unsigned long flags = 0;
	char *state;

	for (char *word = strtok_r(options, ",", &state); word != NULL;
	     word = strtok_r(NULL, ",", &state))
		for (size_t i = 0; i < nitems(known); i++)
			if (strcmp(word, known[i].name) == 0)
				flags |= known[i].flag;
	return flags;
}

static unsigned long
classic_flags(unsigned flags)
{
	return (flags & MOUNTS_NO_SUID ? MS_NOSUID : 0) |
	       (flags & MOUNTS_NO_DEV ? MS_NODEV : 0) |
	       (flags & MOUNTS_READONLY ? MS_RDONLY : 0) |
	       (flags & MOUNTS_NO_EXEC ? MS_NOEXEC : 0);
}

struct mount_line {
	char *point; /* points into the text */
	unsigned long flags;
};

/*
 * Splits the text in place. Stops at a line that is not in the format of
 * mountinfo.
 */
static size_t
parse_lines(char *text, struct mount_line *lines, size_t max)
{
	size_t n = 0;
	char *state;

	for (char *line = strtok_r(text, "\n", &state); line != NULL && n < max;
	     line = strtok_r(NULL, "\n", &state)) {
		int point = -1, options = -1, end = -1;

		sscanf(line, "%*s %*s %*s %*s %n%*s %n%*s%n", &point, &options,
		    &end);
		if (end < 0)
			break;
		line[options - 1] = line[end] = '\0';
		lines[n].point = line + point;
		unescape(lines[n].point);
		lines[n++].flags = flags_of(line + options);
	}
	return n;
}

/* If several mounts are at one path, only the last one is visible there. */
static bool
is_covered(const struct mount_line *lines, size_t n, size_t i)
{
	for (size_t k = i + 1; k < n; k++)
		if (strcmp(lines[k].point, lines[i].point) == 0)
			return true;
	return false;
}

static bool
is_meant(const char *point, const char *path, bool below)
{
	return below ? path_lies_in(point, path) : strcmp(point, path) == 0;
}

/*
 * Errors are ignored for mounts that another mount hides, because commands
 * cannot reach them either.
 */
static int
remount_lines(const struct mount_line *lines, size_t n, const char *path,
    bool below, unsigned flags)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_meant(lines[i].point, path, below) ||
		    is_covered(lines, n, i))
			continue;
		count++;
		if (mount(NULL, lines[i].point, NULL,
			MS_REMOUNT | MS_BIND | lines[i].flags |
			    classic_flags(flags),
			NULL) == 0 ||
		    ((errno == EINVAL || errno == ENOENT || errno == EACCES) &&
			strcmp(lines[i].point, path) != 0))
			continue;
		return -errno;
	}
	return count > 0 ? 0 : -EINVAL;
}

static int
remount(const char *path, bool below, unsigned flags)
{
	_cleanup_free_ char *text = xmalloc(MOUNTINFO_MAX_BYTES + 1);
	_cleanup_free_ struct mount_line *lines =
	    xcalloc(MOUNTINFO_MAX_LINES, sizeof(*lines));
	char name[64];
	_cleanup_close_ int fd =
	    open(proc_name(name, "mountinfo"), O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	while (len < MOUNTINFO_MAX_BYTES &&
	       (n = read(fd, text + len, MOUNTINFO_MAX_BYTES - len)) > 0)
		len += (size_t)n;
	if (n != 0)
		return n < 0 ? -errno : -E2BIG;
	text[len] = '\0';
	return remount_lines(lines,
	    parse_lines(text, lines, MOUNTINFO_MAX_LINES), path, below, flags);
}

static int
path_of(int fd, char path[PATH_MAX])
{
	char name[64];
	ssize_t n;

	name_fd(name, fd);
	n = readlink(name, path, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return path[0] == '/' ? 0 : -ENOENT;
}

static int
classic_bind(int source, int target, unsigned flags)
{
	static heap_aligned char path[PATH_MAX];
	char from[64], to[64];
	int err = path_of(target, path);

	if (err < 0)
		return err;
	name_fd(from, source);
	name_fd(to, target);
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	return remount(path, true, flags);
}

static int
classic_seal(int fd, unsigned flags)
{
	static heap_aligned char path[PATH_MAX];
	int err = path_of(fd, path);

	return err < 0 ? err : remount(path, false, flags);
}

/* --- by descriptor ------------------------------------------------------ */

/*
 * Set if the kernel has no openat2(2), as before Linux 5.6. Paths are then
 * walked name by name.
 */
static bool walk;

/*
 * Like openat2(2) here: a link on the way fails, because it is not a directory.
 * ".." is refused.
 */
static int
walk_names(int root, const char *path)
{
	int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (at >= 0) {
		char name[NAME_MAX + 1];
		size_t n;
		int fd;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 0)
			return at;
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		fd = n > NAME_MAX || strcmp(name, "..") == 0
			 ? -EINVAL
			 : openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd == -1)
			fd = -errno;
		close(at);
		if (fd < 0)
			return fd;
		at = fd;
		path += n;
	}
	return -errno;
}

int
mounts_open(int root, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS,
	};
	int fd = walk
		     ? -1
		     : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (!walk && fd < 0 && errno == ENOSYS)
		walk = true;
	if (walk)
		return walk_names(root, path);
	return fd < 0 ? -errno : fd;
}

static uint64_t
attributes(unsigned flags)
{
	return (flags & MOUNTS_NO_SUID ? MOUNT_ATTR_NOSUID : 0) |
	       (flags & MOUNTS_NO_DEV ? MOUNT_ATTR_NODEV : 0) |
	       (flags & MOUNTS_READONLY ? MOUNT_ATTR_RDONLY : 0) |
	       (flags & MOUNTS_NO_EXEC ? MOUNT_ATTR_NOEXEC : 0);
}

static int
set_attributes(int fd, unsigned flags, unsigned recursive)
{
	struct mount_attr attr = {
		.attr_set = attributes(flags),
		.propagation = recursive ? MS_PRIVATE : 0,
	};

	if (mount_setattr(
		fd, "", AT_EMPTY_PATH | recursive, &attr, sizeof(attr)) < 0)
		return -errno;
	return 0;
}

static int
bind_tree(int source, int target, unsigned flags)
{
	_cleanup_close_ int tree = open_tree(source, "",
	    AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int err;

	if (tree < 0)
		return -errno;
	err = set_attributes(tree, flags, AT_RECURSIVE);
	if (err < 0)
		return err;
	if (move_mount(tree, "", target, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/*
 * Set if the kernel lacks one of the calls, as before Linux 5.12. Then none of
 * them is used.
 */
static bool classic;

int
mounts_bind(int source, int target, unsigned flags)
{
	int err = classic ? -ENOSYS : bind_tree(source, target, flags);

	if (err != -ENOSYS)
		return err;
	classic = true;
	return classic_bind(source, target, flags);
}

int
mounts_seal(int fd, unsigned flags)
{
	int err = classic ? -ENOSYS : set_attributes(fd, flags, 0);

	if (err != -ENOSYS)
		return err;
	classic = true;
	return classic_seal(fd, flags);
}

int
mounts_make_private(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno
								     : 0;
}
