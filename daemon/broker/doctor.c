/* SPDX-License-Identifier: ISC */
/*
 * execd doctor: prints a line for each layer of a sandbox, and what to change
 * where one is missing.
 */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor_try.h"
#include "exit_code.h"
#include "landlock.h"
#include "path_map.h"
#include "programs.h"
#include "sandbox_limits.h"
#include "user_namespace_made.h"
#include "util.h"

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

static const struct layer {
	const char *name;
	bool needed; /* no sandbox works without it */
	bool inside; /* tried inside the user namespace */
	void (*probe)(const struct patient *p);
	const char *(*advice)(int err);
} layers[] = {
	{ "user namespace", true, false, doctor_try_user, advise_user },
	{ "view of the file system", true, true, doctor_try_mount,
	    advise_mount },
	{ "pid namespace and its /proc", true, true, doctor_try_pid,
	    advise_proc },
	{ "network namespace", true, true, doctor_try_network, advise_network },
	{ "lists of hosts (execd-netproxy)", false, false, doctor_try_netproxy,
	    advise_netproxy },
	{ "names for programs that know no proxy", false, true,
	    doctor_try_names, advise_names },
	{ "ipc namespace", true, true, doctor_try_ipc, advise_ipc },
	{ "uts namespace", true, true, doctor_try_uts, advise_uts },
	{ "cgroup namespace", true, true, doctor_try_cgroup_namespace,
	    advise_cgroup_namespace },
	{ "a keyring of its own", false, false, doctor_try_keyring,
	    advise_keyring },
	{ "system-call filter (seccomp)", true, false, doctor_try_seccomp,
	    advise_kernel },
	{ "Landlock", false, false, doctor_try_landlock, advise_landlock },
	{ "openat2", false, false, doctor_try_openat2, advise_openat2 },
	{ "control groups", false, false, doctor_try_cgroups, advise_cgroups },
	{ "a limit on the processes of a command", false, false,
	    doctor_try_processes, advise_processes },
	{ "a limit on the memory of a command", false, false, doctor_try_memory,
	    advise_memory },
	{ "a limit on the processor time of a command", false, false,
	    doctor_try_cpu, advise_cpu },
	{ "a command in a sandbox", true, true, doctor_try_command,
	    advise_command },
};

/* A probe that waits for a program which hangs is ended. */
#define PROBE_SECONDS 20

/* Returns the errno that the child ended with. */
static int
probe(const struct layer *l, const struct patient *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(PROBE_SECONDS);
		l->probe(p);
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
	if (err != 0)
		printf("%-8s %s: %s; %s\n", l->needed ? "MISSING" : "without",
		    l->name, strerror(err), l->advice(err));
	else if (l->probe == doctor_try_landlock)
		printf("%-8s %s, ABI %d\n", "ok", l->name, landlock_abi());
	else
		printf("%-8s %s\n", "ok", l->name);
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

	p->userns = userns_open(
	    p->programs->fds[INSTALLED_RUNNER], p->uid, p->gid, &step);
	if (p->userns >= 0)
		printf("%-8s %s\n", "ok", name);
	else
		printf("%-8s %s: %s: %s; the runner tries to make one itself\n",
		    "without", name, step, strerror(-p->userns));
}

/* Only root makes namespaces for a session. Tells whether it can. */
static bool
try_session(const struct patient *p)
{
	static const struct layer session = { "pid and mount namespace of a "
					      "session",
		true, false, doctor_try_session, advise_session };
	int err = probe(&session, p);

	print(&session, err);
	return err == 0;
}

int
doctor_run(const struct programs *programs, const char *user,
    const struct path_map *map)
{
	struct patient p = {
		.programs = programs, .root = geteuid() == 0, .userns = -1
	};
	int code = EXIT_STOPPED, err = find_patient(&p, user);
	bool no_user = false, no_proc = false;

	if (err < 0) {
		fprintf(stderr, "execd: user %s: %s\n",
		    user != NULL ? user : "nobody", strerror(-err));
		return EXIT_USAGE;
	}
	printf("What execd, started as %s, can enforce on commands of %s:\n",
	    p.root ? "root" : p.name, p.name);
	fflush(stdout);
	if (p.root && !try_session(&p))
		code = EXIT_UNENFORCEABLE;
	if (p.root)
		try_userns(&p);
	fflush(stdout);
	for (size_t i = 0; i < nitems(layers); i++) {
		if (no_user && layers[i].inside) {
			printf("%-8s %s: there is no user namespace; see "
			       "above\n",
			    layers[i].needed ? "MISSING" : "without",
			    layers[i].name);
			continue;
		}
		err = probe(&layers[i], &p);
		no_user |= err != 0 && layers[i].probe == doctor_try_user;
		no_proc |= err == EPERM && layers[i].probe == doctor_try_pid;
		print(&layers[i], err);
		fflush(stdout);
		if (err != 0 && layers[i].needed)
			code = EXIT_UNENFORCEABLE;
	}
	if ((no_user || no_proc) && !p.root)
		print_landlock_only();
	print_map(map);
	free(p.name);
	return code;
}
