/*
 * execd doctor. Every layer is tried in a child of its own, as the user whose
 * commands it would hold; at the end a real command runs in a real sandbox.
 */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "door.h"
#include "frame.h"
#include "landlock.h"
#include "options.h"
#include "programs.h"
#include "userns.h"
#include "util.h"

#define ANSWER_BYTES 65536

/* Whose commands they would be. */
struct patient {
	const struct programs *programs;
	char *name; /* owned */
	uid_t uid;
	gid_t gid;
	bool root; /* execd is */
	int door;  /* root only; -errno: it could not be made */
};

static void __attribute__((noreturn)) give_up(void)
{
	_exit(errno > 0 && errno < 256 ? errno : EIO);
}

/* In a child: the user, in his user namespace, as a sandbox begins. */
static void
become_patient(const struct patient *p)
{
	const char *step;
	int err = 0;

	if (p->root &&
	    (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 ||
		setresuid(p->uid, p->uid, p->uid) < 0))
		give_up();
	if (p->door >= 0)
		err = setns(p->door, CLONE_NEWUSER) < 0 ? -errno : 0;
	else
		err = userns_enter_new(&step);
	errno = -err;
	if (err < 0)
		give_up();
}

/* --- layers ------------------------------------------------------------- */

static void
try_user(const struct patient *p)
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

static void
try_pid(const struct patient *p)
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
try_network(const struct patient *p)
{
	become_patient(p);
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
		    CLONE_NEWCGROUP) < 0)
		give_up();
}

static void
try_seccomp(const struct patient *p)
{
	unsigned action = SECCOMP_RET_KILL_PROCESS;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		give_up();
}

/* Ends well when there is a Landlock. */
static void
try_landlock(const struct patient *p)
{
	errno = EOPNOTSUPP;
	if (landlock_abi() == 0)
		give_up();
}

static void
try_cgroups(const struct patient *p)
{
	struct cgroup own, made;
	int err;

	cgroup_open_own(&own);
	errno = ENOENT;
	if (!cgroup_is_open(&own))
		give_up();
	err = cgroup_make(&own, "execd-doctor", &made);
	if (err == 0)
		cgroup_remove(&own, "execd-doctor");
	errno = -err;
	if (err < 0)
		give_up();
}

/* --- the whole ---------------------------------------------------------- */

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
	int err = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (p->root &&
	    (setgroups(0, NULL) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 ||
		setresuid(p->uid, p->uid, p->uid) < 0))
		give_up();
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execveat(p->programs->runner, "", argv, none, AT_EMPTY_PATH);
	give_up();
}

/* The runner's own dialect, one command; what it answers is its own text. */
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
	errno = EPERM;
	if (memmem(answer, len, "\"exit_code\":0", 13) == NULL)
		give_up();
}

/* --- what to change ----------------------------------------------------- */

static bool
setting_is(const char *path, char value)
{
	char text = '\0';
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, &text, 1) == 1 && text == value;
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
	       "--security-opt unmask=ALL; docker: systempaths=unconfined)";
}

static const char *
advise_network(int err)
{
	return "sysctl user.max_net_namespaces=10000";
}

static const char *
advise_kernel(int err)
{
	return "a kernel with CONFIG_SECCOMP_FILTER";
}

static const char *
advise_landlock(int err)
{
	return "add landlock to the boot parameter lsm= (Linux 5.13 or newer)";
}

static const char *
advise_cgroups(int err)
{
	return "run execd as root, or in a systemd unit with Delegate=yes";
}

static const char *
advise_command(int err)
{
	return "execd's log says which step failed (execd --debug)";
}

/* --- the table ---------------------------------------------------------- */

static const struct layer {
	const char *name;
	bool needed; /* no sandbox without it */
	bool inside; /* tried inside the user namespace */
	void (*probe)(const struct patient *p);
	const char *(*advice)(int err);
} layers[] = {
	{ "user namespace", true, false, try_user, advise_user },
	{ "view of the file system", true, true, try_mount, advise_mount },
	{ "pid namespace and its /proc", true, true, try_pid, advise_proc },
	{ "network, ipc, uts and cgroup namespaces", true, true, try_network,
	    advise_network },
	{ "system-call filter (seccomp)", true, false, try_seccomp,
	    advise_kernel },
	{ "Landlock", false, false, try_landlock, advise_landlock },
	{ "control groups", false, false, try_cgroups, advise_cgroups },
	{ "a command in a sandbox", true, true, try_command, advise_command },
};

/* The errno its child ended with. */
static int
probe(const struct layer *l, const struct patient *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		l->probe(p);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	if (pid < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static void
print(const struct layer *l, int err)
{
	if (err != 0)
		printf("%-8s %s: %s; %s\n", l->needed ? "MISSING" : "without",
		    l->name, strerror(err), l->advice(err));
	else if (l->probe == try_landlock)
		printf("%-8s %s, ABI %d\n", "ok", l->name, landlock_abi());
	else
		printf("%-8s %s\n", "ok", l->name);
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

int
doctor_run(const struct programs *programs, const char *user)
{
	struct patient p = {
		.programs = programs, .root = geteuid() == 0, .door = -1
	};
	int code = EXIT_STOPPED, err = find_patient(&p, user);
	bool no_user = false;
	const char *step;

	if (err < 0) {
		fprintf(stderr, "execd: user %s: %s\n",
		    user != NULL ? user : "nobody", strerror(-err));
		return EXIT_USAGE;
	}
	if (p.root)
		p.door = door_open(p.uid, p.gid, &step);
	printf("What execd, started as %s, can enforce on commands of %s:\n",
	    p.root ? "root" : p.name, p.name);
	fflush(stdout);
	for (size_t i = 0; i < nitems(layers); i++) {
		if (no_user && layers[i].inside) {
			printf("MISSING  %s: there is no user namespace; see "
			       "above\n",
			    layers[i].name);
			continue;
		}
		err = probe(&layers[i], &p);
		no_user |= err != 0 && layers[i].probe == try_user;
		print(&layers[i], err);
		fflush(stdout);
		if (err != 0 && layers[i].needed)
			code = EXIT_UNENFORCEABLE;
	}
	free(p.name);
	return code;
}
