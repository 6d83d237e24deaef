/* SPDX-License-Identifier: ISC */
/*
 * Starts a process inside a sandbox. The intermediate process and the command
 * run on the sandbox's memory (CLONE_VM) while the sandbox waits, as after
 * vfork(2). Until exec they make system calls and record where they failed.
 */
#include "inside.h"

#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <termios.h>

#include "children.h"
#include "clone_into.h"
#include "heap.h"
#include "program.h"
#include "seqpacket.h"
#include "view.h"

/* --- privileges --------------------------------------------------------- */

/*
 * Gives up privileges inside: once in the sandbox, then in each of its
 * processes.
 */

/* The kernel's default for everybody since Linux 5.16. */
#define MEMLOCK_BYTES (8u << 20)

/* As that of inotify instances (sandbox_main.c). */
#define PENDING_PART 4

/* --- once, in the sandbox ----------------------------------------------- */

static int
set_limit(__rlimit_resource_t what, uint64_t value)
{
	const struct rlimit limit = { value, value };

	return setrlimit(what, &limit) < 0 ? -errno : 0;
}

/* Only lowers a limit. 0 leaves it as it is. */
static int
lower_limit(__rlimit_resource_t what, uint64_t value)
{
	struct rlimit have;

	if (value == 0)
		return 0;
	if (getrlimit(what, &have) < 0)
		return -errno;
	if (value > have.rlim_max)
		return 0;
	have.rlim_max = value;
	if (have.rlim_cur > value)
		have.rlim_cur = value;
	return setrlimit(what, &have) < 0 ? -errno : 0;
}

/*
 * The kernel counts signals that wait, and timers, for each user, and in each
 * user namespace again: sandboxes get a part of what their user may have.
 */
static int
limit_pending_signals(void)
{
	struct rlimit have;

	if (getrlimit(RLIMIT_SIGPENDING, &have) < 0)
		return -errno;
	return have.rlim_max == RLIM_INFINITY
		   ? 0
		   : lower_limit(
			 RLIMIT_SIGPENDING, have.rlim_max / PENDING_PART + 1);
}

static int
set_limits(const struct sandbox_options *o)
{
	int err = set_limit(RLIMIT_CORE, 0);

	if (err == 0)
		err = set_limit(RLIMIT_MSGQUEUE, 0);
	if (err == 0)
		err = limit_pending_signals();
	if (err == 0)
		err = set_limit(RLIMIT_NICE, 0);
	if (err == 0)
		err = set_limit(RLIMIT_RTPRIO, 0);
	if (err == 0)
		err = lower_limit(RLIMIT_MEMLOCK, MEMLOCK_BYTES);
	return err < 0 ? err : lower_limit(RLIMIT_FSIZE, o->file_bytes);
}

static int
limit_open_files(const struct sandbox_options *o)
{
	struct rlimit have;

	if (getrlimit(RLIMIT_NOFILE, &have) < 0)
		return -errno;
	if (o->open_files > 0 && have.rlim_max > o->open_files)
		have.rlim_max = o->open_files;
	if (have.rlim_cur > o->open_files_soft)
		have.rlim_cur = o->open_files_soft;
	if (have.rlim_cur > have.rlim_max)
		have.rlim_cur = have.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &have) < 0 ? -errno : 0;
}

/*
 * Sets the limits that apply to commands only: that of open files, because who
 * passes descriptors on needs a larger one (descriptors.h); and those for use
 * without control groups. Returns 0 or -errno.
 */
static int
inside_limit_command(const struct inside *in)
{
	int err = limit_open_files(&in->options);

	if (err == 0)
		err = program_limit_cpu(in->options.cpu_s);
	if (err == 0)
		err = lower_limit(RLIMIT_NPROC, in->options.processes);
	return err < 0 ? err
		       : lower_limit(RLIMIT_DATA, in->options.memory_bytes);
}

/*
 * Empties the bounding set and locks the securebits. Capabilities that are held
 * stay usable, but exec cannot give new ones.
 */
static int
bind_capabilities(void)
{
	const unsigned long bits =
	    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
	    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
	    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	int cap = 0;

	for (; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	/*
	 * EINVAL means that the last capability was passed; any other end is an
	 * error.
	 */
	if (errno != EINVAL || cap <= CAP_SETPCAP)
		return -EPERM;
	return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0 ? -errno : 0;
}

/*
 * Joins a new session keyring. Commands may not use keys at all
 * (command_filter.c); this is for keys that the kernel itself looks up. A
 * kernel without keys has nothing to protect. A container that refuses the call
 * to everybody (systemd-nspawn, Docker's default filter) also let nobody put a
 * key into the keyring that stays.
 */
static int
join_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 ||
	    errno == ENOSYS)
		return 0;
	if (errno != EPERM)
		return -errno;
	log_warn(0, "keyctl is refused here, so sandboxes keep the session "
		    "keyring; commands cannot use it");
	return 0;
}

int
inside_prepare(const struct inside *in, const char **step)
{
	int err;

	*step = "resource limits";
	err = set_limits(&in->options);
	if (err < 0)
		return err;
	*step = "emptying the capability bounding set";
	err = in->landlock_only ? 0 : bind_capabilities();
	if (err == 0 &&
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		err = -errno;
	if (err < 0)
		return err;
	*step = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	*step = "a session keyring";
	return join_keyring();
}

/* --- in each process ---------------------------------------------------- */

static bool
has_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct have[2];

	if (syscall(SYS_capget, &header, have) < 0)
		return true;
	for (int i = 0; i < 2; i++)
		if (have[i].effective | have[i].permitted | have[i].inheritable)
			return true;
	return false;
}

int
inside_drop(void)
{
	static const struct __user_cap_data_struct none[2];
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};

	if (syscall(SYS_capset, &header, none) < 0)
		return -errno;
	/*
	 * Proves that root cannot be regained. The raw system call changes this
	 * process only and no state of libc.
	 */
	if (geteuid() != 0 && syscall(SYS_setresuid, 0, 0, 0) == 0)
		return -EPERM;
	if (has_capabilities() || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return -EPERM;
	return 0;
}

/* --- the terminal ------------------------------------------------------- */

/*
 * The terminal of a sandboxed command. The runner opens a terminal before it
 * knows the view, in a file system that the view does not have. So the command
 * opens another one, and the runner uses that.
 */

#define SLAVE_FLAGS (O_RDWR | O_NOCTTY | O_CLOEXEC)

static int
copy_size_and_modes(int from, int to)
{
	struct winsize size;
	struct termios modes;

	return ioctl(from, TIOCGWINSZ, &size) < 0 ||
		       ioctl(to, TIOCSWINSZ, &size) < 0 ||
		       tcgetattr(from, &modes) < 0 ||
		       tcsetattr(to, TCSANOW, &modes) < 0
		   ? -errno
		   : 0;
}

/*
 * Mounts a new /dev/pts in the mount namespace of the calling command, opens a
 * terminal there and puts it into stdio[]. Its name is valid only in there, and
 * no other command can open it. Size and modes are copied from the terminal in
 * stdio[0]. The master is sent through the socket `to` with one byte. Makes
 * only system calls. Returns 0 or -errno.
 */
static int
inside_terminal(int stdio[3], int to)
{
	int master, slave, err = view_mount_terminals(), locked = 0;

	if (err < 0)
		return err;
	master = open("/dev/pts/ptmx", SLAVE_FLAGS | O_NONBLOCK);
	if (master < 0 || ioctl(master, TIOCSPTLCK, &locked) < 0)
		return -errno;
	err = copy_size_and_modes(stdio[0], master);
	if (err < 0)
		return err;
	slave = ioctl(master, TIOCGPTPEER, SLAVE_FLAGS);
	if (slave < 0)
		return -errno;
	err = seqpacket_send(to, "", 1, &master, 1);
	if (err < 0)
		return err;
	for (int i = 0; i < 3; i++)
		stdio[i] = slave;
	return 0;
}

int
inside_terminal_take(int from)
{
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	char byte;

	return seqpacket_recv(from, &byte, 1, fds, &nfds) == 1 && nfds == 1
		   ? fds[0]
		   : -1;
}

#define STACK_BYTES (64u << 10)

/* One start. The intermediate process and the command write into it. */
struct start {
	const struct inside *in;
	const struct sandbox_command *command; /* NULL: a helper */
	const struct plan *placeholders;       /* of a command */
	int stdio[3];
	int terminal; /* socket for the master of a new terminal */
	int given;    /* becomes the command's descriptor 3; or -1 */
	int joins[CGROUP_HIERARCHIES]; /* its control groups; -1: none */
	int group;		       /* its version 2 directory, or -1 */
	bool born; /* the intermediate process was cloned into `group` */
	int channel, lists; /* for run() */
	void (*run)(void);
	int err;
	const char *step;
	bool enforcing;
	bool elsewhere; /* as in struct sandbox_answer */
	pid_t pid, init;
	int ready[2]; /* a pipe: the init says that it is locked down */
};

/*
 * The placeholders are covered for each command alone. The kernel waits when a
 * covered file is removed; these mounts end with the command before.
 */
static char cover_step[VIEW_STEP_MAX];

static _Alignas(HEAP_PAGE_BYTES) char intermediate_stack[STACK_BYTES];
static _Alignas(HEAP_PAGE_BYTES) char process_stack[STACK_BYTES];

/* --- steps that enforce the policy -------------------------------------- */

/*
 * The runner may have died before the signal was armed, so its end of the
 * channel is checked afterwards.
 */
static int
follow_runner(const struct inside *in)
{
	struct pollfd channel = { .fd = in->channel, .events = POLLIN };

	if (!in->options.parent_death_signal)
		return 0;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || poll(&channel, 1, 0) < 0)
		return -errno;
	return channel.revents & POLLHUP ? -ESRCH : 0;
}

static struct command_landlock_options
landlock_options(const struct inside *in)
{
	return (struct command_landlock_options){
		.network = in->network || in->loopback,
		.restrict_files = in->restrict_files,
		.writable = in->writable,
		.writable_count = in->nwritable,
		.abi = (int)in->landlock_abi,
	};
}

bool
inside_needs_no_landlock(const struct inside *in)
{
	const struct command_landlock_options o = landlock_options(in);

	return command_landlock_is_empty(&o);
}

int
inside_sockets_ruleset(const struct inside *in)
{
	const struct command_landlock_options o = landlock_options(in);

	return in->landlock_abi > 0 && in->restrict_files
		   ? command_landlock_make(&o)
		   : -ENOMSG;
}

/*
 * What a command with a terminal may write to for it: all of its own /dev/pts,
 * so that it can open further terminals (script, expect, tmux). The rule must
 * name the root of that file system; one for the directory below its mount
 * point does not reach it. Without a /dev/pts of its own there is one terminal,
 * which need not be on a mount of the view.
 */
static int
terminal_place(const struct start *s, struct command_landlock_place *place)
{
	*place = (struct command_landlock_place){ .fd = s->stdio[0] };
	if (!s->in->terminals)
		return 0;
	place->fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	place->directory = true;
	return place->fd < 0 ? -errno : 0;
}

/*
 * Permits writes below the writable roots, to the devices, to its own /proc and
 * to its own terminals.
 */
static int
make_ruleset(const struct start *s)
{
	const struct inside *in = s->in;
	struct command_landlock_options o = landlock_options(in);
	_cleanup_close_ int proc = -1;
	int err;

	if (in->proc) {
		proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (proc < 0)
			return -errno;
		in->writable[o.writable_count++] =
		    (struct command_landlock_place){ proc, true, false };
	}
	if (s->command != NULL && s->command->tty) {
		err = terminal_place(s, &in->writable[o.writable_count++]);
		if (err < 0)
			return err;
	}
	return command_landlock_make(&o);
}

/*
 * Sets up what the process sees, what it may do and whom it dies with, before
 * anything of the request is used. The Landlock ruleset is made here, because
 * /proc must already be the process's own.
 */
static int
enter(struct start *s, int *ruleset)
{
	const struct inside *in = s->in;
	int err = 0;

	s->enforcing = true;
	s->step = cover_step;
	if (s->command != NULL)
		err = view_cover(s->placeholders, cover_step);
	if (err < 0)
		return err;
	s->step = "mounting its own /proc";
	if (in->proc)
		err = view_mount_proc();
	if (err < 0)
		return err;
	if (in->shows_group && s->joins[CGROUP_UNIFIED] >= 0)
		view_mount_group();
	s->step = "mounting its own resolv.conf";
	if (s->command != NULL && s->command->resolver != 0)
		err = view_mount_resolver(s->command->resolver);
	if (err < 0)
		return err;
	s->step = "a terminal of its own";
	if (in->terminals && s->command != NULL && s->command->tty)
		err = inside_terminal(s->stdio, s->terminal);
	if (err < 0)
		return err;
	s->step = "making the Landlock ruleset";
	*ruleset = -1;
	if (in->landlock_abi > 0 && !in->landlock_empty)
		err = *ruleset = make_ruleset(s);
	if (err < 0)
		return err;
	s->step = "dropping capabilities";
	err = inside_drop();
	if (err < 0)
		return err;
	s->step = "following the runner";
	return follow_runner(in);
}

/* Comes last, because seccomp refuses the steps before it. */
static int
lock(struct start *s, int ruleset)
{
	int err = 0;

	s->enforcing = true;
	s->step = "Landlock";
	if (ruleset >= 0)
		err = command_landlock_load(ruleset);
	if (ruleset >= 0)
		close(ruleset);
	if (err < 0)
		return err;
	s->step = "seccomp";
	return command_filter_load(
	    s->command != NULL ? &s->in->filter : &s->in->files_filter);
}

/* --- a command ---------------------------------------------------------- */

/* Without its init nothing would kill what the command leaves behind. */
static int
await_init(const struct start *s)
{
	char byte;

	return read(s->ready[0], &byte, 1) == 1 ? 0 : -ESRCH;
}

/* The command's descriptor 3 is put there last, from a number above all that
 * are placed: the ruleset may lie there, and so may others. */
static int
place_descriptors(const struct start *s, int *ruleset)
{
	int given = s->given >= 0 ? fcntl(s->given, F_DUPFD_CLOEXEC, 5) : -1;
	int next = s->given >= 0 ? 4 : 3;

	if (s->given >= 0 && given < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(s->stdio[i], i) < 0)
			return -errno;
	if (*ruleset >= 0 && move_fd(*ruleset, next, true) < 0)
		return -errno;
	if (given >= 0 && dup2(given, 3) < 0)
		return -errno;
	if (*ruleset >= 0)
		*ruleset = next++;
	close_from(next);
	return 0;
}

/*
 * Only a directory that the policy hides is replaced (doc/sandbox.md B4). What
 * the command meets elsewhere, it was not meant for.
 */
static int
enter_cwd(struct start *s)
{
	const struct sandbox_command *c = s->command;
	int err = chdir(c->cwd) < 0 ? -errno : 0;

	if (err == 0 || *c->instead == '\0')
		return err;
	s->elsewhere = chdir(c->instead) == 0;
	return s->elsewhere ? 0 : err;
}

static int
command_steps(struct start *s)
{
	const struct sandbox_command *c = s->command;
	int ruleset, err = enter(s, &ruleset);

	if (err < 0)
		return err;
	s->step = "the init of its pid namespace";
	err = s->init > 0 ? await_init(s) : 0;
	if (err < 0)
		return err;
	s->step = "resource limits";
	err = inside_limit_command(s->in);
	if (err < 0)
		return err;
	s->enforcing = false;
	s->step = "setsid";
	if (setsid() < 0)
		return -errno;
	s->step = "controlling terminal";
	if (c->tty && ioctl(s->stdio[0], TIOCSCTTY, 0) < 0)
		return -errno;
	s->step = "working directory";
	err = enter_cwd(s);
	if (err < 0)
		return err;
	s->step = "standard descriptors";
	err = place_descriptors(s, &ruleset);
	if (err < 0)
		return err;
	children_reset_signals();
	err = lock(s, ruleset);
	if (err < 0)
		return err;
	s->enforcing = false;
	s->step = "exec";
	s->err = 0;
	/* The program is searched inside the view, after all steps. */
	return program_execute(c->candidates, c->argv, c->envp);
}

ON_OWN_STACK static int
command(void *arg)
{
	struct start *s = arg;

	s->err = command_steps(s);
	_exit(127);
}

/* --- a helper ----------------------------------------------------------- */

#define RULESET_FD (CONTROL_FD + 1)
_Static_assert(RULESET_FD + 1 == PLACEHOLDERS_FD, "they follow each other");

/*
 * Runs on a copy of the sandbox's memory. Nobody waits for its exit status; a
 * failure ends it, and its channel closes.
 */
ON_OWN_STACK static int
helper(void *arg)
{
	struct start *s = arg;
	int stdio[3] = { s->channel, s->channel, s->channel }, ruleset;

	if (enter(s, &ruleset) < 0 || setsid() < 0 || chdir("/") < 0)
		_exit(126);
	if (s->lists >= 0)
		s->lists = fcntl(s->lists, F_DUPFD_CLOEXEC, RULESET_FD + 2);
	if (move_fd(stdio[0], CONTROL_FD, true) < 0)
		_exit(126);
	if (ruleset >= 0 && (move_fd(ruleset, RULESET_FD, true) < 0))
		_exit(126);
	if (s->lists >= 0 && dup2(s->lists, PLACEHOLDERS_FD) < 0)
		_exit(126);
	close_from(s->lists >= 0 ? PLACEHOLDERS_FD + 1 : PLACEHOLDERS_FD);
	if (ruleset < 0)
		close(RULESET_FD);
	if (lock(s, ruleset >= 0 ? RULESET_FD : -1) < 0)
		_exit(126);
	s->run();
	_exit(0);
}

/* --- the intermediate process
 * ---------------------------------------------------------- */

ON_OWN_STACK static int
init(void *arg)
{
	const struct start *s = arg;

	inside_init(s->in, s->ready[1]);
}

static pid_t
clone_on(char *stack, int (*run)(void *arg), int flags, struct start *s)
{
	pid_t pid;

	own_stack_reuse(stack, STACK_BYTES);
	pid =
	    clone(run, stack + STACK_BYTES, CLONE_PARENT | SIGCHLD | flags, s);
	return pid < 0 ? -errno : pid;
}

/*
 * The cgroup namespace is entered only after the command's group was joined:
 * its root is that group, and from inside a deeper namespace nobody could be
 * moved into the group. A file helper gets what covers placeholders later.
 */
static int
enter_namespaces(const struct start *s)
{
	unsigned long kind = s->command != NULL ? MS_PRIVATE : MS_SLAVE;

	if (s->in->landlock_only)
		return 0;
	if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWCGROUP) < 0)
		return -errno;
	return s->in->shares && mount(NULL, "/", NULL, MS_REC | kind, NULL) < 0
		   ? -errno
		   : 0;
}

static int
start_init(struct start *s)
{
	if (s->in->landlock_only)
		return 0;
	if (pipe2(s->ready, O_CLOEXEC) < 0)
		return -errno;
	s->init = clone_on(process_stack, init, 0, s);
	if (s->init < 0)
		return s->init;
	close(s->ready[1]);
	return 0;
}

/* A helper starts no processes, so it is itself the init of its namespace. */
static int
intermediate_steps(struct start *s)
{
	int err;

	s->enforcing = true;
	s->step = "control group";
	err = cgroup_join(s->joins, s->born);
	if (err < 0)
		return err;
	s->step = "new pid, mount and cgroup namespaces";
	err = enter_namespaces(s);
	if (err < 0)
		return err;
	s->step = "clone";
	s->enforcing = false;
	if (s->command == NULL) {
		s->pid = clone_on(process_stack, helper, 0, s);
		return s->pid < 0 ? s->pid : 0;
	}
	err = start_init(s);
	if (err < 0)
		return err;
	/*
	 * A command that is killed before exec, for example by its init's end,
	 * cannot report an error. This value stays then.
	 */
	s->err = -ESRCH;
	s->enforcing = true;
	s->pid = clone_on(process_stack, command, CLONE_VM | CLONE_VFORK, s);
	if (s->pid >= 0)
		return s->err;
	/* If the init is already gone, the kernel fails with ENOMEM. */
	s->step = s->init > 0 ? "the init of its pid namespace" : "clone";
	s->enforcing = s->init > 0 && await_init(s) < 0;
	return s->pid;
}

ON_OWN_STACK static int
intermediate(void *arg)
{
	struct start *s = arg;

	s->err = intermediate_steps(s);
	if (s->err < 0 && s->init > 0)
		kill(s->init, SIGKILL);
	_exit(0);
}

/*
 * Clones the intermediate process directly into its version 2 group, if the
 * kernel supports it.
 */
static pid_t
start_intermediate(struct start *s)
{
	pid_t pid = -ENOSYS;

	s->born = s->group >= 0;
	if (s->born)
		pid = clone_into(s->group, intermediate, s, intermediate_stack,
		    STACK_BYTES, CLONE_PARENT | CLONE_VM | CLONE_VFORK);
	if (pid > 0 || !clone_into_is_missing(pid))
		return pid;
	s->born = false;
	return clone_on(
	    intermediate_stack, intermediate, CLONE_VM | CLONE_VFORK, s);
}

static void
start(struct start *s, struct sandbox_answer *a)
{
	volatile struct start *seen = s;
	pid_t pid;

	/* A process that is killed before it reports counts as failed. */
	s->step = "clone";
	s->err = -ESRCH;
	s->enforcing = true;
	pid = start_intermediate(s);
	*a = (struct sandbox_answer){ .err = pid < 0 ? pid : seen->err };
	if (a->err < 0) {
		a->enforcing = pid >= 0 && seen->enforcing;
		a->stale = seen->step == cover_step && a->err == -ESTALE;
		snprintf(a->step, sizeof(a->step), "%s", seen->step);
		return;
	}
	a->command = seen->pid;
	a->init = seen->init;
	a->elsewhere = seen->elsewhere;
}

void
inside_start(const struct inside *in, const struct sandbox_command *c,
    const struct plan *placeholders, const int *fds, struct sandbox_answer *a)
{
	struct start s = { .in = in,
		.command = c,
		.placeholders = placeholders,
		.stdio = { fds[0], fds[1], fds[2] },
		.group = -1 };

	fds += 3;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		s.joins[i] = c->joins & 1u << i ? *fds++ : -1;
	if (s.joins[CGROUP_UNIFIED] >= 0)
		s.group = *fds++;
	s.terminal = c->tty ? *fds++ : -1;
	s.given = c->given ? *fds : -1;
	start(&s, a);
}

void
inside_serve(const struct inside *in, int channel, int lists, void (*run)(void),
    struct sandbox_answer *a)
{
	struct start s = { .in = in,
		.channel = channel,
		.lists = lists,
		.run = run,
		.group = -1 };

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		s.joins[i] = -1;

	start(&s, a);
}
