/* SPDX-License-Identifier: ISC */
/*
 * Changes modes of directories for commands. A command chooses the path, the
 * content of its memory and the time of its death.
 */
#include "chmod_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "call_proxy.h"
#include "util.h"

#define NR_fchmodat2 452 /* not in the headers of Debian 12 */

/* The call that a command made. */
struct call {
	int directory; /* the command's descriptor, or AT_FDCWD */
	bool by_path;  /* false: the descriptor itself is meant */
	uint64_t path; /* address in the command's memory */
	mode_t mode;
	int flags;
};

static int
take_call(const struct seccomp_data *d, struct call *c)
{
	*c = (struct call){ .directory = AT_FDCWD };
	switch (d->nr) {
#ifdef SYS_chmod
	case SYS_chmod:
		c->path = d->args[0];
		c->by_path = true;
		c->mode = (mode_t)d->args[1];
		return 0;
#endif
	case SYS_fchmod:
		c->directory = (int)d->args[0];
		c->mode = (mode_t)d->args[1];
		return 0;
	case NR_fchmodat2:
		c->flags = (int)d->args[3];
		/* fall through */
	case SYS_fchmodat:
		c->directory = (int)d->args[0];
		c->path = d->args[1];
		c->by_path = true;
		c->mode = (mode_t)d->args[2];
		return c->flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)
			   ? -EINVAL
			   : 0;
	default:
		return -EPERM;
	}
}

static int
open_meant(pid_t pid, const struct call *c)
{
	char path[PATH_MAX];
	int err;

	if (!c->by_path)
		return c->directory == AT_FDCWD
			   ? -EBADF
			   : call_proxy_open_theirs(pid, c->directory);
	err = call_proxy_read_path(pid, c->path, path);
	if (err < 0)
		return err;
	if (*path == '\0')
		return c->flags & AT_EMPTY_PATH
			   ? call_proxy_open_theirs(pid, c->directory)
			   : -ENOENT;
	return call_proxy_open(pid, c->directory, path,
	    c->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
}

/* The opened file stays the same whatever happens to its name. */
int
chmod_proxy_take(uint64_t id, pid_t pid, const struct seccomp_data *data)
{
	_cleanup_close_ int fd = -1;
	struct call c;
	struct stat st;
	char name[32];
	int err = take_call(data, &c);

	if (err < 0)
		return err;
	fd = open_meant(pid, &c);
	if (fd < 0)
		return fd;
	if (!call_proxy_is_awaited(id) || fstat(fd, &st) < 0 ||
	    !S_ISDIR(st.st_mode))
		return -EPERM;
	snprintf(name, sizeof(name), "self/fd/%d", fd);
	return fchmodat(CALL_PROXY_PROC_FD, name, c.mode & 07777, 0) < 0
		   ? -errno
		   : 0;
}
