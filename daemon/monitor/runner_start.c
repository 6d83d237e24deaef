/*
 * Start of a runner: from root to the session's user in one straight line.
 * Runs in a forked child of the monitor that has heard nothing of any client.
 */
#include "runner_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "control.h"
#include "drop.h"
#include "log.h"
#include "util.h"

#define RUNNER_NAMESPACES (CLONE_NEWPID | CLONE_NEWNS)

static pid_t
fork_with(unsigned long flags)
{
	pid_t pid =
	    (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	return pid < 0 ? -errno : pid;
}

static long
read_number(const char *path)
{
	char text[32] = "";
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -errno;
	return atol(text);
}

/*
 * Numbers the session's processes from a random place, half the number space
 * away from where the host is now. Programs that name files in a shared /tmp
 * after their pid would otherwise meet themselves in every other session, and
 * a pid in a log would name some kernel thread of the host. Needs the old
 * /proc to know the host's numbers; a kernel without ns_last_pid counts from
 * 2, which harms nobody.
 */
static long
choose_first_pid(void)
{
	char self[32] = "";
	long max = read_number("/proc/sys/kernel/pid_max");
	uint32_t r;

	if (max < 1024 || readlink("/proc/self", self, sizeof(self) - 1) < 0 ||
	    getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return 0;
	return (atol(self) + max / 4 + (long)(r % (uint32_t)(max / 2))) % max;
}

static void
set_first_pid(long first)
{
	char text[32];
	_cleanup_close_ int fd =
	    open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || first < 300)
		return;
	snprintf(text, sizeof(text), "%ld", first);
	if (write(fd, text, strlen(text)) < 0)
		log_debug("ns_last_pid %s was refused", text);
}

/* Own mount table (what the host mounts later still appears, what happens
 * here stays here), own /proc that shows this pid namespace only. */
static int
enter_namespaces(const char **step)
{
	long first = choose_first_pid();

	*step = "making mounts one-way";
	/* In a chroot "/" is no mount, but the one we mount over is. */
	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0 &&
	    (errno != EINVAL || mount(NULL, "/proc", NULL, MS_SLAVE, NULL) < 0))
		return -errno;
	*step = "mounting /proc";
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		NULL) < 0)
		return -errno;
	set_first_pid(first);
	return 0;
}

/* What the operator allows every process of the session. An ordinary user's
 * execd cannot raise what it has itself; that is not silent. */
static void
limit_resources(const struct identity *id)
{
	const struct identity_limits *l = &id->limits;
	const struct {
		const char *key;
		int resource;
		uint64_t value;
	} limits[] = {
		{ "max-processes", RLIMIT_NPROC, l->max_processes },
		{ "max-open-files", RLIMIT_NOFILE, l->max_open_files },
		{ "max-cpu-time", RLIMIT_CPU, l->max_cpu_ms / 1000 },
		{ "max-memory", RLIMIT_AS, l->max_memory_bytes },
		{ "max-file-size", RLIMIT_FSIZE, l->max_file_bytes },
	};

	for (size_t i = 0; i < nitems(limits); i++) {
		const struct rlimit r = { limits[i].value, limits[i].value };

		if (limits[i].value > 0 &&
		    setrlimit(limits[i].resource, &r) < 0)
			log_fatal_errno(-errno, "runner for %s: %s %llu",
			    id->name, limits[i].key,
			    (unsigned long long)limits[i].value);
	}
}

static void __attribute__((noreturn))
runner_child(int program_fd, const struct identity *id, bool root,
    int control_fd, const int joins[CGROUP_HIERARCHIES])
{
	char *argv[] = { (char *)(uintptr_t) "execd-runner", NULL };
	const char *step = NULL;
	int err;

	child_reset_signals();
	setsid();
	err = cgroup_join(joins, false);
	if (err < 0)
		log_fatal_errno(
		    err, "runner for %s: its control group", id->name);
	limit_resources(id);
	if (id->umask != CONF_MODE_UNSET)
		umask((mode_t)id->umask);
	if (root && (err = enter_namespaces(&step)) < 0)
		log_fatal_errno(err, "runner for %s: %s", id->name, step);
	if (root) {
		drop_to_user(id->uid, id->gid, id->gids, id->ngids);
		/* After the drop: a change of credentials clears it. The kernel
		 * then ends the whole namespace when the monitor is gone. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || chdir("/") < 0)
			log_fatal_errno(-errno, "runner for %s", id->name);
		if (chdir(id->home) < 0)
			log_warn(
			    -errno, "runner for %s: %s", id->name, id->home);
	}
	child_exec(program_fd, control_fd, argv, id->env);
}

pid_t
runner_start(int program_fd, const struct identity *id, bool root,
    int control_fd, const int joins[CGROUP_HIERARCHIES])
{
	pid_t pid = fork_with(root ? RUNNER_NAMESPACES : 0);

	if (pid == 0)
		runner_child(program_fd, id, root, control_fd, joins);
	return pid;
}

int
runner_probe(const char **step)
{
	pid_t pid;
	int status;

	*step = "a new pid and mount namespace";
	pid = fork_with(RUNNER_NAMESPACES);
	if (pid < 0)
		return (int)pid;
	if (pid == 0)
		_exit(-enter_namespaces(step));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*step = "an own /proc";
	if (!WIFEXITED(status))
		return -EIO;
	return -WEXITSTATUS(status);
}
