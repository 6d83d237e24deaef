/* SPDX-License-Identifier: ISC */
#include "socket_calls.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>

#include "call_proxy.h"

/* TCP_CLOSE and TCP_LISTEN: also a UNIX socket is in one of the kernel's states
 * of TCP. A socket that is bound is in the first one before it listens. */
#define BOUND	   7
#define LISTENING  10
#define DUMP_BYTES (32u << 10)
#define TEXT_BYTES 4096

static uint64_t cookies[OWN_SOCKETS_MAX]; /* the latest ones; 0: none yet */
static size_t ncookies;			  /* recorded since the start */
static bool host; /* the list is that of the host's network */

void
own_sockets_add(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0)
		cookies[ncookies++ % OWN_SOCKETS_MAX] = cookie;
}

static bool
was_added(uint64_t cookie)
{
	size_t n = ncookies < OWN_SOCKETS_MAX ? ncookies : OWN_SOCKETS_MAX;

	for (size_t i = 0; i < n; i++)
		if (cookies[i] == cookie)
			return true;
	return false;
}

/* What a socket is bound to: a file, by the numbers that the kernel's lists of
 * sockets have for it, or an abstract name. */
struct bound_file {
	const char *name; /* NULL: a file */
	size_t len;
	uint64_t inode;
	uint32_t device; /* as in the kernel: major << 20 | minor */
	int mount;
	bool found;
};

/*
 * Calls take() for the beginning of each line of a file of /proc, until it
 * returns true.
 */
static void
each_line(const char *name,
    bool (*take)(struct bound_file *f, const char *line), struct bound_file *f)
{
	char text[TEXT_BYTES + 1], *end;
	_cleanup_close_ int fd =
	    openat(CALL_PROXY_PROC_FD, name, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text + have, TEXT_BYTES - have)) > 0) {
		char *line = text;

		have += (size_t)n;
		text[have] = '\0';
		while ((end = memchr(line, '\n',
			    have - (size_t)(line - text))) != NULL) {
			*end = '\0';
			if (take(f, line))
				return;
			line = end + 1;
		}
		/* The rest of a line that is too long counts as lines. */
		have -= (size_t)(line - text);
		memmove(text, line, have);
		have = have == TEXT_BYTES ? 0 : have;
	}
}

/* fdinfo: the inode is there since Linux 5.14. */
static bool
take_fdinfo(struct bound_file *f, const char *line)
{
	unsigned long long inode;

	if (sscanf(line, "mnt_id: %d", &f->mount) == 1)
		return false;
	if (sscanf(line, "ino: %llu", &inode) == 1)
		f->inode = inode;
	return false;
}

static bool
take_mountinfo(struct bound_file *f, const char *line)
{
	unsigned major, minor;
	int mount;

	if (sscanf(line, "%d %*d %u:%u ", &mount, &major, &minor) != 3 ||
	    mount != f->mount)
		return false;
	f->device = major << 20 | minor;
	return f->found = true;
}

/*
 * Btrfs and overlays give stat(2) other numbers than the kernel keeps for the
 * file, so these come from /proc. A path that began in the command's working
 * directory led through its mounts, and any other path through the proxy's.
 */
static bool
name_file(pid_t pid, int fd, const struct stat *st, struct bound_file *f)
{
	char name[48];

	*f = (struct bound_file){ .inode = st->st_ino, .mount = -1 };
	snprintf(name, sizeof(name), "self/fdinfo/%d", fd);
	each_line(name, take_fdinfo, f);
	if (f->mount >= 0)
		each_line("self/mountinfo", take_mountinfo, f);
	snprintf(name, sizeof(name), "%d/mountinfo", pid);
	if (f->mount >= 0 && !f->found)
		each_line(name, take_mountinfo, f);
	/* The kernel's list cuts greater numbers. */
	return f->found && f->inode <= UINT32_MAX;
}

static uint64_t
cookie_of(const struct unix_diag_msg *m)
{
	return (uint64_t)m->udiag_cookie[1] << 32 | m->udiag_cookie[0];
}

/* Tells whether an attribute of a socket is the file or the name. */
static bool
is_it(const struct rtattr *a, const struct bound_file *f)
{
	const struct unix_diag_vfs *v = RTA_DATA(a);

	if (f->name != NULL)
		return a->rta_type == UNIX_DIAG_NAME &&
		       RTA_PAYLOAD(a) == f->len &&
		       memcmp(RTA_DATA(a), f->name, f->len) == 0;
	return a->rta_type == UNIX_DIAG_VFS && RTA_PAYLOAD(a) >= sizeof(*v) &&
	       v->udiag_vfs_ino == f->inode && v->udiag_vfs_dev == f->device;
}

static bool
is_bound_to(const struct nlmsghdr *h, const struct bound_file *f)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	const struct rtattr *a = (const void *)(m + 1);
	unsigned left = h->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof(*m));

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return false;
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (is_it(a, f))
			return f->name != NULL || !host ||
			       was_added(cookie_of(m));
	return false;
}

/* One datagram of the list. Returns 1 if there is more, 0 at its end, -errno.
 */
static int
read_list(const char *room, ssize_t n, const struct bound_file *f, bool *found)
{
	const struct nlmsghdr *h = (const void *)room;

	for (; n > 0 && NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return -EOPNOTSUPP;
		if (f != NULL && is_bound_to(h, f))
			*found = true;
	}
	return 1;
}

/*
 * Asks for all UNIX sockets of this network namespace that are no end of a
 * connection: an accepted one has the file of its listener. The list is read to
 * its end, so that the next question is not answered with the rest.
 */
static int
list_sockets(int diag, const struct bound_file *f, bool *found)
{
	static _Alignas(struct nlmsghdr) char room[DUMP_BYTES];
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req unix_sockets;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
		    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.unix_sockets = { .sdiag_family = AF_UNIX,
		    .udiag_states = 1u << BOUND | 1u << LISTENING,
		    .udiag_show = UDIAG_SHOW_VFS | UDIAG_SHOW_NAME },
	};
	int more = 1;

	*found = false;
	if (sendto(diag, &request, sizeof(request), 0, NULL, 0) < 0)
		return -errno;
	while (more > 0) {
		ssize_t n = recvfrom(diag, room, sizeof(room), 0, NULL, NULL);

		if (n > 0)
			more = read_list(room, n, f, found);
		else if (n == 0 || errno != EINTR)
			return n < 0 ? -errno : -EPIPE;
	}
	return more;
}

bool
own_sockets_have(pid_t pid, int fd, const struct stat *st)
{
	struct bound_file f;
	bool found;

	return name_file(pid, fd, st, &f) &&
	       list_sockets(CALL_PROXY_DIAG_FD, &f, &found) == 0 && found;
}

bool
own_sockets_have_name(const char *name, size_t len)
{
	const struct bound_file f = { .name = name, .len = len };
	bool found;

	return list_sockets(CALL_PROXY_DIAG_FD, &f, &found) < 0 || found;
}

int
own_sockets_open(bool of_host)
{
	_cleanup_close_ int diag =
	    socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool found;

	host = of_host;
	return diag < 0 || list_sockets(diag, NULL, &found) < 0
		   ? -1
		   : steal_fd(&diag);
}
