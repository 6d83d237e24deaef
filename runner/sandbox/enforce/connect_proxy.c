/* SPDX-License-Identifier: ISC */
/*
 * Connects sockets for commands. The proxy trusts no command: a command chooses
 * the socket, the address, the file behind a path, and the time of its death,
 * and changes all of them while the proxy looks.
 */
#include "connect_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "call_proxy.h"
#include "own_ports.h"
#include "util.h"

/* Not in the headers of Debian 12. */
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#define PIDFD_OF_THREAD O_EXCL /* Linux 6.9 */

#define LISTENING     10 /* TCP_LISTEN, also for UNIX sockets */
#define DUMP_BYTES    (32u << 10)
#define TEXT_BYTES    4096
#define LOOK_AGAIN_MS 10   /* at UNIX sockets, whose room nobody tells */
#define SWEEP_MS      1000 /* for calls whose command has gone */

/* One call that waits, as a blocking connect(2) does. */
struct waiting {
	uint64_t id; /* 0: the place is free */
	int fd;	     /* duplicate of the command's socket */
	int target;  /* what the path led to; -1: no path */
	bool local;  /* a UNIX socket: asked again; else: watched */
	int64_t end; /* in ms, of SO_SNDTIMEO; 0: never */
	struct sockaddr_storage address;
	socklen_t len;
};

static struct waiting waiting[CONNECT_PROXY_WAITING_MAX];
static uint64_t own_network; /* cookie of the sandbox's network namespace */

/* --- which UNIX sockets are this sandbox's ------------------------------ */

/* A file as the kernel names it in its lists of sockets. */
struct bound_file {
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

static bool
is_bound_to(const struct nlmsghdr *h, const struct bound_file *f)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	const struct rtattr *a = (const void *)(m + 1);
	unsigned left = h->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof(*m));

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return false;
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		const struct unix_diag_vfs *v = RTA_DATA(a);

		if (a->rta_type == UNIX_DIAG_VFS &&
		    RTA_PAYLOAD(a) >= sizeof(*v) &&
		    v->udiag_vfs_ino == f->inode &&
		    v->udiag_vfs_dev == f->device)
			return true;
	}
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
 * Asks for all UNIX sockets of this network namespace that listen. The list is
 * read to its end, so that the next question is not answered with the rest.
 */
static int
list_listeners(int diag, const struct bound_file *f, bool *found)
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
		    .udiag_states = 1u << LISTENING,
		    .udiag_show = UDIAG_SHOW_VFS },
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

/*
 * Tells whether a listener of this sandbox is bound to the file. As long as the
 * file is open, no other file can have its numbers.
 */
static bool
is_own(pid_t pid, int fd, const struct stat *st)
{
	struct bound_file f;
	bool found;

	return name_file(pid, fd, st, &f) &&
	       list_listeners(CALL_PROXY_DIAG_FD, &f, &found) == 0 && found;
}

/* --- the command's socket and address ----------------------------------- */

/* Returns a descriptor of the thread's process, which has its descriptors. */
static int
open_process(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, PIDFD_OF_THREAD);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 && (errno == EINVAL || errno == ENOENT))
		fd = (int)syscall(SYS_pidfd_open, call_proxy_leader(pid), 0);
	return fd < 0 ? -errno : fd;
}

static int
duplicate(pid_t pid, int theirs)
{
	_cleanup_close_ int process = open_process(pid);
	int fd;

	if (process < 0)
		return -EPERM;
	fd = (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
	if (fd < 0)
		return errno == EBADF ? -EBADF : -EPERM;
	return fd;
}

static int
read_address(pid_t pid, const struct seccomp_data *d, struct waiting *w)
{
	int len = (int)d->args[2];
	struct iovec to = { &w->address, 0 };
	struct iovec theirs = { (void *)(uintptr_t)d->args[1], 0 };

	if (len < 0 || (size_t)len > sizeof(w->address))
		return -EINVAL;
	w->len = (socklen_t)len;
	to.iov_len = theirs.iov_len = (size_t)len;
	if (len > 0 &&
	    process_vm_readv(pid, &to, 1, &theirs, 1, 0) != (ssize_t)len)
		return -EFAULT;
	return 0;
}

static int
option(int fd, int name, void *value, socklen_t len)
{
	return getsockopt(fd, SOL_SOCKET, name, value, &len) < 0 ? -errno : 0;
}

/*
 * A socket that was made in another network namespace, and was handed to the
 * command by a process outside, is not connected.
 */
static int
check_network(int fd)
{
	uint64_t network = 0;
	int err = option(fd, SO_NETNS_COOKIE, &network, sizeof(network));

	if (err < 0)
		return err == -ENOTSOCK ? err : -EPERM;
	if (own_network == 0 && option(CALL_PROXY_DIAG_FD, SO_NETNS_COOKIE,
				    &own_network, sizeof(own_network)) < 0)
		return -EPERM;
	return network == own_network ? 0 : -EPERM;
}

static bool
has_path(const struct waiting *w)
{
	const struct sockaddr_un *a = (const void *)&w->address;

	return w->len > offsetof(struct sockaddr_un, sun_path) &&
	       w->address.ss_family == AF_UNIX && a->sun_path[0] != '\0';
}

/* Opens what the path leads to, and puts that file in the path's place. */
static int
open_target(pid_t pid, struct waiting *w)
{
	struct sockaddr_un a;
	char path[sizeof(a.sun_path) + 1] = "";
	size_t n = w->len - offsetof(struct sockaddr_un, sun_path);
	struct stat st;

	if (w->len > sizeof(a))
		return -EINVAL;
	memcpy(&a, &w->address, sizeof(a));
	memcpy(path, a.sun_path, n);
	w->target = call_proxy_open(pid, AT_FDCWD, path, 0);
	if (w->target < 0)
		return w->target;
	if (fstat(w->target, &st) < 0)
		return -EPERM;
	if (!S_ISSOCK(st.st_mode))
		return -ECONNREFUSED;
	if (!is_own(pid, w->target, &st))
		return -EPERM;
	/* The working directory of the proxy is that of its /proc. */
	n = (size_t)snprintf(
	    a.sun_path, sizeof(a.sun_path), "self/fd/%d", w->target);
	w->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	memcpy(&w->address, &a, sizeof(a));
	return 0;
}

/*
 * With the network of the host, only execd's own ports are refused. A socket of
 * the family AF_UNIX, which somebody handed in, is not connected: its listener
 * is a program of the host.
 */
static int
check_host(const struct waiting *w)
{
	if (w->local)
		return -EPERM;
	return own_ports_has(CALL_PROXY_DIAG_FD, &w->address) ? -EACCES : 0;
}

/* --- connecting --------------------------------------------------------- */

/*
 * The proxy must not wait for anybody, so the socket does not block for this
 * moment. Nobody else uses a socket that is not connected.
 */
static int
try(const struct waiting *w)
{
	int flags = fcntl(w->fd, F_GETFL), err;
	bool blocks = flags >= 0 && !(flags & O_NONBLOCK);

	if (flags < 0 ||
	    (blocks && fcntl(w->fd, F_SETFL, flags | O_NONBLOCK) < 0))
		return -EPERM;
	err =
	    connect(w->fd, (const void *)&w->address, w->len) < 0 ? -errno : 0;
	if (blocks)
		fcntl(w->fd, F_SETFL, flags);
	if (blocks && (err == -EINPROGRESS || err == -EALREADY ||
			  (err == -EAGAIN && w->local)))
		return CONNECT_PROXY_WAITS;
	return err;
}

/* A blocking connect(2) waits as long as SO_SNDTIMEO says (socket(7)). */
static void
set_end(struct waiting *w)
{
	struct timeval t = { 0 };

	if (option(w->fd, SO_SNDTIMEO, &t, sizeof(t)) == 0 &&
	    (t.tv_sec > 0 || t.tv_usec > 0))
		w->end = now_ms() + t.tv_sec * 1000 + t.tv_usec / 1000;
}

static bool
is_over(const struct waiting *w)
{
	return w->end != 0 && now_ms() >= w->end;
}

static int
look_at(const struct waiting *w)
{
	struct pollfd pfd = { .fd = w->fd, .events = POLLOUT };
	int err = 0;

	if (w->local)
		return try(w);
	if (poll(&pfd, 1, 0) <= 0)
		return is_over(w) ? -EINPROGRESS : CONNECT_PROXY_WAITS;
	if (option(w->fd, SO_ERROR, &err, sizeof(err)) < 0)
		return -EPERM;
	return -err;
}

static void
forget(struct waiting *w)
{
	if (w->target >= 0)
		close(w->target);
	if (w->fd >= 0)
		close(w->fd);
	w->id = 0;
}

static int
prepare(pid_t pid, const struct seccomp_data *d, struct waiting *w)
{
	int domain = 0, err;

	w->fd = duplicate(pid, (int)d->args[0]);
	if (w->fd < 0)
		return w->fd;
	err = check_network(w->fd);
	if (err == 0)
		err = read_address(pid, d, w);
	if (err == 0)
		err = option(w->fd, SO_DOMAIN, &domain, sizeof(domain));
	if (err < 0)
		return err;
	w->local = domain == AF_UNIX;
	if (own_ports_any())
		return check_host(w);
	return w->local && has_path(w) ? open_target(pid, w) : 0;
}

static struct waiting *
free_place(void)
{
	for (size_t i = 0; i < nitems(waiting); i++)
		if (waiting[i].id == 0)
			return &waiting[i];
	return NULL;
}

int
connect_proxy_take(uint64_t id, pid_t pid, const struct seccomp_data *data)
{
	struct waiting w = { .id = id, .fd = -1, .target = -1 }, *place;
	int err = prepare(pid, data, &w);

	/* The number of a process that was killed may be another's now. */
	if (err == 0)
		err = call_proxy_is_awaited(id) ? try(&w) : -EPERM;
	place = err == CONNECT_PROXY_WAITS ? free_place() : NULL;
	if (place != NULL) {
		if (!w.local)
			set_end(&w);
		*place = w;
		return err;
	}
	forget(&w);
	return err == CONNECT_PROXY_WAITS ? -EAGAIN : err;
}

size_t
connect_proxy_watch(struct pollfd pfds[CONNECT_PROXY_WAITING_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < nitems(waiting); i++)
		if (waiting[i].id != 0 && !waiting[i].local)
			pfds[n++] = (struct pollfd){ .fd = waiting[i].fd,
				.events = POLLOUT };
	return n;
}

/* Returns in how many milliseconds to look at the call again. */
static int
pause_of(const struct waiting *w)
{
	int64_t left = w->end != 0 ? w->end - now_ms() : SWEEP_MS;

	if (w->local)
		return LOOK_AGAIN_MS;
	return left < 0 ? 0 : left < SWEEP_MS ? (int)left : SWEEP_MS;
}

int
connect_proxy_look(void (*answer)(uint64_t id, int err))
{
	int pause = -1;

	for (size_t i = 0; i < nitems(waiting); i++) {
		struct waiting *w = &waiting[i];
		int err;

		if (w->id == 0)
			continue;
		err = call_proxy_is_awaited(w->id) ? look_at(w) : -ESRCH;
		if (err == CONNECT_PROXY_WAITS) {
			int wanted = pause_of(w);

			pause = pause < 0 || wanted < pause ? wanted : pause;
			continue;
		}
		answer(w->id, err);
		forget(w);
	}
	return pause;
}

/* --- whether this kernel can -------------------------------------------- */

static bool
can_take_descriptors(int any)
{
	_cleanup_close_ int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	_cleanup_close_ int copy =
	    self < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, self, any, 0);

	return copy >= 0;
}

int
connect_proxy_open(void)
{
	_cleanup_close_ int diag =
	    own_ports_any() ? own_ports_open()
			    : socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
				  NETLINK_SOCK_DIAG);
	uint64_t network;
	bool found;

	if (diag < 0 || !can_take_descriptors(diag) ||
	    option(diag, SO_NETNS_COOKIE, &network, sizeof(network)) < 0 ||
	    (!own_ports_any() && list_listeners(diag, NULL, &found) < 0))
		return -1;
	return steal_fd(&diag);
}
