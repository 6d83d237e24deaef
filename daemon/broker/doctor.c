/* SPDX-License-Identifier: ISC */
/*
 * execd doctor: tries each layer of a sandbox, prints a line about it, and says
 * what to change where it is missing. A probe runs in a child as the user of
 * the commands. It ends the child with the errno of what failed, or returns.
 * The last one is a real command in a real sandbox.
 */
#include "base.h"
#include "broker_main.h"

#include <grp.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "ctl_socket.h"
#include "doctor_programs.h"
#include "exit_code.h"
#include "frame.h"
#include "landlock.h"
#include "netproxy_message.h"
#include "own_ports.h"
#include "path_map.h"
#include "program_paths.h"
#include "programs.h"
#include "seqpacket.h"
#include "spawn_client.h"
#include "userns.h"

#define ANSWER_BYTES 65536
/* A probe that waits for a program which hangs is ended. */
#define PROBE_SECONDS 20

/* The user whose commands would run in the sandbox. */
struct patient {
	const struct programs *programs;
	char *name; /* owned */
	uid_t uid;
	gid_t gid;
	bool root;  /* whether execd is root */
	int userns; /* only as root; -errno if it could not be made */
};

struct layer {
	const char *name;
	bool needed; /* no sandbox works without it */
	bool inside; /* tried inside the user namespace */
	void (*probe)(const struct patient *p, unsigned what);
	const char *advice;
	unsigned what;			/* the namespace or controller */
	const char *(*advise)(int err); /* where the advice depends on it */
};

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
try_session(const struct patient *p, unsigned what)
{
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		give_up();
}

static void
try_user(const struct patient *p, unsigned what)
{
	become_patient(p);
}

static void
try_mount(const struct patient *p, unsigned what)
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

static void
try_pid(const struct patient *p, unsigned what)
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
try_namespace(const struct patient *p, unsigned flag)
{
	become_patient(p);
	if (unshare((int)flag) < 0)
		give_up();
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
try_names(const struct patient *p, unsigned what)
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
try_keyring(const struct patient *p, unsigned what)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		give_up();
}

static void
try_seccomp(const struct patient *p, unsigned what)
{
	unsigned action = SECCOMP_RET_KILL_PROCESS;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		give_up();
}

/* Succeeds if there is Landlock. */
static void
try_landlock(const struct patient *p, unsigned what)
{
	int abi = landlock_abi();

	errno = -abi;
	if (abi < 0)
		give_up();
}

static void
try_cgroups(const struct patient *p, unsigned what)
{
	errno = doctor_groups_try(what);
	if (errno != 0)
		give_up();
}

static void
try_openat2(const struct patient *p, unsigned what)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC };

	if (syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how)) < 0)
		give_up();
}

/* What is missing of the directory is made at the start. */
static void
try_ctl(const struct patient *p, unsigned what)
{
	char directory[CTL_DIRECTORY_MAX], path[CTL_PATH_MAX];
	int err = ctl_directory(directory, p->root);

	errno = -err;
	if (err < 0)
		give_up();
	while (access(directory, F_OK) < 0 && errno == ENOENT &&
	       strrchr(directory, '/') > directory)
		*strrchr(directory, '/') = '\0';
	snprintf(path, sizeof(path), "%s/d.XXXXXX", directory);
	if (mkdtemp(path) == NULL)
		give_up();
	rmdir(path);
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
	int ports = own_ports_share();
	pid_t pid;

	errno = program < 0 ? -program : -ports;
	if (program < 0 || ports < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		give_up();
	become_user(p);
	pid = fork();
	if (pid == 0) {
		/* Neither of them may lie where the other belongs. */
		pair[1] = fcntl(pair[1], F_DUPFD, OWN_PORTS_FD + 1);
		ports = fcntl(ports, F_DUPFD, OWN_PORTS_FD + 1);
		dup2(pair[1], CONTROL_FD);
		dup2(ports, OWN_PORTS_FD);
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
try_netproxy(const struct patient *p, unsigned what)
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

/* Its workspace is the directory. */
static const char request[] =
    "{\"version\":1,\"type\":\"spawn_request\",\"payload\":{\"command\":"
    "[\"/bin/true\"],\"cwd\":\"%s\",\"env\":{},\"policy_json_or_preset\":"
    "\"workspace-write\",\"sandbox_policy_cwd\":\"%s\",\"codex_home\":\"/\","
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
try_command_in(const struct patient *p, const char *workspace)
{
	_cleanup_free_ char *text = xasprintf(request, workspace, workspace);
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
	frame_put_length(header, (uint32_t)strlen(text));
	if (pid < 0 || write(in[1], header, sizeof(header)) < 0 ||
	    write(in[1], text, strlen(text)) < 0)
		give_up();
	while (len < sizeof(answer) &&
	       (n = read(out[0], answer + len, sizeof(answer) - len)) > 0)
		len += (size_t)n;
	errno = 0;
	if (memmem(answer, len, "\"exit_code\":0", 13) != NULL)
		return;
	print_words(answer, len);
	errno = EPERM;
}

static void
try_command(const struct patient *p, unsigned what)
{
	char workspace[] = "/tmp/execd-doctor.XXXXXX";
	int err;

	if (mkdtemp(workspace) == NULL ||
	    (p->root && chown(workspace, p->uid, p->gid) < 0))
		give_up();
	try_command_in(p, workspace);
	err = errno;
	rmdir(workspace);
	errno = err;
	if (err != 0)
		give_up();
}

/* Policies that restrict no files are enforced by other layers. */
static void
try_command_everywhere(const struct patient *p, unsigned what)
{
	try_command_in(p, "/");
	if (errno != 0)
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

/* Then a user namespace is refused, or it comes without capabilities. */
static bool
apparmor_restricts(void)
{
	return setting_is(
	    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1');
}

static const char *
advise_user(int err)
{
	if (apparmor_restricts())
		return "load execd's AppArmor profile, as the line about it "
		       "says, or run execd as root";
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
	return apparmor_restricts()
		   ? advise_user(err)
		   : "Linux 5.14 or newer; in a container: a seccomp profile "
		     "that permits mount, open_tree and mount_setattr";
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
advise_landlock(int err)
{
	if (err == ENOSYS)
		return "Linux 5.13 or newer, with CONFIG_SECURITY_LANDLOCK";
	if (err == EOPNOTSUPP)
		return "add landlock to the boot parameter lsm=";
	return "no sandbox starts while it fails like this; in a container: a "
	       "seccomp profile that permits landlock_create_ruleset";
}

/* --- the table ---------------------------------------------------------- */

/* In the order in which they are tried. */
static const struct layer layers[] = {
	{ "user namespace", true, false, try_user, .advise = advise_user },
	{ "view of the file system", true, true, try_mount,
	    .advise = advise_mount },
	{ "pid namespace and its /proc", true, true, try_pid,
	    "in a container: nothing mounted over parts of /proc (podman: "
	    "--security-opt unmask=ALL; docker: systempaths=unconfined; "
	    "Kubernetes: procMount: Unmasked)" },
	{ "network namespace", true, true, try_namespace,
	    "sysctl user.max_net_namespaces=10000", CLONE_NEWNET },
	{ "lists of hosts (execd-netproxy)", false, false, try_netproxy,
	    "commands with a list of hosts are refused; install execd-netproxy "
	    "beside the other programs, on a host with IPv4 on its loopback" },
	{ "names for programs that know no proxy", false, true, try_names,
	    .advise = advise_names },
	{ "ipc namespace", true, true, try_namespace,
	    "sysctl user.max_ipc_namespaces=10000", CLONE_NEWIPC },
	{ "uts namespace", true, true, try_namespace,
	    "sysctl user.max_uts_namespaces=10000", CLONE_NEWUTS },
	{ "cgroup namespace", true, true, try_namespace,
	    "sysctl user.max_cgroup_namespaces=10000", CLONE_NEWCGROUP },
	{ "a keyring of its own", false, false, try_keyring,
	    "commands share the keyring of the session's user; in a container: "
	    "a seccomp profile that permits keyctl" },
	{ "system-call filter (seccomp)", true, false, try_seccomp,
	    "a kernel with CONFIG_SECCOMP_FILTER" },
	{ "Landlock", false, false, try_landlock, .advise = advise_landlock },
	{ "openat2", true, false, try_openat2, "Linux 5.14 or newer" },
	{ "control groups", false, false, try_cgroups,
	    .advise = doctor_groups_advise },
	/* Either there are control groups, or the line before says more. */
	{ "a limit on the processes of a command", false, false, try_cgroups,
	    "without a pids controller, RLIMIT_NPROC holds sandboxed commands to "
	    "command-tasks-max, and nothing others",
	    CGROUP_COUNTS_PIDS },
	{ "a limit on the memory of a command", false, false, try_cgroups,
	    "without a memory controller, RLIMIT_DATA holds each process of a "
	    "sandboxed command to command-memory-max, and nothing others",
	    CGROUP_COUNTS_MEMORY },
	{ "a limit on the processor time of a command", false, false,
	    try_cgroups,
	    "without a cpu controller, cpu-quota and cpu-weight are not enforced",
	    CGROUP_COUNTS_CPU },
	{ "a place for the socket of `execd ctl`", false, false, try_ctl,
	    "sessions open, and nobody can list, end or reload them; room in /run, "
	    "or as an ordinary user in XDG_RUNTIME_DIR or HOME" },
	{ "a command in a sandbox", true, true, try_command,
	    "the reason is above, as execd-runner wrote it" },
	{ "a command in a sandbox that may write everywhere", true, true,
	    try_command_everywhere,
	    "the reason is above, as execd-runner wrote it" },
};

/* What root needs for each session. Only root tries it. */
static const struct layer session_layer = {
	"pid and mount namespace of a session", true, false, try_session,
	"execd does not start like this; in a container: the capability "
	"SYS_ADMIN, or execd run as an ordinary user"
};

/* --- the run ------------------------------------------------------------ */

/* Returns the errno that the child ended with. */
static int
probe(const struct layer *l, const struct patient *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(PROBE_SECONDS);
		l->probe(p, l->what);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	if (pid < 0)
		return errno;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static void
print(const struct layer *l, int err)
{
	const char *of = l->probe == try_cgroups ? doctor_groups_of() : "";

	if (err != 0)
		printf("%-8s %s%s: %s; %s\n", l->needed ? "MISSING" : "without",
		    l->name, of, strerror(err),
		    l->advise != NULL ? l->advise(err) : l->advice);
	else if (l->probe == try_landlock)
		printf("%-8s %s, ABI %d\n", "ok", l->name, landlock_abi());
	else
		printf("%-8s %s%s\n", "ok", l->name, of);
}

/* Says what remains without namespaces if the operator permits it. */
static void
print_landlock_only(void)
{
	int abi = landlock_abi();

	if (abi >= SANDBOX_LANDLOCK_ONLY_ABI)
		printf("ok       Landlock and seccomp alone, for policies "
		       "that only say what is writable; not used unless "
		       "[sandbox] says landlock-only = yes; commands then see "
		       "the processes of their user, and read whatever he "
		       "may\n");
	else
		printf("without  Landlock and seccomp alone (landlock-only): "
		       "there is ABI %d; Linux 6.2 or newer has ABI %d\n",
		    abi > 0 ? abi : 0, SANDBOX_LANDLOCK_ONLY_ABI);
}

/*
 * Says whether AppArmor has execd's profiles: the broker itself is in one then.
 * A kernel that does not look at user namespaces, as before Linux 6.7, needs
 * none.
 */
static void
print_apparmor(void)
{
	static const char profile[] = "/etc/apparmor.d/execd",
			  looks[] = "/sys/kernel/security/apparmor/features/"
				    "namespaces/mask";
	char label[64] = "";
	_cleanup_close_ int fd =
	    open("/proc/self/attr/apparmor/current", O_RDONLY | O_CLOEXEC);

	if (access(looks, F_OK) < 0 || fd < 0 ||
	    read(fd, label, sizeof(label) - 1) < 0)
		return;
	if (strncmp(label, "execd-broker", strlen("execd-broker")) == 0) {
		printf("ok       AppArmor profile of execd\n");
		return;
	}
	printf("without  AppArmor profile of execd, %s; as root: ",
	    apparmor_restricts() ? "without which no sandbox of an ordinary "
				   "user starts here"
				 : "which this host does not need");
	if (access(profile, F_OK) < 0)
		printf("cp " EXECD_APPARMOR " %s && ", profile);
	printf("apparmor_parser -r %s\n", profile);
}

/* A client's path whose directory is missing is an error when it is used. */
static void
print_map(const struct path_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct path_map_root *root = &map->roots[i];
		struct stat st;
		int err = stat(root->server, &st) < 0 ? errno
			  : S_ISDIR(st.st_mode)	      ? 0
						      : ENOTDIR;

		if (err == 0)
			printf("ok       path-map: %s is %s\n", root->client,
			    root->server);
		else
			printf("without  path-map: %s is %s: %s; make that "
			       "directory, or change the map\n",
			    root->client, root->server, strerror(err));
	}
}

static int
find_patient(struct patient *p, const char *user)
{
	const struct passwd *pw;

	errno = 0;
	pw = p->root ? getpwnam(user != NULL ? user : "nobody")
		     : getpwuid(geteuid());
	if (pw == NULL)
		return errno != 0 ? -errno : -ENOENT;
	p->name = xstrdup(pw->pw_name);
	p->uid = pw->pw_uid;
	p->gid = pw->pw_gid;
	return p->root && p->uid == 0 ? -EPERM : 0;
}

/* Tries the user namespace that root makes for all sandboxes of a user. */
static void
try_userns(struct patient *p)
{
	static const char name[] = "user namespace made by root";
	const char *step;

	p->userns = userns_open(p->uid, p->gid, &step);
	if (p->userns >= 0)
		printf("%-8s %s\n", "ok", name);
	else
		printf("%-8s %s: %s: %s; the runner tries to make one itself\n",
		    "without", name, step, strerror(-p->userns));
}

/* Tries one layer and tells about it. Returns the errno of what failed. */
static int
examine(const struct layer *l, const struct patient *p)
{
	int err = probe(l, p);

	print(l, err);
	fflush(stdout);
	return err;
}

/* Tries all layers. Returns false if one that is needed is missing. */
static bool
examine_all(const struct patient *p)
{
	bool no_user = false, no_proc = false, good = true;

	for (size_t i = 0; i < nitems(layers); i++) {
		const struct layer *l = &layers[i];
		int err;

		if (no_user && l->inside) {
			printf("%-8s %s: there is no user namespace; see "
			       "above\n",
			    l->needed ? "MISSING" : "without", l->name);
			continue;
		}
		err = examine(l, p);
		no_user |= err != 0 && l->probe == try_user;
		no_proc |= err == EPERM && l->probe == try_pid;
		good &= err == 0 || !l->needed;
	}
	if ((no_user || no_proc) && !p->root)
		print_landlock_only();
	return good;
}

int
doctor_run(const struct programs *programs, const char *user,
    const struct path_map *map)
{
	struct patient p = {
		.programs = programs, .root = geteuid() == 0, .userns = -1
	};
	int err = find_patient(&p, user);
	bool good = true;

	if (err < 0) {
		fprintf(stderr, "execd: user %s: %s\n",
		    user != NULL ? user : "nobody", strerror(-err));
		return EXIT_USAGE;
	}
	printf("What execd, started as %s, can enforce on commands of %s:\n",
	    p.root ? "root" : p.name, p.name);
	fflush(stdout);
	if (p.root)
		good = examine(&session_layer, &p) == 0;
	if (p.root)
		try_userns(&p);
	fflush(stdout);
	doctor_groups_begin();
	good &= examine_all(&p);
	doctor_groups_end();
	print_apparmor();
	doctor_programs_print();
	print_map(map);
	free(p.name);
	return good ? EXIT_STOPPED : EXIT_UNENFORCEABLE;
}
