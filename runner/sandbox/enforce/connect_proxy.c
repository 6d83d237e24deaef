/* SPDX-License-Identifier: ISC */
/*
 * Connects sockets for commands. The proxy trusts no command: a command chooses
 * the socket, the address, the file behind a path, and the time of its death,
 * and changes all of them while the proxy looks.
 */
#include "connect_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "call_proxy.h"
#include "clone_into.h"
#include "command_filter.h"
#include "heap.h"
#include "own_ports.h"
#include "own_sockets.h"
#include "util.h"

/* Not in the headers of Debian 12. */
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#define PIDFD_OF_THREAD O_EXCL /* Linux 6.9 */

#define LOOK_AGAIN_MS 10   /* at UNIX sockets, whose room nobody tells */
#define SWEEP_MS      1000 /* for calls whose command has gone */
#define STACK_BYTES   (16u << 10)
#define WAITS	      1 /* the call is not decided */

/* One call. It is kept while it waits, as a blocking connect(2) does. */
struct waiting {
	uint64_t id; /* 0: the place is free */
	int fd;	     /* duplicate of the command's socket */
	int target;  /* what the path led to; -1: no path */
	pid_t pid;   /* the thread that makes the call */
	struct seccomp_data call;
	bool local;  /* a UNIX socket: asked again; else: watched */
	int64_t end; /* in ms, of SO_SNDTIMEO; 0: never */
	struct sockaddr_storage asked; /* the address that the command gave */
	struct sockaddr_storage address;
	socklen_t len;
};

static struct waiting waiting[CONNECT_PROXY_WAITING_MAX];
static size_t places;	     /* behind these, all of waiting[] are free */
static uint64_t own_network; /* cookie of the sandbox's network namespace */
static bool host;	     /* that of the host is used */
static bool landlocked;	     /* CALL_PROXY_LANDLOCK_FD is a ruleset */
static _Alignas(HEAP_PAGE_BYTES) char bind_stack[STACK_BYTES];

/* --- the command's socket and address ----------------------------------- */

/* Returns a descriptor of the thread's process, which has its descriptors. */
static int
open_process(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, PIDFD_OF_THREAD);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 && (errno == EINVAL || errno == ENOENT))
		fd = (int)syscall(SYS_pidfd_open,
		    (pid_t)call_proxy_status(pid, "\nTgid:", 10), 0);
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
read_address(struct waiting *w)
{
	int len = (int)w->call.args[2];
	struct iovec to = { &w->address, 0 };
	struct iovec theirs = { (void *)(uintptr_t)w->call.args[1], 0 };

	if (len < 0 || (size_t)len > sizeof(w->address))
		return -EINVAL;
	w->len = (socklen_t)len;
	to.iov_len = theirs.iov_len = (size_t)len;
	if (len > 0 &&
	    process_vm_readv(w->pid, &to, 1, &theirs, 1, 0) != (ssize_t)len)
		return -EFAULT;
	w->asked = w->address;
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

/*
 * Tells whether nobody at all is bound to the file, so that the command may be
 * told what the kernel would tell it. The kernel looks for the socket before
 * it compares the types, and no stream is reached by a datagram socket.
 */
static bool
is_stale(const struct sockaddr_un *a, socklen_t len)
{
	_cleanup_close_ int probe =
	    socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return probe >= 0 && connect(probe, (const void *)a, len) < 0 &&
	       errno == ECONNREFUSED;
}

/* Opens what the path leads to, and puts that file in the path's place. */
static int
open_target(struct waiting *w)
{
	struct sockaddr_un a;
	char path[sizeof(a.sun_path) + 1] = "";
	size_t n = w->len - offsetof(struct sockaddr_un, sun_path);
	struct stat st;

	if (w->len > sizeof(a))
		return -EINVAL;
	memcpy(&a, &w->address, sizeof(a));
	memcpy(path, a.sun_path, n);
	w->target = call_proxy_open(w->pid, AT_FDCWD, path, 0);
	if (w->target < 0)
		return w->target;
	if (fstat(w->target, &st) < 0)
		return -EPERM;
	if (!S_ISSOCK(st.st_mode))
		return -ECONNREFUSED;
	/* The working directory of the proxy is that of its /proc. */
	n = (size_t)snprintf(
	    a.sun_path, sizeof(a.sun_path), "self/fd/%d", w->target);
	w->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	memcpy(&w->address, &a, sizeof(a));
	if (own_sockets_have(w->pid, w->target, &st, !host))
		return 0;
	return is_stale(&a, w->len) ? -ECONNREFUSED : -EPERM;
}

/*
 * Judges the address of a UNIX socket. With the network of the host the
 * abstract names are the host's. Programs try one before a path, so they are
 * told the truth about a name that nobody has.
 */
static int
check_local(struct waiting *w)
{
	const struct sockaddr_un *a = (const void *)&w->address;
	size_t before = offsetof(struct sockaddr_un, sun_path);

	if (has_path(w))
		return open_target(w);
	if (!host || a->sun_family != AF_UNIX || w->len <= before)
		return 0;
	return own_sockets_have_name(a->sun_path, w->len - before)
		   ? -EPERM
		   : -ECONNREFUSED;
}

/* --- connecting --------------------------------------------------------- */

/*
 * A failed connection leaves the abstract name that the kernel gave the socket,
 * if it passes credentials (unix(7)). Nobody can connect to it then.
 */
static void
close_abstract(const struct waiting *w)
{
	struct sockaddr_un a;
	socklen_t len = sizeof(a);

	if (host && w->local &&
	    getsockname(w->fd, (struct sockaddr *)&a, &len) == 0 &&
	    len > offsetof(struct sockaddr_un, sun_path) &&
	    a.sun_path[0] == '\0')
		shutdown(w->fd, SHUT_RDWR);
}

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
	if (err < 0 && err != -EAGAIN && err != -EISCONN)
		close_abstract(w);
	if (blocks && (err == -EINPROGRESS || err == -EALREADY ||
			  (err == -EAGAIN && w->local)))
		return WAITS;
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
		return is_over(w) ? -EINPROGRESS : WAITS;
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

/*
 * Datagram sockets are made by nobody here, but somebody outside can hand one
 * in.
 */
static int
take_family(struct waiting *w)
{
	int domain = 0, type = 0;
	int err = option(w->fd, SO_DOMAIN, &domain, sizeof(domain));

	if (err == 0)
		err = option(w->fd, SO_TYPE, &type, sizeof(type));
	if (err < 0)
		return err;
	w->local = domain == AF_UNIX;
	return w->local && type != SOCK_STREAM && type != SOCK_SEQPACKET
		   ? -EPERM
		   : 0;
}

static int
prepare(struct waiting *w)
{
	int err;

	w->fd = duplicate(w->pid, (int)w->call.args[0]);
	if (w->fd < 0)
		return w->fd;
	err = check_network(w->fd);
	if (err == 0)
		err = read_address(w);
	return err < 0 ? err : take_family(w);
}

static int
judge(struct waiting *w)
{
	if (w->local)
		return check_local(w);
	return own_ports_guards() && own_ports_has(CALL_PROXY_ROUTE_FD,
					 (const void *)&w->address)
		   ? -EACCES
		   : 0;
}

/* --- answers that may be unheard ---------------------------------------- */

/*
 * A signal to a thread ends its wait for the proxy. If the call was carried out
 * by then, the kernel begins it again all the same, and what is done cannot be
 * done twice. Nobody can tell whether an answer was heard, so the latest ones
 * are kept. A call is the same if the same thread makes it at the same place
 * with the same arguments, for the same socket and with the same address.
 */
static struct heard {
	pid_t pid;
	struct seccomp_data call;
	struct sockaddr_storage asked;
	uint64_t socket; /* its cookie, which is never another's; 0: none */
	int err;
} heard[64];

static struct heard
call_of(const struct waiting *w, int err)
{
	struct heard h = {
		.pid = w->pid, .call = w->call, .asked = w->asked, .err = err
	};

	option(w->fd, SO_COOKIE, &h.socket, sizeof(h.socket));
	return h;
}

static void
keep_answer(const struct waiting *w, int err)
{
	static size_t next;

	if (err == 0 || err == -EINPROGRESS)
		heard[next++ % nitems(heard)] = call_of(w, err);
}

static bool
is_done_before(const struct waiting *w, int err)
{
	if (w->call.nr == SYS_bind)
		return err == -EINVAL || err == -EADDRINUSE;
	return err == -EISCONN || err == -EALREADY;
}

/* Returns the answer of the first time if the call is the same. */
static int
recall_answer(const struct waiting *w, int err)
{
	struct heard h;

	if (!is_done_before(w, err))
		return err;
	h = call_of(w, err);
	for (size_t i = 0; i < nitems(heard); i++)
		if (h.socket != 0 && heard[i].socket == h.socket &&
		    heard[i].pid == h.pid &&
		    memcmp(&heard[i].call, &h.call, sizeof(h.call)) == 0 &&
		    memcmp(&heard[i].asked, &h.asked, sizeof(h.asked)) == 0)
			return err == -EISCONN ? 0 : heard[i].err;
	return err;
}

static void
finish(struct waiting *w, int err, connect_proxy_answer *answer)
{
	if (w->fd >= 0) {
		err = recall_answer(w, err);
		keep_answer(w, err);
	}
	answer(w->id, err);
	forget(w);
}

/* --- connect(2) --------------------------------------------------------- */

static struct waiting
new_call(uint64_t id, pid_t pid, const struct seccomp_data *data)
{
	return (struct waiting){
		.id = id, .fd = -1, .target = -1, .pid = pid, .call = *data
	};
}

static struct waiting *
free_place(void)
{
	size_t i = 0;

	while (i < places && waiting[i].id != 0)
		i++;
	if (i == nitems(waiting))
		return NULL;
	if (i == places)
		places++;
	return &waiting[i];
}

void
connect_proxy_take(uint64_t id, pid_t pid, const struct seccomp_data *data,
    connect_proxy_answer *answer)
{
	struct waiting w = new_call(id, pid, data), *place;
	int err = prepare(&w);

	if (err == 0)
		err = judge(&w);
	/* The number of a process that was killed may be another's now. */
	if (err == 0)
		err = call_proxy_is_awaited(id) ? try(&w) : -EPERM;
	place = err == WAITS ? free_place() : NULL;
	if (place != NULL) {
		if (!w.local)
			set_end(&w);
		*place = w;
		return;
	}
	finish(&w, err == WAITS ? -EAGAIN : err, answer);
}

size_t
connect_proxy_watch(struct pollfd pfds[CONNECT_PROXY_WAITING_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < places; i++)
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
connect_proxy_look(connect_proxy_answer *answer)
{
	int pause = -1;

	for (size_t i = 0; i < places; i++) {
		struct waiting *w = &waiting[i];
		int err;

		if (w->id == 0)
			continue;
		err = call_proxy_is_awaited(w->id) ? look_at(w) : -ESRCH;
		if (err == WAITS) {
			int wanted = pause_of(w);

			pause = pause < 0 || wanted < pause ? wanted : pause;
			continue;
		}
		finish(w, err, answer);
	}
	while (places > 0 && waiting[places - 1].id == 0)
		places--;
	return pause;
}

/* --- binding ------------------------------------------------------------ */

/* A path that a child binds a socket to, as the command would. */
struct binding {
	const struct waiting *w;
	int root, cwd; /* the command's */
	mode_t umask;
	int err;
};

/*
 * The name of a socket is the text that it was bound with, so this text is
 * looked up once, by the kernel, where the command would look it up: in its
 * root, its working directory and its mounts, and under its Landlock.
 */
ON_OWN_STACK static int
bind_as_command(void *arg)
{
	struct binding *b = arg;

	umask(b->umask);
	if (fchdir(b->root) < 0 || chroot(".") < 0 || fchdir(b->cwd) < 0 ||
	    (landlocked && command_landlock_load(CALL_PROXY_LANDLOCK_FD) < 0))
		b->err = -EPERM;
	else if (bind(b->w->fd, (const void *)&b->w->address, b->w->len) < 0)
		b->err = -errno;
	else
		b->err = 0;
	_exit(0);
}

/* The proxy itself gets out of no root and no Landlock again. */
static int
run_binding(struct binding *b)
{
	pid_t pid;

	b->err = -ESRCH; /* stays if the child is killed */
	own_stack_reuse(bind_stack, sizeof(bind_stack));
	pid = clone(bind_as_command, bind_stack + sizeof(bind_stack),
	    CONNECT_PROXY_CLONE, b);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ((volatile struct binding *)b)->err;
}

static int
bind_path(const struct waiting *w)
{
	_cleanup_close_ int root = call_proxy_open_link(w->pid, "root");
	_cleanup_close_ int cwd = call_proxy_open_link(w->pid, "cwd");
	long mask = call_proxy_status(w->pid, "\nUmask:", 8);
	struct binding b = { w, root, cwd, (mode_t)mask, 0 };

	if (root < 0 || cwd < 0 || mask < 0 || !call_proxy_is_awaited(w->id))
		return -EPERM;
	return run_binding(&b);
}

/* Abstract names are the host's (check_local()), also one that the kernel is to
 * choose. */
static int
bind_local(const struct waiting *w)
{
	int err;

	if (!has_path(w))
		return w->address.ss_family == AF_UNIX ? -EPERM : -EINVAL;
	err = bind_path(w);
	if (err == 0)
		own_sockets_add(w->fd);
	return err;
}

void
connect_proxy_bind(uint64_t id, pid_t pid, const struct seccomp_data *data,
    connect_proxy_answer *answer)
{
	struct waiting w = new_call(id, pid, data);
	int err = prepare(&w);

	if (err == 0 && w.local)
		err = bind_local(&w);
	else if (err == 0 && !call_proxy_is_awaited(id))
		err = -EPERM;
	else if (err == 0 && bind(w.fd, (const void *)&w.address, w.len) < 0)
		err = -errno;
	finish(&w, err, answer);
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

void
connect_proxy_open(struct call_proxy_means *m, bool of_host)
{
	_cleanup_close_ int diag = own_sockets_open();
	_cleanup_close_ int route = own_ports_guards() ? own_ports_open() : -1;
	int any = diag >= 0 ? diag : route;
	uint64_t network;

	if (any < 0 || (route < 0 && own_ports_guards()) ||
	    !can_take_descriptors(any) ||
	    option(any, SO_NETNS_COOKIE, &network, sizeof(network)) < 0)
		return;
	host = of_host;
	m->bind = host && diag >= 0;
	m->diag = steal_fd(&diag);
	m->route = steal_fd(&route);
}

void
connect_proxy_landlock(bool given)
{
	landlocked = given;
}
