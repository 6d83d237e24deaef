/* SPDX-License-Identifier: ISC */
#include "place.h"

#include <netinet/in.h>
#include <sys/un.h>

#include "trusted.h"

#define LISTEN_BACKLOG 4096

/* --- listeners ----------------------------------------------------------- */

static int
take_path(const char *path, struct sockaddr_un *un)
{
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(un->sun_path))
		return -ENAMETOOLONG;
	memcpy(un->sun_path, path, strlen(path));
	return 0;
}

/* A socket file on which nobody listens was left by an earlier execd. */
static void
remove_stale(const struct sockaddr_un *un)
{
	_cleanup_close_ int fd =
	    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd >= 0 && lstat(un->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 &&
	    errno == ECONNREFUSED)
		unlink(un->sun_path);
}

int
place_permit(const struct control_place *p)
{
	struct stat st;

	if (lstat(p->path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return 0; /* somebody has put it there */
	if (lchown(p->path, (uid_t)-1, p->gid) < 0 ||
	    fchmodat(AT_FDCWD, p->path, p->mode & 0777, AT_SYMLINK_NOFOLLOW) <
		0)
		return -errno;
	return 0;
}

/* Nobody can connect before place_permit() says who may. */
static int
bind_path(int fd, const struct control_place *p)
{
	struct sockaddr_un un;
	int err = take_path(p->path, &un);
	mode_t old;

	if (err < 0)
		return err;
	remove_stale(&un);
	old = umask(0777);
	if (bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
		err = -errno;
	umask(old);
	return err < 0 ? err : place_permit(p);
}

static int
bind_address(int fd, const struct sockaddr_in6 *a, bool ipv6_only)
{
	bool v6 = a->sin6_family == AF_INET6;
	int on = 1, only = ipv6_only;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (v6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	return bind(fd, (const struct sockaddr *)a,
		   v6 ? sizeof(*a) : sizeof(struct sockaddr_in)) < 0
		   ? -errno
		   : 0;
}

int
place_bind(int fd, const struct control_place *p)
{
	struct sockaddr_in6 a;
	int err;

	memcpy(&a, p->address, sizeof(a));
	err = p->path[0] != '\0' ? bind_path(fd, p)
				 : bind_address(fd, &a, p->ipv6_only);
	return err == 0 && listen(fd, LISTEN_BACKLOG) < 0 ? -errno : err;
}

/* --- records ------------------------------------------------------------- */

#define RECORD_FLAGS                                                           \
	(O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

static int
open_file(const char *path, int flags, char *why, size_t len)
{
	_cleanup_close_ int fd = open(path, RECORD_FLAGS | flags, 0600);
	int err = fd < 0 ? -errno : trusted_record(fd, why, len);

	return err < 0 ? err : steal_fd(&fd);
}

static int
check_file(const char *path, char *why, size_t len)
{
	_cleanup_close_ int fd = open_file(path, 0, why, len);
	_cleanup_free_ char *directory = xstrdup(path);

	if (fd != -ENOENT)
		return fd >= 0 ? PLACE_NONE : fd;
	*(strrchr(directory, '/') + 1) = '\0';
	return faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) < 0
		   ? -errno
		   : PLACE_NONE;
}

static int
dial(const char *path)
{
	_cleanup_close_ int fd =
	    socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un un;
	int err = take_path(path, &un);

	if (fd < 0 || err < 0)
		return fd < 0 ? -errno : err;
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
		return -errno;
	return steal_fd(&fd);
}

static int
check_directory(const char *path, char *why, size_t len)
{
	_cleanup_close_ int fd = trusted_directory(path, why, len);

	return fd < 0 ? fd : PLACE_NONE;
}

int
place_open(const struct control_place *p, bool check, char *why, size_t len)
{
	if (p->kind != PLACE_LISTENER && p->path[0] != '/')
		return -EINVAL;
	switch (p->kind) {
	case PLACE_LISTENER:
		return PLACE_NONE;
	case PLACE_AUDIT_FILE:
		return check ? check_file(p->path, why, len)
			     : open_file(p->path, O_CREAT, why, len);
	case PLACE_AUDIT_SOCKET:
		return dial(p->path);
	default:
		return check_directory(p->path, why, len);
	}
}
