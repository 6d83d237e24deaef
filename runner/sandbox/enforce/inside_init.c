/* SPDX-License-Identifier: ISC */
/*
 * The init of a command's pid namespace. It has no capability and almost no
 * system call.
 */

#include "base.h"
#include "clone_into.h"
#include "filter.h"
#include "inside.h"

/* Its descriptor, which is closed when the init is locked down. */
#define READY 0

/* It writes once; afterwards nothing is open to write to. */
static const struct sock_filter reaping_filter[] = {
	FILTER_LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_NATIVE, 1, 0),
	FILTER_KILL,
	FILTER_LOAD(nr),
	FILTER_PERMIT(SYS_write),
	FILTER_PERMIT(SYS_close),
	FILTER_PERMIT(SYS_wait4),
	FILTER_PERMIT(SYS_rt_sigtimedwait),
	FILTER_PERMIT(SYS_rt_sigreturn),
	FILTER_PERMIT(SYS_restart_syscall),
	FILTER_PERMIT(SYS_exit_group),
	FILTER_KILL,
};

static int
load_filter(void)
{
	const struct sock_fprog program = { nitems(reaping_filter),
		(struct sock_filter *)(uintptr_t)reaping_filter };

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static void
reap(const sigset_t *all)
{
	while (syscall(SYS_wait4, -1, NULL, WNOHANG, NULL) > 0)
		continue;
	syscall(SYS_rt_sigtimedwait, all, NULL, NULL, (size_t)(_NSIG / 8));
}

ON_OWN_STACK void
inside_init(const struct inside *in, int ready)
{
	bool dies = in->options.parent_death_signal;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_DFL);
	setsid();
	prctl(PR_SET_NAME, "execd-init");
	if (move_fd(ready, READY, true) < 0)
		_exit(1);
	close_from(READY + 1);
	if (inside_drop() < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    (dies && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) ||
	    load_filter() < 0 || syscall(SYS_write, READY, "", 1) != 1 ||
	    syscall(SYS_close, READY) < 0)
		_exit(1);
	for (;;)
		reap(&all);
}
