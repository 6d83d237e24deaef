/* SPDX-License-Identifier: ISC */
/*
 * The proxy's process: its filters, its loop, and what its parts need of a
 * command.
 *
 * Sources: seccomp_unotify(2), process_vm_readv(2), openat2(2).
 */
#include "call_proxy.h"

#include <linux/capability.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "clone_into.h"
#include "filter.h"
#include "heap.h"
#include "seqpacket.h"
#include "socket_calls.h"

/* Not in the headers of Debian 12. */
#define NR_fchmodat2		  452
#define NR_landlock_restrict_self 446
#define STACK_BYTES		  (64u << 10)
#define RECORD_BYTES		  512 /* the kernel's structs: 80 and 24 today */
#define SOCKET_TYPE_BITS	  0xf

static _Alignas(HEAP_PAGE_BYTES) char stack[STACK_BYTES];

/* The sandbox's end of the socket between the two, which sees there that the
 * proxy has ended. */
static int partner = -1;

/* --- the filter that commands load -------------------------------------- */

#define IF(value, to)	  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (to), 0)
#define UNLESS(value, to) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (to))
#define ANSWER(action)	  BPF_STMT(BPF_RET | BPF_K, (action))

#ifdef SYS_chmod
#define FIRST_CHMOD SYS_chmod
#else
#define FIRST_CHMOD SYS_fchmod
#endif

/* Each part goes on behind its end with what it does not ask about. */
#define HAND_OVER(number)                                                      \
	FILTER_LOAD(arch), UNLESS(FILTER_NATIVE, 3), FILTER_LOAD(nr),          \
	    UNLESS((number), 1), ANSWER(SECCOMP_RET_USER_NOTIF)

static const struct sock_filter connect_rows[] = { HAND_OVER(SYS_connect) };
static const struct sock_filter bind_rows[] = { HAND_OVER(SYS_bind) };

static const struct sock_filter datagram_rows[] = {
	FILTER_LOAD(arch),
	UNLESS(FILTER_NATIVE, 9),
	FILTER_LOAD(nr),
	IF(SYS_socketpair, 1),
	UNLESS(SYS_socket, 6),
	FILTER_LOAD(args[0]),
	UNLESS(AF_UNIX, 4),
	FILTER_LOAD(args[1]),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE_BITS),
	UNLESS(SOCK_DGRAM, 1),
	ANSWER(SECCOMP_RET_USER_NOTIF),
};

/*
 * Asks about the set-group-id bit alone: a mode that also has the set-user-id
 * bit is refused by the command's own filter, whose answer wins.
 */
static const struct sock_filter chmod_rows[] = {
	FILTER_LOAD(arch),
	UNLESS(FILTER_NATIVE, 12),
	FILTER_LOAD(nr),
	IF(FIRST_CHMOD, 4),
	IF(SYS_fchmod, 3),
	IF(SYS_fchmodat, 4),
	IF(NR_fchmodat2, 3),
	BPF_STMT(BPF_JMP | BPF_JA, 6),
	FILTER_LOAD(args[1]), /* chmod, fchmod */
	BPF_STMT(BPF_JMP | BPF_JA, 1),
	FILTER_LOAD(args[2]), /* fchmodat, fchmodat2 */
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, S_ISUID | S_ISGID),
	UNLESS(S_ISGID, 1),
	ANSWER(SECCOMP_RET_USER_NOTIF),
};

static const struct sock_filter last_row = ANSWER(SECCOMP_RET_ALLOW);

#define ROWS_MAX                                                               \
	(nitems(connect_rows) + nitems(bind_rows) + nitems(datagram_rows) +    \
	    nitems(chmod_rows) + 1)

static int chmod_proxy_take(
    uint64_t id, pid_t pid, const struct seccomp_data *data);
static int pair_proxy_take(
    uint64_t id, pid_t pid, const struct seccomp_data *data);
static void socket_proxy_take(uint64_t id, const struct seccomp_data *data);

static size_t
write_filter(
    struct sock_filter code[ROWS_MAX], const struct call_proxy_means *m)
{
	const struct {
		bool wanted;
		const struct sock_filter *rows;
		size_t count;
	} parts[] = {
		{ call_proxy_connects(m), connect_rows, nitems(connect_rows) },
		{ m->bind, bind_rows, nitems(bind_rows) },
		{ m->diag >= 0, datagram_rows, nitems(datagram_rows) },
		{ m->chmod, chmod_rows, nitems(chmod_rows) },
		{ true, &last_row, 1 },
	};
	size_t n = 0;

	for (size_t i = 0; i < nitems(parts); i++) {
		if (!parts[i].wanted)
			continue;
		memcpy(code + n, parts[i].rows,
		    parts[i].count * sizeof(*parts[i].rows));
		n += parts[i].count;
	}
	return n;
}

/* --- what its parts need of a command ----------------------------------- */

/*
 * Copies a string from the command's memory once. Each read ends at the end of
 * a page, because the next page may not exist.
 */
static int
call_proxy_read_path(pid_t pid, uint64_t from, char text[PATH_MAX])
{
	size_t len = 0;

	while (len < PATH_MAX) {
		size_t n = HEAP_PAGE_BYTES - (from + len) % HEAP_PAGE_BYTES;
		struct iovec to = { text + len,
			n < PATH_MAX - len ? n : PATH_MAX - len };
		struct iovec theirs = { (void *)(uintptr_t)(from + len),
			to.iov_len };
		ssize_t got = process_vm_readv(pid, &to, 1, &theirs, 1, 0);

		if (got <= 0)
			return got < 0 && errno != EFAULT ? -EPERM : -EFAULT;
		if (memchr(text + len, '\0', (size_t)got) != NULL)
			return 0;
		len += (size_t)got;
	}
	return -ENAMETOOLONG;
}

int
call_proxy_open_link(pid_t pid, const char *link)
{
	char name[48];
	int fd;

	snprintf(name, sizeof(name), "%d/%s", pid, link);
	fd = openat(CALL_PROXY_PROC_FD, name, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * For the parts of the proxy. `pid` is the thread that made a call.
 *
 * Opens with O_PATH the file of a descriptor of the command, or with AT_FDCWD
 * its working directory. Returns a descriptor or -errno.
 */
static int
call_proxy_open_theirs(pid_t pid, int fd)
{
	char link[32] = "cwd";
	int ours;

	if (fd < 0 && fd != AT_FDCWD)
		return -EBADF;
	if (fd != AT_FDCWD)
		snprintf(link, sizeof(link), "fd/%d", fd);
	ours = call_proxy_open_link(pid, link);
	return ours == -ENOENT && fd != AT_FDCWD ? -EBADF : ours;
}

/*
 * The C library implements fchmodat(AT_SYMLINK_NOFOLLOW) with this path.
 * Returns the descriptor's number, or -1.
 */
static int
descriptor_in(const char *path)
{
	static const char start[] = "/proc/self/fd/";
	const char *digits = path + strlen(start);
	size_t n;

	if (strncmp(path, start, strlen(start)) != 0)
		return -1;
	n = strspn(digits, "0123456789");
	return n > 0 && n < 9 && digits[n] == '\0' ? atoi(digits) : -1;
}

/*
 * Magic links of /proc are refused, because they would lead to the files of
 * this process.
 */
int
call_proxy_open(pid_t pid, int directory, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int from = -1;
	int fd;

	if (descriptor_in(path) >= 0)
		return call_proxy_open_theirs(pid, descriptor_in(path));
	if (*path != '/') {
		from = call_proxy_open_theirs(pid, directory);
		if (from < 0)
			return from;
	}
	fd = (int)syscall(SYS_openat2, from, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

bool
call_proxy_is_awaited(uint64_t id)
{
	return ioctl(CALL_PROXY_LISTENER_FD, SECCOMP_IOCTL_NOTIF_ID_VALID,
		   &id) == 0;
}

int
call_proxy_status_read(struct call_proxy_status *s, pid_t pid)
{
	char name[32];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(name, sizeof(name), "%d/status", pid);
	fd = openat(CALL_PROXY_PROC_FD, name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, s->text, CALL_PROXY_STATUS_BYTES);
	if (n <= 0)
		return -ESRCH;
	s->text[n] = '\0';
	return 0;
}

uint64_t
call_proxy_status_get(
    const struct call_proxy_status *s, const char *field, int base)
{
	const char *line = strstr(s->text, field);

	return line == NULL ? 0 : strtoull(line + strlen(field), NULL, base);
}

/* --- one call ----------------------------------------------------------- */

/* Returns false if nobody waits for it any more. */
static bool
answer(uint64_t id, int err)
{
	static union {
		struct seccomp_notif_resp r;
		char room[RECORD_BYTES];
	} a;

	memset(&a, 0, sizeof(a));
	a.r.id = id;
	a.r.error = err;
	return ioctl(CALL_PROXY_LISTENER_FD, SECCOMP_IOCTL_NOTIF_SEND, &a) == 0;
}

static void
serve_one(void)
{
	static union {
		struct seccomp_notif n;
		char room[RECORD_BYTES];
	} call;
	pid_t pid;

	memset(&call, 0, sizeof(call));
	/* Fails if the command was killed meanwhile; nobody waits then. */
	if (ioctl(CALL_PROXY_LISTENER_FD, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
		return;
	pid = (pid_t)call.n.pid;
	switch (call.n.data.nr) {
	case SYS_connect:
		socket_calls_connect(call.n.id, pid, &call.n.data, answer);
		break;
	case SYS_bind:
		socket_calls_bind(call.n.id, pid, &call.n.data, answer);
		break;
	case SYS_socket:
		socket_proxy_take(call.n.id, &call.n.data);
		break;
	case SYS_socketpair:
		answer(
		    call.n.id, pair_proxy_take(call.n.id, pid, &call.n.data));
		break;
	default:
		answer(
		    call.n.id, chmod_proxy_take(call.n.id, pid, &call.n.data));
	}
}

/* --- the process -------------------------------------------------------- */

static const struct sock_filter own_filter[] = {
	FILTER_LOAD(arch),
	UNLESS(FILTER_NATIVE, 1),
	BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
	FILTER_KILL,
	FILTER_LOAD(nr),
#ifdef SYS_poll
	FILTER_PERMIT(SYS_poll),
#endif
	FILTER_PERMIT(SYS_ppoll),
	FILTER_PERMIT(SYS_ioctl),
	FILTER_PERMIT(SYS_process_vm_readv),
	FILTER_PERMIT(SYS_process_vm_writev),
	FILTER_PERMIT(SYS_openat),
	FILTER_PERMIT(SYS_openat2),
	FILTER_PERMIT(SYS_read),
	FILTER_PERMIT(SYS_fstat),
#ifdef SYS_newfstatat
	FILTER_PERMIT(SYS_newfstatat),
#endif
	FILTER_PERMIT(SYS_fchmodat),
	FILTER_PERMIT(SYS_pidfd_open),
	FILTER_PERMIT(SYS_pidfd_getfd),
	FILTER_PERMIT(SYS_fcntl),
	FILTER_PERMIT(SYS_getsockopt),
	FILTER_PERMIT(SYS_socket),
	FILTER_PERMIT(SYS_socketpair),
	FILTER_PERMIT(SYS_connect),
	FILTER_PERMIT(SYS_shutdown),
	FILTER_PERMIT(SYS_getsockname),
	FILTER_PERMIT(SYS_sendto),
	FILTER_PERMIT(SYS_recvfrom),
	/* Of the child that binds a path, and for it. */
	FILTER_PERMIT(SYS_wait4),
	FILTER_PERMIT(SYS_umask),
	FILTER_PERMIT(SYS_fchdir),
	FILTER_PERMIT(SYS_chroot),
	FILTER_PERMIT(NR_landlock_restrict_self),
	FILTER_PERMIT(SYS_bind),
	FILTER_PERMIT(SYS_symlinkat),
	FILTER_PERMIT(SYS_unlinkat),
	FILTER_PERMIT(SYS_close),
	/* Where the kernel gives out no clock (vDSO), asking it is a call. */
	FILTER_PERMIT(SYS_clock_gettime),
	FILTER_PERMIT(SYS_restart_syscall),
	FILTER_PERMIT(SYS_exit_group),
	UNLESS(SYS_setsockopt, 6),
	FILTER_LOAD(args[1]),
	UNLESS(IPPROTO_IP, 3),
	FILTER_LOAD(args[2]),
	UNLESS(IP_BIND_ADDRESS_NO_PORT, 1),
	ANSWER(SECCOMP_RET_ALLOW),
	FILTER_KILL,
	UNLESS(SYS_clone, 3),
	FILTER_LOAD(args[0]),
	UNLESS(SOCKET_CALLS_CLONE, 1),
	ANSWER(SECCOMP_RET_ALLOW),
	FILTER_KILL,
};

static int
load(const struct sock_filter *code, size_t n, unsigned flags)
{
	const struct sock_fprog program = { (unsigned short)n,
		(struct sock_filter *)(uintptr_t)code };

	return (int)syscall(
	    SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/*
 * Keeps only the capability to look into commands and, if it binds sockets for
 * them, to enter their roots. It can change only what its user can change.
 */
static int
keep_capabilities(const struct call_proxy_means *m)
{
	const uint32_t few =
	    1u << CAP_SYS_PTRACE | (m->bind ? 1u << CAP_SYS_CHROOT : 0);
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	const struct __user_cap_data_struct kept[2] = { { .effective = few,
	    .permitted = few } };

	return (int)syscall(SYS_capset, &header, kept);
}

/* Returns false if the sandbox could not make a listener. */
static bool
receive_listener(void)
{
	struct pollfd sandbox = { .fd = CALL_PROXY_SANDBOX_FD,
		.events = POLLIN };
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds = 0;
	char byte;

	return poll(&sandbox, 1, -1) == 1 &&
	       seqpacket_recv(CALL_PROXY_SANDBOX_FD, &byte, 1, fds, &nfds) ==
		   1 &&
	       nfds == 1 && fds[0] == CALL_PROXY_LISTENER_FD;
}

struct given {
	int sandbox;
	const struct call_proxy_means *means;
};

static bool
place_descriptors(const struct given *g)
{
	const struct call_proxy_means *m = g->means;
	const int fds[CALL_PROXY_FDS] = {
		[CALL_PROXY_SANDBOX_FD] = g->sandbox,
		[CALL_PROXY_PROC_FD] = m->proc,
		[CALL_PROXY_DIAG_FD] = m->diag >= 0    ? m->diag
				       : m->route >= 0 ? m->route
						       : m->proc,
		[CALL_PROXY_LISTENER_FD] = -1,
		[CALL_PROXY_ROUTE_FD] = m->route,
		[CALL_PROXY_LANDLOCK_FD] = m->ruleset,
	};
	int high[CALL_PROXY_FDS];

	/* Each may have the number of another's place. */
	for (int i = 0; i < CALL_PROXY_FDS; i++)
		high[i] =
		    fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD, CALL_PROXY_FDS);
	for (int i = 0; i < CALL_PROXY_FDS; i++)
		if (fds[i] < 0)
			close(i);
		else if (high[i] < 0 || dup2(high[i], i) < 0)
			return false;
	close_from(CALL_PROXY_FDS);
	socket_calls_begin(m);
	/* connect(2) has no room for a directory beside the path. */
	return !call_proxy_connects(m) || fchdir(CALL_PROXY_PROC_FD) == 0;
}

/* Serves until nobody is left who could ask: commands outlive the sandbox. */
static void
serve_calls(void)
{
	static struct pollfd pfds[1 + SOCKET_CALLS_WAITING_MAX] = {
		{ .fd = CALL_PROXY_LISTENER_FD, .events = POLLIN },
	};
	size_t n = 1;
	int pause = -1;

	while (poll(pfds, n, pause) >= 0) {
		socket_calls_look(pfds + 1, answer);
		if (pfds[0].revents & POLLIN)
			serve_one();
		else if (pfds[0].revents != 0)
			break;
		n = 1 + socket_calls_watch(pfds + 1, &pause);
	}
}

ON_OWN_STACK static int
serve(void *arg)
{
	const struct given *g = arg;

	prctl(PR_SET_NAME, "execd-calls");
	if (!place_descriptors(g) || !receive_listener() ||
	    keep_capabilities(g->means) < 0 ||
	    load(own_filter, nitems(own_filter), 0) < 0)
		_exit(1);
	serve_calls();
	_exit(0);
}

/*
 * Tells whether the kernel does not support the filter or a container already
 * has one.
 */
static bool
is_missing(int err)
{
	return err == EINVAL || err == ENOSYS || err == EBUSY;
}

/* Before Linux 5.19 a signal ends a wait for the proxy (call_signals.c). */
static int
load_listener(const struct sock_filter *code, size_t n)
{
	int listener = load(code, n,
	    SECCOMP_FILTER_FLAG_NEW_LISTENER |
		SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	return listener < 0 && errno == EINVAL
		   ? load(code, n, SECCOMP_FILTER_FLAG_NEW_LISTENER)
		   : listener;
}

int
call_proxy_start(const struct call_proxy_means *m, bool *there)
{
	_cleanup_close_ int sandbox = -1, listener = -1;
	struct sock_filter code[ROWS_MAX];
	int pair[2], err = seqpacket_pair(pair);
	struct given given = { -1, m };
	pid_t pid;

	*there = false;
	if (err < 0)
		return err;
	sandbox = pair[0];
	given.sandbox = pair[1];
	/*
	 * The process is a child of the runner, like everything that a sandbox
	 * starts. It is cloned before the filter is loaded, because nobody
	 * would answer its own calls.
	 */
	pid = clone(serve, stack + STACK_BYTES, CLONE_PARENT | SIGCHLD, &given);
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (err < 0)
		return err;
	listener = load_listener(code, write_filter(code, m));
	if (listener < 0)
		return is_missing(errno) ? 0 : -errno;
	err = seqpacket_send(sandbox, "", 1, &listener, 1);
	if (err < 0)
		return err;
	partner = steal_fd(&sandbox);
	*there = true;
	return 0;
}

bool
call_proxy_is_gone(void)
{
	struct pollfd pfd = { .fd = partner };

	return partner >= 0 && poll(&pfd, 1, 0) == 1;
}

/*
 * Changes modes of directories for commands. A command chooses the path, the
 * content of its memory and the time of its death.
 */

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
static int
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

/* --- datagram sockets --------------------------------------------------- */

/* Gives the command a descriptor, with `how` as its answer. Returns its number
 * there, or -errno. */
static int
give(uint64_t id, int fd, int flags, uint32_t how)
{
	struct seccomp_notif_addfd a = {
		.id = id,
		.flags = how,
		.srcfd = (uint32_t)fd,
		.newfd_flags = flags & SOCK_CLOEXEC ? O_CLOEXEC : 0,
	};
	int theirs =
	    ioctl(CALL_PROXY_LISTENER_FD, SECCOMP_IOCTL_NOTIF_ADDFD, &a);

	return theirs < 0 ? -errno : theirs;
}

/* Writes the two numbers where the command wants them. */
static int
tell_pair(pid_t pid, uint64_t to, int numbers[2])
{
	struct iovec ours = { numbers, 2 * sizeof(*numbers) };
	struct iovec theirs = { (void *)(uintptr_t)to, ours.iov_len };

	return process_vm_writev(pid, &ours, 1, &theirs, 1, 0) ==
		       (ssize_t)ours.iov_len
		   ? 0
		   : -EFAULT;
}

/* Returns what is made in the place of a type of datagrams, or -EINVAL. */
static int
type_instead(int flags)
{
	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return -EINVAL;
	return SOCK_SEQPACKET | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK);
}

static int
pair_proxy_take(uint64_t id, pid_t pid, const struct seccomp_data *data)
{
	int flags = (int)data->args[1] & ~SOCKET_TYPE_BITS;
	int type = type_instead(flags);
	_cleanup_close_ int one = -1, other = -1;
	int pair[2], theirs[2];

	if (type < 0)
		return type;
	if (socketpair(AF_UNIX, type, (int)data->args[2], pair) < 0)
		return -errno;
	one = pair[0];
	other = pair[1];
	theirs[0] = give(id, one, flags, 0);
	theirs[1] = theirs[0] < 0 ? theirs[0] : give(id, other, flags, 0);
	return theirs[1] < 0 ? theirs[1]
			     : tell_pair(pid, data->args[3], theirs);
}

/* The number is the answer (SECCOMP_ADDFD_FLAG_SEND, Linux 5.14). */
static void
socket_proxy_take(uint64_t id, const struct seccomp_data *data)
{
	int flags = (int)data->args[1] & ~SOCKET_TYPE_BITS;
	int type = type_instead(flags), err = type;
	_cleanup_close_ int fd = -1;

	if (type >= 0) {
		fd = socket(AF_UNIX, type, (int)data->args[2]);
		err = fd < 0 ? -errno
			     : give(id, fd, flags, SECCOMP_ADDFD_FLAG_SEND);
	}
	if (err < 0)
		answer(id, err == -EMFILE && fd < 0 ? -ENOBUFS : err);
}
