/* SPDX-License-Identifier: ISC */
/*
 * Connects and binds sockets for commands. The proxy trusts no command: a
 * command chooses the socket, the address, the file behind a path, and the time
 * of its death, and changes all of them while the proxy looks.
 */
#include "socket_calls.h"

#include <arpa/inet.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "call_proxy.h"
#include "clone_into.h"
#include "command_filter.h"
#include "descriptors.h"
#include "heap.h"
#include "loopback.h"
#include "own_ports.h"
#include "view.h"

/* Not in the headers of Debian 12. */
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#define PIDFD_OF_THREAD O_EXCL /* Linux 6.9 */

#define LOOK_AGAIN_MS 10 /* at a call that waits; 1 ms for each if more do */
#define LOOKS_AT_ONCE 16 /* before the next call is served */
#define OWN_FDS	      64 /* and two for each call that waits */
#define STACK_BYTES   (16u << 10)
#define WAITS	      1 /* the call is not decided */
#define PATH_BYTES    (sizeof(((struct sockaddr_un *)0)->sun_path) + 1)

/* One call. It is kept while it waits, as a blocking connect(2) does. */
struct waiting {
	uint64_t id; /* 0: the place is free */
	int fd;	     /* duplicate of the command's socket */
	int target;  /* what the path led to; -1: no path */
	struct call_made made;
	pid_t process; /* that of the thread, once it waits */
	bool local;    /* a UNIX socket: asked again; else: watched */
	int64_t end;   /* in ms, of SO_SNDTIMEO; 0: never */
	int64_t due;   /* in ms, when it is looked at if nothing happens */
	struct sockaddr_storage address;
	socklen_t len;
};

static struct waiting waiting[SOCKET_CALLS_WAITING_MAX];
static size_t places_max;    /* so many of them are used at most */
static size_t places;	     /* behind these, all of waiting[] are free */
static uint64_t own_network; /* cookie of the sandbox's network namespace */
static bool host;	     /* that of the host is used */
static bool landlocked;	     /* CALL_PROXY_LANDLOCK_FD is a ruleset */
static bool redirected;	     /* as in struct call_proxy_means */
static _Alignas(HEAP_PAGE_BYTES) char bind_stack[STACK_BYTES];

/* --- the command's socket and address ----------------------------------- */

/* Returns the thread group of a thread; 0: it has gone. */
static pid_t
process_of(pid_t pid)
{
	struct call_proxy_status s;

	return call_proxy_status_read(&s, pid) < 0
		   ? 0
		   : (pid_t)call_proxy_status_get(&s, "\nTgid:", 10);
}

/* Returns a descriptor of the thread's process, which has its descriptors. */
static int
open_process(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, PIDFD_OF_THREAD);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 && (errno == EINVAL || errno == ENOENT))
		fd = (int)syscall(SYS_pidfd_open, process_of(pid), 0);
	return fd < 0 ? -errno : fd;
}

static int
duplicate(pid_t pid, int theirs)
{
	_cleanup_close_ int process = open_process(pid);
	int fd;

	if (process < 0)
		return process == -EMFILE ? process : -EPERM;
	fd = (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
	if (fd < 0)
		return errno == EBADF || errno == EMFILE ? -errno : -EPERM;
	return fd;
}

static int
read_address(struct waiting *w)
{
	int len = (int)w->made.call.args[2];
	struct iovec to = { &w->address, 0 };
	struct iovec theirs = { (void *)(uintptr_t)w->made.call.args[1], 0 };

	if (len < 0 || (size_t)len > sizeof(w->address))
		return -EINVAL;
	w->len = (socklen_t)len;
	to.iov_len = theirs.iov_len = (size_t)len;
	if (len > 0 && process_vm_readv(w->made.pid, &to, 1, &theirs, 1, 0) !=
			   (ssize_t)len)
		return -EFAULT;
	w->made.asked = w->address;
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

/* The path of an address need not end with a NUL byte. */
static void
copy_path(const struct waiting *w, char path[PATH_BYTES])
{
	const struct sockaddr_un *a = (const void *)&w->address;
	size_t n = w->len - offsetof(struct sockaddr_un, sun_path);

	memset(path, 0, PATH_BYTES);
	memcpy(path, a->sun_path, n < PATH_BYTES ? n : PATH_BYTES - 1);
}

/* Opens what the path leads to, and puts that file in the path's place. */
static int
open_target(struct waiting *w)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char path[PATH_BYTES];
	struct stat st;
	size_t n;

	if (w->len > sizeof(a))
		return -EINVAL;
	copy_path(w, path);
	w->target = call_proxy_open(w->made.pid, AT_FDCWD, path, 0);
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
	if (own_sockets_have(w->made.pid, w->target, &st))
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
look_at(const struct waiting *w, bool ready)
{
	int err = 0;

	if (ready)
		return option(w->fd, SO_ERROR, &err, sizeof(err)) < 0 ? -EPERM
								      : -err;
	err = w->local ? try(w) : WAITS;
	if (err != WAITS)
		return err;
	if (is_over(w))
		return w->local ? -EAGAIN : -EINPROGRESS;
	err = call_signals_interrupt(w->made.pid, w->process, w->end != 0);
	return err < 0 ? err : WAITS;
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

	w->fd = duplicate(w->made.pid, (int)w->made.call.args[0]);
	if (w->fd < 0)
		return w->fd;
	err = check_network(w->fd);
	if (err == 0)
		err = read_address(w);
	option(w->fd, SO_COOKIE, &w->made.socket, sizeof(w->made.socket));
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

/* --- whose a connection is ----------------------------------------------- */

/* Returns the resolver of the command, of which its resolv.conf tells: this
 * file is ours, and no command can cover it. 0: it has none. */
static uint32_t
resolver_of(pid_t pid)
{
	const struct open_how how = { .flags = O_RDONLY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	_cleanup_close_ int root = call_proxy_open_link(pid, "root");
	_cleanup_close_ int fd = -1;
	char text[256];
	const char *at;
	struct in_addr address;
	ssize_t n = -1;

	if (root >= 0)
		fd = (int)syscall(
		    SYS_openat2, root, "etc/resolv.conf", &how, sizeof(how));
	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strstr(text, "\nnameserver ");
	if (at == NULL || sscanf(at, "\nnameserver %15[0-9.]", text) != 1 ||
	    inet_pton(AF_INET, text, &address) != 1)
		return 0;
	return address.s_addr;
}

/* Tells whether the address stands for no name and is not the loopback's. One
 * of IPv4 is mapped for a socket of IPv6. */
static bool
is_elsewhere(const struct waiting *w)
{
	const struct sockaddr_in *v4 = (const void *)&w->address;
	const struct sockaddr_in6 *v6 = (const void *)&w->address;
	uint32_t to;

	if (v4->sin_family == AF_INET && w->len >= sizeof(*v4))
		to = ntohl(v4->sin_addr.s_addr);
	else if (v6->sin6_family == AF_INET6 && w->len >= sizeof(*v6) &&
		 IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		to = ntohl(v6->sin6_addr.s6_addr32[3]);
	else
		return false;
	return to >> 24 != IN_LOOPBACKNET &&
	       (to ^ LOOPBACK_NAMES) >> (32 - LOOPBACK_NAMES_BITS) != 0;
}

/*
 * An address that stands for no name does not tell whose the connection is, so
 * its source does (redirect.h). The port is chosen with the connection, so that
 * a command that makes many does not run out of them. A socket that is bound
 * keeps its address, and is refused.
 */
static void
set_source(const struct waiting *w)
{
	const int on = 1;
	int type = 0;
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_addr = { .s6_addr = { [10] = 0xff, 0xff } } };

	if (option(w->fd, SO_TYPE, &type, sizeof(type)) < 0 ||
	    type != SOCK_STREAM || !is_elsewhere(w))
		return;
	in.sin_addr.s_addr = resolver_of(w->made.pid);
	in6.sin6_addr.s6_addr32[3] = in.sin_addr.s_addr;
	if (in.sin_addr.s_addr == 0 ||
	    setsockopt(w->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
		sizeof(on)) < 0)
		return;
	if (bind(w->fd, (const void *)&in, sizeof(in)) < 0)
		bind(w->fd, (const void *)&in6, sizeof(in6));
}

/* --- one call ----------------------------------------------------------- */

static struct waiting
new_call(uint64_t id, pid_t pid, const struct seccomp_data *data)
{
	return (struct waiting){ .id = id,
		.fd = -1,
		.target = -1,
		.made = { .pid = pid, .call = *data } };
}

static bool
is_done_before(const struct waiting *w, int err)
{
	if (w->made.call.nr == SYS_bind)
		return err == -EINVAL || err == -EADDRINUSE;
	return err == -EISCONN || err == -EALREADY;
}

/* What was carried out for the same call is not done again. */
static int
carry_out(struct waiting *w, int (*act)(struct waiting *w))
{
	const struct call_answer *before;
	int err = prepare(w);

	if (err < 0)
		return err;
	before = call_signals_find(&w->made);
	if (before != NULL && !before->heard)
		return before->err;
	err = act(w);
	if (before == NULL || !is_done_before(w, err))
		return err;
	return err == -EISCONN ? 0 : before->err;
}

static void
finish(struct waiting *w, int err, socket_calls_answer *answer)
{
	bool heard;

	/* The command may close its socket as soon as it hears, and another one
	 * here would keep the port. */
	if (w->target >= 0)
		close(w->target);
	if (w->fd >= 0)
		close(w->fd);
	/* The descriptors that ran out are the proxy's. */
	heard = answer(w->id, err == -EMFILE ? -ENOBUFS : err);
	if (err == 0 || err == -EINPROGRESS)
		call_signals_keep(&w->made, err, heard);
	w->id = 0;
}

/* --- connect(2) --------------------------------------------------------- */

static int
connect_now(struct waiting *w)
{
	int err = judge(w);

	/* The number of a process that was killed may be another's now. */
	if (err < 0)
		return err;
	if (redirected && !w->local)
		set_source(w);
	return call_proxy_is_awaited(w->id) ? try(w) : -EPERM;
}

static int64_t
next_look(void)
{
	return now_ms() +
	       (int64_t)(places > LOOK_AGAIN_MS ? places : LOOK_AGAIN_MS);
}

/* Gives a call a place to wait, or says why there is none. */
static int
wait_for(struct waiting *w)
{
	size_t place = places, of_process = 0;

	w->process = process_of(w->made.pid);
	for (size_t i = places; i-- > 0;)
		if (waiting[i].id == 0)
			place = i;
		else if (waiting[i].process == w->process)
			of_process++;
	if (place >= places_max || of_process >= SOCKET_CALLS_OF_PROCESS)
		return -ENOBUFS;
	if (place == places)
		places++;
	set_end(w);
	w->due = next_look();
	waiting[place] = *w;
	return WAITS;
}

void
socket_calls_connect(uint64_t id, pid_t pid, const struct seccomp_data *data,
    socket_calls_answer *answer)
{
	struct waiting w = new_call(id, pid, data);
	int err = carry_out(&w, connect_now);

	if (err == WAITS)
		err = wait_for(&w);
	if (err != WAITS)
		finish(&w, err, answer);
}

size_t
socket_calls_watch(struct pollfd pfds[SOCKET_CALLS_WAITING_MAX], int *pause)
{
	int64_t first = INT64_MAX, now = now_ms();

	while (places > 0 && waiting[places - 1].id == 0)
		places--;
	for (size_t i = 0; i < places; i++) {
		const struct waiting *w = &waiting[i];
		int64_t due = w->end != 0 && w->end < w->due ? w->end : w->due;

		/* poll(2) leaves out what is negative. */
		pfds[i] = (struct pollfd){
			.fd = w->id != 0 && !w->local ? w->fd : -1,
			.events = POLLOUT,
		};
		if (w->id != 0 && due < first)
			first = due;
	}
	*pause = places == 0 ? -1 : first > now ? (int)(first - now) : 0;
	return places;
}

void
socket_calls_look(const struct pollfd pfds[SOCKET_CALLS_WAITING_MAX],
    socket_calls_answer *answer)
{
	int64_t now = now_ms();
	int left = LOOKS_AT_ONCE;

	for (size_t i = 0; i < places && left > 0; i++) {
		struct waiting *w = &waiting[i];
		bool ready = pfds[i].fd >= 0 && pfds[i].revents != 0;
		int err;

		if (w->id == 0 || (!ready && now < w->due && !is_over(w)))
			continue;
		left--;
		err = call_proxy_is_awaited(w->id) ? look_at(w, ready) : -ESRCH;
		if (err != WAITS)
			finish(w, err, answer);
		else
			w->due = next_look();
	}
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
 * A path where Landlock lets the command make files and links, but no sockets,
 * is one of the host's /tmp: a program outside would find the socket there
 * under the name of its own. So the socket is made in the sandbox's own
 * directory, and the path is a link to it, which leads nowhere outside. The
 * command could do both itself. A cookie is no other socket's, also not in
 * another sandbox.
 */
static int
bind_behind_link(const struct waiting *w)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char path[PATH_BYTES];
	int err;

	copy_path(w, path);
	snprintf(at.sun_path, sizeof(at.sun_path), VIEW_TMP "/.socket-%llx",
	    (unsigned long long)w->made.socket);
	if (symlinkat(at.sun_path, AT_FDCWD, path) < 0)
		return errno == EEXIST ? -EADDRINUSE : -EACCES;
	if (bind(w->fd, (const void *)&at, sizeof(at)) == 0)
		return 0;
	/* The name is taken if this very socket was bound before. */
	err = errno == EADDRINUSE || errno == EINVAL ? -EINVAL : -EACCES;
	unlinkat(AT_FDCWD, path, 0);
	return err;
}

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
	else if (bind(b->w->fd, (const void *)&b->w->address, b->w->len) == 0)
		b->err = 0;
	else
		b->err = errno == EACCES ? bind_behind_link(b->w) : -errno;
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
	    SOCKET_CALLS_CLONE, b);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ((volatile struct binding *)b)->err;
}

static int
bind_path(const struct waiting *w)
{
	_cleanup_close_ int root = call_proxy_open_link(w->made.pid, "root");
	_cleanup_close_ int cwd = call_proxy_open_link(w->made.pid, "cwd");
	struct call_proxy_status s;
	struct binding b = { w, root, cwd, 0, 0 };

	if (root < 0 || cwd < 0 ||
	    call_proxy_status_read(&s, w->made.pid) < 0 ||
	    !call_proxy_is_awaited(w->id))
		return -EPERM;
	b.umask = (mode_t)call_proxy_status_get(&s, "\nUmask:", 8);
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

static int
bind_now(struct waiting *w)
{
	if (w->local)
		return bind_local(w);
	if (!call_proxy_is_awaited(w->id))
		return -EPERM;
	return bind(w->fd, (const void *)&w->address, w->len) < 0 ? -errno : 0;
}

void
socket_calls_bind(uint64_t id, pid_t pid, const struct seccomp_data *data,
    socket_calls_answer *answer)
{
	struct waiting w = new_call(id, pid, data);

	finish(&w, carry_out(&w, bind_now), answer);
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
socket_calls_open(struct call_proxy_means *m, bool of_host)
{
	_cleanup_close_ int diag = own_sockets_open(of_host);
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
socket_calls_begin(const struct call_proxy_means *m)
{
	uint64_t fds =
	    descriptors_raise(OWN_FDS + 2 * SOCKET_CALLS_WAITING_MAX);

	landlocked = m->ruleset >= 0;
	redirected = m->redirected;
	places_max = fds > OWN_FDS ? (size_t)(fds - OWN_FDS) / 2 : 0;
	if (places_max > SOCKET_CALLS_WAITING_MAX)
		places_max = SOCKET_CALLS_WAITING_MAX;
}
