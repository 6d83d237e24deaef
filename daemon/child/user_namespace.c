/* SPDX-License-Identifier: ISC */
/*
 * Makes a user namespace that belongs to a user.
 *
 * A namespace belongs to the effective user of the process that makes it, and
 * its owner may signal every process inside. So only the effective user changes
 * here, and only for one system call. The real and saved users stay root, so no
 * process of the user may signal or trace this one. The child inside keeps the
 * namespace alive until there is a descriptor. It does nothing else, and is
 * waited for only after it was killed. The maps are written from outside.
 */
#include "child_tasks.h"

#include <linux/capability.h>
#include <sched.h>

#include "drop.h"
#include "seqpacket.h"
#include "userns.h"

/*
 * Where AppArmor or a sysctl forbids user namespaces to ordinary users, an
 * effective capability permits them. Changing the effective user removed the
 * capabilities.
 */
static int
raise_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &header, caps) < 0)
		return -errno;
	caps[0].effective = caps[0].permitted;
	caps[1].effective = caps[1].permitted;
	return syscall(SYS_capset, &header, caps) < 0 ? -errno : 0;
}

static int
set_effective_user(uid_t uid, gid_t gid)
{
	const uid_t keep_uid = (uid_t)-1;
	const gid_t keep_gid = (gid_t)-1;

	if (setresgid(keep_gid, gid, keep_gid) < 0 ||
	    setresuid(keep_uid, uid, keep_uid) < 0)
		return -errno;
	/*
	 * Changing the user may have made the process visible
	 * (fs.suid_dumpable).
	 */
	drop_visibility();
	return raise_capabilities();
}

static void __attribute__((noreturn)) hold(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have been killed before that. */
	if (getppid() != parent)
		_exit(1);
	for (;;)
		pause();
}

/* Returns a process in a new namespace of the user, or -errno. */
static pid_t
make_holder(uid_t uid, gid_t gid)
{
	int err = set_effective_user(uid, gid);
	pid_t parent = getpid(), pid;

	if (err < 0)
		return err;
	pid = (pid_t)syscall(
	    SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		hold(parent);
	if (pid < 0)
		pid = -errno;
	err = set_effective_user(0, 0);
	if (err < 0)
		log_fatal_errno(err, "becoming root again");
	return pid;
}

static int
open_holder(pid_t holder)
{
	char path[32];
	int dir;

	snprintf(path, sizeof(path), "/proc/%d", (int)holder);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : dir;
}

/* Returns the namespace's descriptor, or -errno with *step. */
static int
take_namespace(pid_t holder, uid_t uid, gid_t gid, const char **step)
{
	_cleanup_close_ int dir = open_holder(holder);
	int err, fd;

	*step = "opening its /proc directory";
	if (dir < 0)
		return dir;
	err = userns_map(dir, uid, gid, step);
	if (err < 0)
		return err;
	*step = "opening its descriptor (CAP_SYS_PTRACE)";
	fd = openat(dir, "ns/user", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
make(uid_t uid, gid_t gid, const char **step)
{
	pid_t holder;
	int fd;

	*step = "a new user namespace";
	holder = make_holder(uid, gid);
	if (holder < 0)
		return (int)holder;
	fd = take_namespace(holder, uid, gid, step);
	kill(holder, SIGKILL);
	while (waitpid(holder, NULL, 0) < 0 && errno == EINTR)
		continue;
	return fd;
}

void
user_namespace_make(uid_t uid, gid_t gid)
{
	struct spawn_opened answer = { .head = {
					   SPAWN_OPENED, SPAWN_VERSION } };
	const char *step = "";
	int fd = make(uid, gid, &step);

	answer.result.error = fd < 0 ? (uint32_t)-fd : 0;
	snprintf(answer.result.step, sizeof(answer.result.step), "%s", step);
	seqpacket_send(CONTROL_FD, &answer, sizeof(answer), &fd, fd >= 0);
}
