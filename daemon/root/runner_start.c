/* SPDX-License-Identifier: ISC */
/*
 * Starts a user's program from root's execd.
 */
#include "base.h"
#include "root.h"

#include <sys/resource.h>

#include "child.h"
#include "children.h"
#include "drop.h"
#include "namespaces.h"
#include "seqpacket.h"
#include "session_cgroup.h"

#define UMASK_UNSET UINT32_MAX

/* Sets the limits that the operator gives every process of the session. An
 * ordinary user's execd cannot raise its own limits; it says so. */
static void
limit_resources(const struct control_user *s)
{
	const struct {
		const char *key;
		int resource;
		uint64_t value;
	} limits[] = {
		/* Of the runner: its commands have less than half. */
		{ "max-open-files", RLIMIT_NOFILE,
		    s->max_open_files > 0 ? 2 * (uint64_t)s->max_open_files + 2
					  : 0 },
		{ "max-address-space", RLIMIT_AS, s->max_address_bytes },
		{ "max-file-size", RLIMIT_FSIZE, s->max_file_bytes },
	};

	for (size_t i = 0; i < nitems(limits); i++) {
		struct rlimit r = { limits[i].value, limits[i].value };

		if (limits[i].value > 0 &&
		    setrlimit(limits[i].resource, &r) < 0)
			log_fatal_errno(-errno, "runner for %s: %s %llu",
			    s->name, limits[i].key,
			    (unsigned long long)limits[i].value);
	}
}

/* The lists of the user's placeholders (execd(8)) are in a directory of his,
 * below one of root's. The runner has it at PLACEHOLDERS_FD, which is free now.
 * Whoever made it may have ended before it was the user's, so it is given to
 * him before it is opened. */
static void
open_placeholder_lists(uid_t uid)
{
	const char *state = getenv("STATE_DIRECTORY");
	_cleanup_free_ char *path = NULL;
	int fd = -1;

	if (!root.is_root)
		return;
	if (state == NULL || state[0] != '/')
		state = "/var/lib/execd";
	path = xasprintf("%s/placeholders/%u", state, uid);
	if (access(path, F_OK) < 0) {
		mkdir(state, 0700);
		*strrchr(path, '/') = '\0';
		mkdir(path, 0700);
		path[strlen(path)] = '/';
		mkdir(path, 0700);
	}
	if (lchown(path, uid, (gid_t)-1) == 0)
		fd = open(path, O_RDONLY | O_DIRECTORY);
	if (fd >= 0)
		move_fd(fd, PLACEHOLDERS_FD, false);
}

static void
become_user(const struct spawn_user *o)
{
	/* The process is hidden, and root's children leave no core file. */
	drop_to_user(
	    o->who.uid, o->who.gid, spawn_user_groups(o), o->list[0], true);
	if (chdir("/") < 0)
		log_fatal_errno(-errno, "/");
}

/* The title for ps(1). Every user of the host sees it, so it has the session's
 * number and not its id, with which the session could be resumed. */
#define TITLE_MAX (CONTROL_IDENTITY_MAX + 64)

static char *
put_title(char title[TITLE_MAX], const struct spawn_user *o, uint64_t group)
{
	snprintf(title, TITLE_MAX, "execd-runner: session %llu of %s",
	    (unsigned long long)group, o->who.name);
	return title;
}

/* From here on this child's words have its name, whatever it is told. */
static void
set_log(int log_fd)
{
	if (dup2(log_fd, STDERR_FILENO) < 0)
		log_fatal_errno(-errno, "the log");
}

static void __attribute__((noreturn)) runner_child(const struct spawn_user *o,
    uint64_t group, int log_fd, int control_fd, const struct cgroup *cgroup)
{
	char title[TITLE_MAX];
	char *argv[] = { put_title(title, o, group), NULL };
	const char *step;
	int err;

	children_reset_signals();
	set_log(log_fd);
	setsid();
	err = session_cgroup_join(cgroup);
	if (err < 0)
		log_fatal_errno(
		    err, "runner for %s: its control group", o->who.name);
	if (root.is_root && (err = namespaces_enter(&step)) < 0)
		log_fatal_errno(err, "runner for %s: %s", o->who.name, step);
	child_place(root.programs.fds[INSTALLED_RUNNER], control_fd);
	open_placeholder_lists(o->who.uid);
	limit_resources(&o->who);
	if (o->who.umask != UMASK_UNSET)
		umask((mode_t)o->who.umask);
	if (root.is_root)
		become_user(o);
	/* This is done after the drop, because a change of credentials clears
	 * it. The kernel then ends the whole namespace with root's execd. */
	if (root.is_root && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		log_fatal_errno(-errno, "parent death signal");
	child_run(argv, spawn_user_env(o));
}

pid_t
spawn_runner(const struct spawn_user *o, uint64_t group, const char *session_id,
    int control_fd, const struct cgroup *cgroup)
{
	int log[2], err = seqpacket_pair(log);
	pid_t pid;

	if (err < 0)
		return err;
	pid = namespaces_fork(root.is_root);
	if (pid == 0)
		runner_child(o, group, log[1], control_fd, cgroup);
	logs_keep(log, pid, "execd-runner", session_id);
	return pid;
}

/* A program itself becomes its user before it reads anything. Until then it
 * needs root, to leave the file system. */
static const struct {
	const char *name, *what, *user;
	enum installed_program program;
} programs[PROGRAM_KINDS] = {
	[PROGRAM_OF_STRANGERS] = { "execd-frontend", NULL, "--user",
	    INSTALLED_FRONTEND },
	[PROGRAM_OF_KEYS] = { "execd-keys", NULL, "--user", INSTALLED_KEYS },
	[PROGRAM_OF_ACCOUNT] = { "execd-broker", "--account", NULL,
	    INSTALLED_BROKER },
};

static void __attribute__((noreturn))
program_child(enum control_program_kind kind, const struct spawn_user *o,
    int log_fd, int control_fd)
{
	const struct control_seal *seal = &root.list->seal;
	const char *argv[5] = { programs[kind].name, programs[kind].what };
	char user[CHILD_USER_MAX], *env[2] = { NULL };
	int argc = argv[1] != NULL ? 2 : 1;

	if (seal->debug && kind == PROGRAM_OF_STRANGERS)
		env[0] = (char *)(uintptr_t) "EXECD_DEBUG=1";
	children_reset_signals();
	set_log(log_fd);
	setsid();
	if (root.is_root) {
		child_set_groups(o != NULL ? spawn_user_groups(o) : NULL,
		    o != NULL ? o->list[0] : 0);
		argv[argc] = kind == PROGRAM_OF_ACCOUNT ? spawn_user_name(o)
							: programs[kind].user;
		argv[argc + 1] = child_user(user, o ? o->who.uid : seal->uid,
		    o ? o->who.gid : seal->gid);
	}
	child_exec(root.programs.fds[programs[kind].program], control_fd,
	    (char *const *)argv, env);
}

pid_t
spawn_program(
    enum control_program_kind kind, const struct spawn_user *o, int *own)
{
	const struct task t = { .kind = TASK_NAMESPACE,
		.uid = o != NULL ? o->who.uid : 0,
		.gid = o != NULL ? o->who.gid : 0 };
	int log[2], pair[2], err;
	pid_t pid;

	if (kind == PROGRAM_OF_NAMESPACE)
		return task_start(&t, NULL, 0, own);
	err = seqpacket_pair(pair);
	if (err < 0)
		return err;
	err = seqpacket_pair(log);
	pid = err < 0 ? err : fork();
	if (pid == 0)
		program_child(kind, o, log[1], pair[1]);
	if (pid < 0 && err == 0)
		pid = -errno;
	if (err == 0)
		logs_keep(log, pid, programs[kind].name, NULL);
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*own = pair[0];
	return pid;
}

int
spawn_probe(const char **step)
{
	pid_t pid;
	int status;

	*step = "a new pid and mount namespace";
	pid = namespaces_fork(true);
	if (pid < 0)
		return (int)pid;
	if (pid == 0)
		_exit(-namespaces_enter(step));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*step = "an own /proc";
	if (!WIFEXITED(status))
		return -EIO;
	return -WEXITSTATUS(status);
}
