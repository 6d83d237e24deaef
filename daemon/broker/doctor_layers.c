/* SPDX-License-Identifier: ISC */
/*
 * The layers of a sandbox: how execd doctor tries each, and what to change
 * where it is missing. A probe runs as the user of the commands. The last one
 * is a real command in a real sandbox.
 */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "control.h"
#include "frame.h"
#include "landlock.h"
#include "netproxy_message.h"
#include "programs.h"
#include "seqpacket.h"
#include "userns.h"
#include "util.h"

#define ANSWER_BYTES 65536

static void __attribute__((noreturn)) give_up(void)
{
	_exit(errno > 0 && errno < 256 ? errno : EIO);
}

static void
become_user(const struct patient *p)
{
	if (p->root &&
	    (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 ||
		setresuid(p->uid, p->uid, p->uid) < 0))
		give_up();
}

/* In a child: becomes the user in his user namespace, as a sandbox does at its
 * beginning. */
static void
become_patient(const struct patient *p)
{
	const char *step;
	int err = 0;

	become_user(p);
	if (p->userns >= 0)
		err = setns(p->userns, CLONE_NEWUSER) < 0 ? -errno : 0;
	else
		err = userns_enter_new(NULL, &step);
	errno = -err;
	if (err < 0)
		give_up();
}

/* --- layers ------------------------------------------------------------- */

/* For root: what root needs for each session, as root. */
static void
try_session(const struct patient *p)
{
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		give_up();
}

void
doctor_try_user(const struct patient *p)
{
	become_patient(p);
}

static void
try_mount(const struct patient *p)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int tree;

	become_patient(p);
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		give_up();
	tree = open_tree(
	    AT_FDCWD, "/", AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
			    &attr, sizeof(attr)) < 0)
		give_up();
}

void
doctor_try_pid(const struct patient *p)
{
	int status;
	pid_t pid;

	become_patient(p);
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
		give_up();
	pid = fork();
	if (pid == 0) {
		if (mount("proc", "/proc", "proc",
			MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2") < 0)
			give_up();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		give_up();
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EIO);
}

static void
try_namespace(const struct patient *p, int flag)
{
	become_patient(p);
	if (unshare(flag) < 0)
		give_up();
}

static void
try_network(const struct patient *p)
{
	try_namespace(p, CLONE_NEWNET);
}

/* As loopback_add_names() of the sandbox, by older calls. */
static void
add_names(void)
{
	struct ifreq address = { .ifr_name = "lo:1" }, mask = address,
		     up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct sockaddr_in in = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(0xc6120001); /* 198.18.0.1/15 */
	memcpy(&address.ifr_addr, &in, sizeof(in));
	in.sin_addr.s_addr = htonl(0xfffe0000);
	memcpy(&mask.ifr_netmask, &in, sizeof(in));
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up) < 0 ||
	    ioctl(fd, SIOCSIFADDR, &address) < 0 ||
	    ioctl(fd, SIOCSIFNETMASK, &mask) < 0)
		give_up();
	close(fd);
}

/* Tries what a sandbox needs for names: a listener on an address that stands
 * for a name, and a connection to it. The sandbox mounts a file of its own over
 * /etc/resolv.conf, so that file must be there. */
static void
try_names(const struct patient *p)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(443),
		.sin_addr = { htonl(0xc6120102) } };
	int listener, fd;

	if (access("/etc/resolv.conf", R_OK) < 0)
		give_up();
	try_namespace(p, CLONE_NEWNET);
	add_names();
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || fd < 0 ||
	    bind(listener, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(listener, 1) < 0 ||
	    connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		give_up();
}

static void
try_ipc(const struct patient *p)
{
	try_namespace(p, CLONE_NEWIPC);
}

static void
try_uts(const struct patient *p)
{
	try_namespace(p, CLONE_NEWUTS);
}

static void
try_cgroup_namespace(const struct patient *p)
{
	try_namespace(p, CLONE_NEWCGROUP);
}

static void
try_keyring(const struct patient *p)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		give_up();
}

static void
try_seccomp(const struct patient *p)
{
	unsigned action = SECCOMP_RET_KILL_PROCESS;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		give_up();
}

/* Succeeds if there is Landlock. */
void
doctor_try_landlock(const struct patient *p)
{
	int abi = landlock_abi();

	errno = -abi;
	if (abi < 0)
		give_up();
}

static void
try_cgroups(const struct patient *p)
{
	struct cgroup own, made;
	char name[32];
	int err;

	cgroup_open_usable(&own);
	errno = ENOENT;
	if (!cgroup_is_open(&own))
		give_up();
	snprintf(name, sizeof(name), "execd-doctor-%d", (int)getpid());
	err = cgroup_make(&own, name, &made);
	if (err == 0)
		err = cgroup_remove(&own, name);
	errno = -err;
	if (err < 0)
		give_up();
}

static void
need_controller(unsigned controller)
{
	struct cgroup own;

	cgroup_open_usable(&own);
	errno = ENOENT;
	if (!(cgroup_available(&own) & controller))
		give_up();
}

static void
try_processes(const struct patient *p)
{
	try_cgroups(p);
	need_controller(CGROUP_COUNTS_PIDS);
}

static void
try_memory(const struct patient *p)
{
	try_cgroups(p);
	need_controller(CGROUP_COUNTS_MEMORY);
}

static void
try_cpu(const struct patient *p)
{
	try_cgroups(p);
	need_controller(CGROUP_COUNTS_CPU);
}

static void
try_openat2(const struct patient *p)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC };

	if (syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how)) < 0)
		give_up();
}

/* --- the proxy of lists of hosts ---------------------------------------- */

/* Returns the other end of the program's channel. */
static int
start_netproxy(const struct patient *p)
{
	char *argv[] = { (char *)(uintptr_t) "execd-netproxy", NULL };
	char *none[] = { NULL };
	char missing[PATH_MAX];
	int program = programs_open_one(INSTALLED_NETPROXY, missing), pair[2];
	pid_t pid;

	errno = -program;
	if (program < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		give_up();
	become_user(p);
	pid = fork();
	if (pid == 0) {
		dup2(pair[1], CONTROL_FD);
		execveat(program, "", argv, none, AT_EMPTY_PATH);
		give_up();
	}
	close(pair[1]);
	if (pid < 0)
		give_up();
	return pair[0];
}

/* Returns the listener of a list that is empty. */
static int
open_list(int channel, struct sockaddr_in *at)
{
	const union netproxy_message m = { .open = {
					       .list = 1, .connections = 1 } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*at);
	struct buf b;

	*at = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	if (fd < 0 || bind(fd, (struct sockaddr *)at, len) < 0 ||
	    listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)at, &len) < 0)
		give_up();
	buf_init(&b, NETPROXY_MESSAGE_MAX);
	netproxy_put(&b, NETPROXY_OPEN, &m);
	errno = -seqpacket_send(channel, b.data, b.len, &fd, 1);
	buf_clear(&b);
	if (errno != 0)
		give_up();
	return fd;
}

/* The proxy refuses a host that is on no list, and this answer shows that it
 * runs. It ends when its channel is closed. */
static void
try_netproxy(const struct patient *p)
{
	static const char asked[] = "GET http://execd.invalid/ HTTP/1.1\r\n"
				    "Host: execd.invalid\r\n\r\n";
	struct sockaddr_in at;
	int channel = start_netproxy(p), listener = open_list(channel, &at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[16] = "";

	close(listener);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    send(fd, asked, sizeof(asked) - 1, MSG_NOSIGNAL) < 0)
		give_up();
	errno = EPROTO;
	if (recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) < 0 ||
	    strncmp(answer, "HTTP/1.1 403", 12) != 0)
		give_up();
}

/* --- a command in a sandbox --------------------------------------------- */

static const char request[] =
    "{\"version\":1,\"type\":\"spawn_request\",\"payload\":{\"command\":"
    "[\"/bin/true\"],\"cwd\":\"/\",\"env\":{},\"policy_json_or_preset\":"
    "\"workspace-write\",\"sandbox_policy_cwd\":\"/\",\"codex_home\":\"/\","
    "\"real_codex_home\":\"/\",\"cap_sids\":[],\"tty\":false}}";

static void __attribute__((noreturn))
exec_runner(const struct patient *p, int in, int out)
{
	char *argv[] = { (char *)(uintptr_t) "execd-runner",
		(char *)(uintptr_t) "--stdio", NULL };
	char *none[] = { NULL };

	become_user(p);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execveat(
	    p->programs->fds[INSTALLED_RUNNER], "", argv, none, AT_EMPTY_PATH);
	give_up();
}

/* Frames and lines of the log are mixed here. Prints the parts that are
 * text. */
static void
print_words(const char *answer, size_t len)
{
	static const size_t least = 8, most = 2000;
	size_t from = 0;

	if (len > most)
		len = most;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && answer[i] >= ' ' && answer[i] <= '~')
			continue;
		if (i - from >= least)
			printf(
			    "         %.*s\n", (int)(i - from), answer + from);
		from = i + 1;
	}
	fflush(stdout);
}

/* Speaks the dialect of one command with the runner. Its answer is the runner's
 * own text. */
static void
try_command(const struct patient *p)
{
	uint8_t header[FRAME_HEADER_BYTES];
	static char answer[ANSWER_BYTES];
	int in[2], out[2];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		give_up();
	pid = fork();
	if (pid == 0)
		exec_runner(p, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	frame_put_length(header, sizeof(request) - 1);
	if (pid < 0 || write(in[1], header, sizeof(header)) < 0 ||
	    write(in[1], request, sizeof(request) - 1) < 0)
		give_up();
	while (len < sizeof(answer) &&
	       (n = read(out[0], answer + len, sizeof(answer) - len)) > 0)
		len += (size_t)n;
	if (memmem(answer, len, "\"exit_code\":0", 13) != NULL)
		return;
	print_words(answer, len);
	errno = EPERM;
	give_up();
}

/* --- advice ------------------------------------------------------------- */

static bool
setting_is(const char *path, char value)
{
	char text = '\0';
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, &text, 1) == 1 && text == value;
}

static const char *
advise_session(int err)
{
	return "execd does not start like this; in a container: the capability "
	       "SYS_ADMIN, or execd run as an ordinary user";
}

static const char *
advise_user(int err)
{
	if (setting_is(
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
		return "run execd as root, or sysctl "
		       "kernel.apparmor_restrict_unprivileged_userns=0";
	if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
		return "run execd as root, or sysctl "
		       "kernel.unprivileged_userns_clone=1";
	if (setting_is("/proc/sys/user/max_user_namespaces", '0'))
		return "sysctl user.max_user_namespaces=10000";
	return "run execd as root, outside of a chroot; in a container, with a "
	       "seccomp profile that permits user namespaces";
}

static const char *
advise_mount(int err)
{
	return "in a container: a seccomp profile that permits mount, "
	       "open_tree and mount_setattr";
}

static const char *
advise_proc(int err)
{
	return "in a container: nothing mounted over parts of /proc (podman: "
	       "--security-opt unmask=ALL; docker: systempaths=unconfined; "
	       "Kubernetes: procMount: Unmasked)";
}

static const char *
advise_network(int err)
{
	return "sysctl user.max_net_namespaces=10000";
}

static const char *
advise_netproxy(int err)
{
	return "commands with a list of hosts are refused; install "
	       "execd-netproxy beside the other programs, on a host with "
	       "IPv4 on its loopback";
}

static const char *
advise_names(int err)
{
	return err == ENOENT
		   ? "an /etc/resolv.conf, for commands with a list of hosts "
		     "have theirs in its place; until then programs that know "
		     "no proxy reach nothing"
		   : "a kernel with IPv4, and ports below 1024 inside a user "
		     "namespace; until then, with a list of hosts, programs "
		     "that know no proxy reach nothing";
}

static const char *
advise_ipc(int err)
{
	return "sysctl user.max_ipc_namespaces=10000";
}

static const char *
advise_uts(int err)
{
	return "sysctl user.max_uts_namespaces=10000";
}

static const char *
advise_cgroup_namespace(int err)
{
	return "sysctl user.max_cgroup_namespaces=10000";
}

static const char *
advise_keyring(int err)
{
	return "commands share the keyring of the session's user; in a "
	       "container: a seccomp profile that permits keyctl";
}

static const char *
advise_kernel(int err)
{
	return "a kernel with CONFIG_SECCOMP_FILTER";
}

static const char *
advise_landlock(int err)
{
	if (err == ENOSYS)
		return "Linux 5.13 or newer, with CONFIG_SECURITY_LANDLOCK";
	if (err == EOPNOTSUPP)
		return "add landlock to the boot parameter lsm=";
	return "no sandbox starts while it fails like this; in a container: a "
	       "seccomp profile that permits landlock_create_ruleset";
}

static const char *
advise_cgroups(int err)
{
	return "run execd as root, or in a systemd unit with Delegate=yes; "
	       "until then the processes of a command are not counted "
	       "together";
}

/* Either there are control groups, or the line before this one says more. */
static const char *
advise_processes(int err)
{
	return "without a pids controller, RLIMIT_NPROC limits sandboxed "
	       "commands";
}

static const char *
advise_memory(int err)
{
	return "without a memory controller, a watch kills sandboxed "
	       "commands that have more than max-memory resident; where it "
	       "can see nothing (execd.conf(5)), RLIMIT_DATA holds each "
	       "process";
}

static const char *
advise_cpu(int err)
{
	return "without a cpu controller, max-cpu is not enforced";
}

static const char *
advise_openat2(int err)
{
	return "Linux 5.6 or newer; until then paths are walked name by name";
}

static const char *
advise_command(int err)
{
	return "the reason is above, as execd-runner wrote it";
}

/* --- the table ---------------------------------------------------------- */

const struct layer doctor_layers[] = {
	{ "user namespace", true, false, doctor_try_user, advise_user },
	{ "view of the file system", true, true, try_mount, advise_mount },
	{ "pid namespace and its /proc", true, true, doctor_try_pid,
	    advise_proc },
	{ "network namespace", true, true, try_network, advise_network },
	{ "lists of hosts (execd-netproxy)", false, false, try_netproxy,
	    advise_netproxy },
	{ "names for programs that know no proxy", false, true, try_names,
	    advise_names },
	{ "ipc namespace", true, true, try_ipc, advise_ipc },
	{ "uts namespace", true, true, try_uts, advise_uts },
	{ "cgroup namespace", true, true, try_cgroup_namespace,
	    advise_cgroup_namespace },
	{ "a keyring of its own", false, false, try_keyring, advise_keyring },
	{ "system-call filter (seccomp)", true, false, try_seccomp,
	    advise_kernel },
	{ "Landlock", false, false, doctor_try_landlock, advise_landlock },
	{ "openat2", false, false, try_openat2, advise_openat2 },
	{ "control groups", false, false, try_cgroups, advise_cgroups },
	{ "a limit on the processes of a command", false, false, try_processes,
	    advise_processes },
	{ "a limit on the memory of a command", false, false, try_memory,
	    advise_memory },
	{ "a limit on the processor time of a command", false, false, try_cpu,
	    advise_cpu },
	{ "a command in a sandbox", true, true, try_command, advise_command },
};

const size_t doctor_layers_count = nitems(doctor_layers);

const struct layer doctor_session = { "pid and mount namespace of a session",
	true, false, try_session, advise_session };
