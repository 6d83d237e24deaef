/* SPDX-License-Identifier: ISC */
#include "task.h"

#include "child.h"
#include "children.h"
#include "programs.h"
#include "seqpacket.h"

static int program = -1; /* of this version */

int
task_init(char missing[PATH_MAX])
{
	program = programs_open_one(INSTALLED_CHILD, missing);
	return program < 0 ? program : 0;
}

static void __attribute__((noreturn)) child(int channel, pid_t parent)
{
	char *argv[] = { (char *)(uintptr_t) "execd-child", NULL };
	char *none[] = { NULL };

	children_reset_signals();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	child_exec(program, channel, argv, none);
}

pid_t
task_start(const struct task *t, const int *fds, size_t nfds, int *channel)
{
	int pair[2], err = seqpacket_pair(pair);
	pid_t parent = getpid(), pid;

	if (err < 0)
		return err;
	err = seqpacket_send(pair[0], t, sizeof(*t), fds, nfds);
	pid = err < 0 ? err : fork();
	if (pid == 0)
		child(pair[1], parent);
	if (pid < 0 && err == 0)
		pid = -errno;
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*channel = pair[0];
	return pid;
}
