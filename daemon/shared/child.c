/* SPDX-License-Identifier: ISC */
/*
 * What every child of execd gets, and nothing else.
 */
#include "child.h"

#include <grp.h>

#include "control_limits.h"
#include "descriptors.h"

/* Moves the descriptor above all numbers that will be replaced. */
static int
lift(int fd)
{
	int lifted = fcntl(fd, F_DUPFD_CLOEXEC, CONTROL_FD + 2);

	if (lifted < 0)
		log_fatal_errno(-errno, "descriptors");
	return lifted;
}

void
child_place(int program_fd, int control_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		log_fatal_errno(-errno, "/dev/null");
	program_fd = lift(program_fd);
	control_fd = lift(control_fd);
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		log_fatal_errno(-errno, "standard descriptors");
	if (move_fd(control_fd, CONTROL_FD, false) < 0 ||
	    move_fd(program_fd, CONTROL_FD + 1, true) < 0)
		log_fatal_errno(-errno, "the control descriptor");
	close_from(CONTROL_FD + 2);
}

void
child_run(char *const argv[], char *const env[])
{
	descriptors_restore();
	execveat(CONTROL_FD + 1, "", argv, env, AT_EMPTY_PATH);
	log_fatal_errno(-errno, "%s", argv[0]);
}

void
child_set_groups(const gid_t *groups, size_t ngroups)
{
	if (setgroups(ngroups, groups) < 0)
		log_fatal_errno(-errno, "setgroups");
}

char *
child_user(char text[CHILD_USER_MAX], uid_t uid, gid_t gid)
{
	snprintf(text, CHILD_USER_MAX, "%u:%u", uid, gid);
	return text;
}

void
child_exec(
    int program_fd, int control_fd, char *const argv[], char *const env[])
{
	child_place(program_fd, control_fd);
	child_run(argv, env);
}
