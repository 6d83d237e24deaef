/* SPDX-License-Identifier: ISC */
/*
 * The trials of execd doctor. Each runs as the user of the commands. The last
 * one is a real command in a real sandbox.
 */
#include "doctor_try.h"

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

void
doctor_try_session(const struct patient *p)
{
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		give_up();
}

void
doctor_try_user(const struct patient *p)
{
	become_patient(p);
}

void
doctor_try_mount(const struct patient *p)
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

void
doctor_try_network(const struct patient *p)
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
void
doctor_try_names(const struct patient *p)
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

void
doctor_try_ipc(const struct patient *p)
{
	try_namespace(p, CLONE_NEWIPC);
}

void
doctor_try_uts(const struct patient *p)
{
	try_namespace(p, CLONE_NEWUTS);
}

void
doctor_try_cgroup_namespace(const struct patient *p)
{
	try_namespace(p, CLONE_NEWCGROUP);
}

void
doctor_try_keyring(const struct patient *p)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		give_up();
}

void
doctor_try_seccomp(const struct patient *p)
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

void
doctor_try_cgroups(const struct patient *p)
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

void
doctor_try_processes(const struct patient *p)
{
	doctor_try_cgroups(p);
	need_controller(CGROUP_COUNTS_PIDS);
}

void
doctor_try_memory(const struct patient *p)
{
	doctor_try_cgroups(p);
	need_controller(CGROUP_COUNTS_MEMORY);
}

void
doctor_try_cpu(const struct patient *p)
{
	doctor_try_cgroups(p);
	need_controller(CGROUP_COUNTS_CPU);
}

void
doctor_try_openat2(const struct patient *p)
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
void
doctor_try_netproxy(const struct patient *p)
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
void
doctor_try_command(const struct patient *p)
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
