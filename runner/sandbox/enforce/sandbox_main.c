/* SPDX-License-Identifier: ISC */
/*
 * The sandbox's process: its namespaces and limits, and its loop. It handles
 * one request at a time. The first request is BUILD; if it fails, the sandbox
 * answers why and ends.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/utsname.h>

#include "base.h"
#include "call_proxy.h"
#include "inside.h"
#include "mounts.h"
#include "own_ports.h"
#include "redirect.h"
#include "socket_calls.h"
#include "userns.h"
#include "view.h"

/* Enters the namespaces of a sandbox, and sets limits there. */

/*
 * userns is a user namespace that the caller's user owns, or -1 to make a new
 * one. Then the caller enters its own mount, ipc and uts namespaces and,
 * without `network`, a network namespace that has a loopback interface and
 * nothing else (loopback.h). Afterwards the caller has capabilities in these
 * namespaces only. Returns 0, or -errno with *step. *none: no user namespace
 * can be made here, and nothing has changed.
 */
static int
userns_enter(int userns, bool network, bool *none, const char **step)
{
	int err = 0;

	*none = false;
	*step = "entering the session's user namespace";
	if (userns < 0)
		err = userns_enter_new(none, step);
	else if (setns(userns, CLONE_NEWUSER) < 0)
		err = -errno;
	if (err < 0)
		return err;
	*step = "new mount, ipc and uts namespaces";
	if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return -errno;
	*step = "a new network namespace";
	if (network)
		return 0;
	return unshare(CLONE_NEWNET) < 0 ? -errno : loopback_prepare(step);
}

/* --- /proc -------------------------------------------------------------- */

static int
await(pid_t pid)
{
	int status;

	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (pid < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* Only in its own pid namespace may a process mount a /proc. */
static int
try_proc(void)
{
	const char *step;
	pid_t pid;

	if (userns_enter_new(NULL, &step) < 0)
		return 0;
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | SIGCHLD,
	    NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(mount("proc", "/proc", "proc",
			  MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2") < 0
			  ? errno
			  : 0);
	return await(pid);
}

/*
 * A child tries whether a command in a new user namespace could mount a
 * /proc of its own. The kernel refuses it with EPERM where something is mounted
 * over parts of /proc, as container engines do. Returns 0 or -errno; 0 also if
 * there can be no user namespace, because userns_enter() says that. Changes
 * nothing.
 */
static int
userns_try_proc(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(-try_proc());
	return await(pid);
}

/* --- limits ------------------------------------------------------------- */

/*
 * Limits what the kernel counts per user, also inside a sandbox (namespaces(7),
 * "The /proc/sys/user directory"). A limit applies in the namespace where it is
 * written. What is used there is still charged to the user outside.
 */

static int
read_number(const char *path, unsigned long *n)
{
	char text[32], *end;
	ssize_t len = read_whole(AT_FDCWD, path, text, sizeof(text));

	if (len < 0)
		return (int)len;
	*n = strtoul(text, &end, 10);
	return end == text ? -EINVAL : 0;
}

static int
write_number(const char *path, unsigned long n)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu\n", n);
	return write_whole(AT_FDCWD, path, text);
}

/*
 * Limits the inotify instances and watches in the caller's user namespace to a
 * part of what its user may have. The rest stays for the session's own fs/watch
 * and for the user's other programs. The caller needs capabilities in its user
 * namespace. If the kernel or the host's /proc does not permit it, a warning is
 * logged and nothing is limited.
 */
static void
shared_counts_limit(void)
{
	static const struct {
		const char *of_user, *here;
		unsigned long part;
	} counts[] = {
		{ "/proc/sys/fs/inotify/max_user_instances",
		    "/proc/sys/user/max_inotify_instances", 4 },
		{ "/proc/sys/fs/inotify/max_user_watches",
		    "/proc/sys/user/max_inotify_watches", 2 },
	};

	for (size_t i = 0; i < nitems(counts); i++) {
		unsigned long n = 0;
		int err = read_number(counts[i].of_user, &n);

		if (err == 0)
			err = write_number(counts[i].here, n / counts[i].part);
		if (err < 0)
			log_warn(err,
			    "%s: sandboxed commands may use up the limit of "
			    "their user",
			    counts[i].here);
	}
}

/* The devices, and what make_ruleset() of inside.c adds. */
#define WRITABLE_MORE (9 + 2)

static struct inside inside = { .channel = CONTROL_FD };
static void (*run_files)(void);
static struct plan plan; /* the plan of BUILD, without placeholders */

static void
reply_with(const struct sandbox_answer *a, const int *fds, size_t nfds)
{
	struct buf b;

	buf_init(&b, SANDBOX_MESSAGE_MAX);
	sandbox_answer_put(&b, a);
	if (sandbox_send(CONTROL_FD, &b, fds, nfds, NULL) < 0)
		exit(0); /* the runner is gone */
	buf_clear(&b);
}

static void
reply(const struct sandbox_answer *a)
{
	reply_with(a, NULL, 0);
}

/* --- BUILD -------------------------------------------------------------- */

static int
add_writable(int fd, bool scratch)
{
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	inside.writable[inside.nwritable++] =
	    (struct command_landlock_place){ fd, S_ISDIR(st.st_mode), scratch };
	return 0;
}

/*
 * The last three are left out where there is no view, because two of them
 * belong to the host and are shared.
 */
static int
open_devices(void)
{
	static const char *const devices[] = { "/dev/null", "/dev/zero",
		"/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
		"/dev/pts", "/dev/shm", VIEW_TMP };
	size_t n = nitems(devices) - (inside.landlock_only ? 3 : 0);
	int err = 0;

	for (size_t i = 0; i < n && err == 0; i++) {
		err = add_writable(mounts_open(AT_FDCWD, devices[i]), false);
		if (err == -ENOENT)
			err = 0;
	}
	return err;
}

/*
 * Opens what commands may write to: the writable roots and devices, in the view
 * or, without one, on the host as the resolver saw them.
 */
static int
open_writable(void)
{
	size_t n = plan.count + WRITABLE_MORE;
	int err;

	inside.writable = xcalloc(n, sizeof(*inside.writable));
	err = open_devices();
	for (size_t i = 0; i < plan.count && err == 0; i++) {
		const struct plan_mount *m = &plan.mounts[i];

		if (plan_is_writable(m))
			err = add_writable(inside.landlock_only
					       ? view_open_host(m)
					       : mounts_open(AT_FDCWD, m->path),
			    m->scratch);
	}
	return err;
}

static int
prepare_landlock(const char **step)
{
	static char text[VIEW_STEP_MAX];
	int err;

	*step = "Landlock";
	err = command_landlock_abi();
	if (err < 0)
		return err;
	inside.landlock_abi = (unsigned)err;
	if (inside.landlock_only && err < SANDBOX_LANDLOCK_ONLY_ABI) {
		snprintf(text, sizeof(text),
		    "landlock-only: Landlock ABI %d, at least %d is needed",
		    err, SANDBOX_LANDLOCK_ONLY_ABI);
		*step = text;
		return -EOPNOTSUPP;
	}
	if (inside.landlock_abi == 0) {
		log_warn(0, "this kernel has no Landlock; sandboxes do "
			    "without it, and have a private /tmp");
		return 0;
	}
	inside.restrict_files = plan.base != PLAN_BASE_WRITE;
	if (inside_needs_no_landlock(&inside)) {
		inside.landlock_empty = true;
		return 0;
	}
	if (inside.restrict_files) {
		err = open_writable();
		if (err < 0)
			return err;
	} else {
		inside.writable =
		    xcalloc(WRITABLE_MORE, sizeof(*inside.writable));
	}
	return 0;
}

/*
 * Before Linux 4.8 a tracer could change a call after the filter had seen it.
 */
static bool
filters_see_traced_calls(void)
{
	struct utsname u;
	unsigned major, minor;

	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 4 || (major == 4 && minor >= 8);
}

static const struct call_proxy_means no_proxy = {
	.proc = -1, .diag = -1, .route = -1, .ruleset = -1
};

/*
 * The proxy is not used if a command could have another root or make 32-bit
 * calls. Then set-id bits are refused on directories, too, UNIX sockets are
 * pairs only, and execd's own ports are in reach. With unix_allow a command
 * gets out of its sandbox anyway.
 */
static void
open_means(const struct sandbox_options *o, struct call_proxy_means *m)
{
	if (inside.landlock_only || o->allow_32bit || o->allow_nested_userns)
		return;
	if (!o->unix_allow)
		socket_calls_open(m, inside.network);
	m->chmod = !o->allow_setid;
	/* The host's or the session's /proc, which shows all commands. */
	if (m->chmod || call_proxy_connects(m))
		m->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void
close_means(const struct call_proxy_means *m)
{
	const int fds[] = { m->proc, m->diag, m->route, m->ruleset };

	for (size_t i = 0; i < nitems(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int
prepare_filters(const struct sandbox_options *o,
    const struct call_proxy_means *m, const char **step)
{
	struct command_filter_options f = {
		.network = inside.network,
		.loopback = inside.loopback,
		.own_unix = m->proc >= 0 && m->diag >= 0,
		.no_fast_open = own_ports_guards(),
		.unix_allow = o->unix_allow,
		.allow_32bit = o->allow_32bit,
		.allow_setid = o->allow_setid,
		.ask_setgid = m->proc >= 0 && m->chmod,
		.allow_nested_userns =
		    o->allow_nested_userns && !inside.landlock_only,
		.allow_ptrace = filters_see_traced_calls(),
		.no_view = inside.landlock_only,
		.log = o->log,
	};

	int err;

	*step = "compiling the seccomp filter";
	err = command_filter_compile(&inside.filter, &f);
	if (err < 0 || !inside.landlock_only) {
		inside.files_filter = inside.filter;
		return err;
	}
	/*
	 * Commands may change modes, because a filter cannot know which file
	 * they mean. The file helper may not do so by name.
	 */
	f.no_chmod = true;
	return command_filter_compile(&inside.files_filter, &f);
}

/*
 * Tries the /proc before namespaces are entered, because nobody gets out of
 * them again.
 */
static int
enter_namespaces(const struct sandbox_options *o, struct sandbox_answer *a,
    const char **step)
{
	a->no_proc =
	    o->try_proc && view_has_proc(&plan) && userns_try_proc() == -EPERM;
	if (!a->no_proc)
		return userns_enter(o->userns ? SANDBOX_USERNS_FD : -1,
		    plan.network, &a->no_namespaces, step);
	a->no_namespaces = true;
	*step = "mounting its own /proc";
	return -EPERM;
}

/*
 * Enters namespaces. If there can be none and the plan needs none, only changes
 * to "/".
 */
static int
enter(const struct sandbox_options *o, struct sandbox_answer *a,
    const char **step)
{
	int err = enter_namespaces(o, a, step);

	inside.loopback = err == 0 && !plan.network;
	if (err == 0 || !a->no_namespaces || !o->landlock_only ||
	    geteuid() == 0)
		return err;
	inside.landlock_only = true;
	*step = "landlock-only: the root directory";
	return chdir("/") < 0 ? -errno : 0;
}

/*
 * If the kernel cannot hand calls to a proxy, the filter refuses them instead.
 */
static int
start_proxy(const struct sandbox_options *o, struct call_proxy_means *m,
    const char **step)
{
	bool there;
	int err = 0;

	if (m->proc < 0)
		return 0;
	*step = "the proxy for calls of commands";
	if (m->bind)
		err = m->ruleset = inside_sockets_ruleset(&inside);
	if (err >= 0 || err == -ENOMSG)
		err = call_proxy_start(m, &there);
	if (err < 0)
		return err;
	inside.own_unix = there && m->diag >= 0;
	inside.guards_ports = there && m->route >= 0;
	if (there)
		return 0;
	command_filter_clear(&inside.filter);
	return prepare_filters(o, &no_proxy, step);
}

/* Without names a command that knows no proxy reaches nothing, as the answer to
 * its start says. */
static bool
can_serve_names(const struct sandbox_options *o)
{
	int err;

	if (!o->listed || !inside.loopback)
		return false;
	err = view_has_resolver() ? loopback_add_names() : -ENOENT;
	if (err < 0)
		log_warn(err, "a view in which names cannot be resolved: "
			      "programs that know no proxy reach no listed "
			      "host");
	return err == 0;
}

/* `ports` is a descriptor for own_ports_take(), or -1. */
static int
build(const struct sandbox_options *o, int ports, struct sandbox_answer *a)
{
	struct call_proxy_means means = no_proxy;
	const char *what = "";
	int err;

	inside.options = *o;
	inside.network = plan.network;
	err = enter(o, a, &what);
	if (err == 0 && plan.network && !o->unix_allow && ports >= 0) {
		what = "execd's own ports";
		err = own_ports_take(ports);
	}
	if (err == 0 && !inside.landlock_only)
		shared_counts_limit();
	inside.proc = !inside.landlock_only && view_has_proc(&plan);
	inside.shows_group = !inside.landlock_only && view_has_group(&plan);
	inside.terminals = !inside.landlock_only && view_has_dev(&plan);
	if (err == 0)
		open_means(o, &means);
	if (err == 0)
		err = prepare_filters(o, &means, &what);
	if (err == 0 && !inside.landlock_only) {
		err = view_build(&plan, o->shm_bytes, a->step);
		what = a->step;
	}
	a->names = err == 0 && can_serve_names(o);
	if (a->names && o->redirected) {
		what = "transparent TCP (nf_tables)";
		err = redirect_prepare();
		means.redirected = true;
	}
	a->has_tmp = err == 0 && !inside.landlock_only &&
		     access(VIEW_TMP, W_OK | X_OK) == 0;
	if (err == 0)
		err = prepare_landlock(&what);
	if (err == 0)
		err = inside_prepare(&inside, &what);
	/*
	 * Comes after the view is complete, because the proxy's filter stays in
	 * force.
	 */
	if (err == 0)
		err = start_proxy(o, &means, &what);
	close_means(&means);
	if (what != a->step)
		snprintf(a->step, sizeof(a->step), "%s", what);
	return err;
}

static bool
take_build(struct buf_reader *r, const int *fds, size_t nfds)
{
	struct sandbox_answer a = { .enforcing = true };
	struct sandbox_options o;

	if (sandbox_build_get(r, &o, &plan) < 0 || nfds != o.guards_ports)
		log_fatal("impossible request from the runner");
	a.err = build(&o, nfds > 0 ? fds[0] : -1, &a);
	a.landlock_abi = inside.landlock_abi;
	a.landlock_empty = inside.landlock_empty;
	a.loopback = inside.loopback;
	a.own_unix = inside.own_unix;
	a.guards_ports = inside.guards_ports;
	if (a.err == 0)
		a.step[0] = '\0';
	reply(&a);
	return a.err == 0;
}

/* --- START, FILES ------------------------------------------------------- */

static int
check(struct sandbox_answer *a)
{
	*a = (struct sandbox_answer){ .enforcing = true };
	a->err = inside.landlock_only ? view_check_host(&plan, a->step)
				      : view_check(&plan, a->step);
	if (a->err == 0 && call_proxy_is_gone()) {
		snprintf(a->step, sizeof(a->step), "the proxy has ended");
		a->err = -ESTALE;
	}
	a->stale = a->err < 0;
	return a->err;
}

/*
 * Counts the descriptors of SANDBOX_START: three standard ones, one for each
 * hierarchy, the version 2 directory, the socket for a terminal, and one that
 * the command gets.
 */
static size_t
fds_of(const struct sandbox_command *c)
{
	return 3 + (size_t)__builtin_popcount(c->joins) +
	       (c->joins & 1u << CGROUP_UNIFIED ? 1 : 0) + (c->tty ? 1 : 0) +
	       (c->given ? 1 : 0);
}

static void
take_start(struct buf_reader *r, const int *fds, size_t nfds)
{
	struct sandbox_command c;
	struct sandbox_answer a;
	struct plan placeholders;

	if (sandbox_start_get(r, &c, &placeholders) < 0 || nfds != fds_of(&c))
		log_fatal("impossible request from the runner");
	if (check(&a) == 0)
		inside_start(&inside, &c, &placeholders, fds, &a);
	sandbox_command_clear(&c);
	plan_clear(&placeholders);
	reply(&a);
}

static void
take_cover(struct buf_reader *r)
{
	struct sandbox_answer a = { .enforcing = true };
	struct plan placeholders;

	if (sandbox_cover_get(r, &placeholders) < 0)
		log_fatal("impossible request from the runner");
	a.err = view_cover(&placeholders, a.step);
	a.stale = a.err == -ESTALE;
	plan_clear(&placeholders);
	reply(&a);
}

static void
take_check(struct buf_reader *r)
{
	struct sandbox_answer a;

	if (buf_end(r) < 0)
		log_fatal("impossible request from the runner");
	check(&a);
	reply(&a);
}

/* What covers a placeholder for a request reaches the helper that is there. */
static int
share_mounts(struct sandbox_answer *a)
{
	*a = (struct sandbox_answer){ .enforcing = true,
		.step = "sharing mounts with the file helper" };
	if (!inside.landlock_only && !inside.shares &&
	    mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0)
		a->err = -errno;
	inside.shares = a->err == 0 && !inside.landlock_only;
	return a->err;
}

static void
take_files(struct buf_reader *r, const int *fds, size_t nfds)
{
	struct sandbox_answer a;

	if (nfds < 1 || nfds > 2 || buf_end(r) < 0)
		log_fatal("impossible request from the runner");
	if (share_mounts(&a) == 0)
		inside_serve(
		    &inside, fds[0], nfds > 1 ? fds[1] : -1, run_files, &a);
	reply(&a);
}

/* A socket of the host is no business of the sandbox. */
static void
take_socket(struct buf_reader *r)
{
	struct sandbox_answer a = { .step = "a socket of its loopback" };
	struct loopback_socket s[LOOPBACK_SOCKETS_MAX];
	int fds[LOOPBACK_SOCKETS_MAX], n = sandbox_sockets_get(r, s);

	if (n < 0)
		log_fatal("impossible request from the runner");
	a.err =
	    inside.loopback ? loopback_sockets(s, (size_t)n, fds) : -EOPNOTSUPP;
	if (a.err < 0)
		n = 0;
	reply_with(&a, fds, (size_t)n);
	while (n > 0)
		close(fds[--n]);
}

/* Returns false if the sandbox must end. */
static bool
take_order(struct buf *b, const int *fds, size_t nfds)
{
	static bool built;
	struct buf_reader r;
	uint8_t type;

	buf_reader_init(&r, b->data, b->len);
	type = buf_get_u8(&r);
	if (!built && type == SANDBOX_BUILD)
		return built = take_build(&r, fds, nfds);
	if (built && type == SANDBOX_START)
		take_start(&r, fds, nfds);
	else if (built && type == SANDBOX_COVER && nfds == 0)
		take_cover(&r);
	else if (built && type == SANDBOX_CHECK && nfds == 0)
		take_check(&r);
	else if (built && type == SANDBOX_SOCKET && nfds == 0)
		take_socket(&r);
	else if (built && type == SANDBOX_FILES)
		take_files(&r, fds, nfds);
	else
		log_fatal("impossible request from the runner");
	return true;
}

void
sandbox_run(void (*files)(void))
{
	int fds[SANDBOX_FDS_MAX];
	struct buf b;
	size_t nfds;
	bool go_on = true;

	log_set_label("sandbox");
	prctl(PR_SET_NAME, "execd-sandbox");
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		log_fatal_errno(-errno, "hiding from other processes");
	umask(022);
	run_files = files;
	buf_init(&b, SANDBOX_MESSAGE_MAX);
	while (go_on && sandbox_recv(CONTROL_FD, &b, fds, &nfds) == 0) {
		go_on = take_order(&b, fds, nfds);
		mounts_close(fds, nfds);
		/*
		 * The environment of one command must not be in the memory that
		 * is copied for the next one.
		 */
		explicit_bzero(b.data, b.len);
		buf_clear(&b);
	}
	exit(0);
}
