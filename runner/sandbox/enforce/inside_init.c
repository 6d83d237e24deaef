/* SPDX-License-Identifier: ISC */
/*
 * The init of a command's pid namespace. It has no capability and almost no
 * system call. Where no control group counts memory, it also watches the memory
 * of all processes in its namespace, and kills them when they have too much.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clone_into.h"
#include "filter.h"
#include "inside.h"
#include "memory_watch.h"
#include "util.h"

/* Its descriptors. READY is closed when the init is locked down. */
enum { READY, TOLD };

/* --- filters ------------------------------------------------------------ */

#define ONLY_NATIVE                                                            \
	FILTER_LOAD(arch),                                                     \
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_NATIVE, 1, 0),          \
	    FILTER_KILL, FILTER_LOAD(nr)

#define PERMIT_REAPING                                                         \
	FILTER_PERMIT(SYS_write), FILTER_PERMIT(SYS_close),                    \
	    FILTER_PERMIT(SYS_wait4), FILTER_PERMIT(SYS_rt_sigtimedwait),      \
	    FILTER_PERMIT(SYS_rt_sigreturn),                                   \
	    FILTER_PERMIT(SYS_restart_syscall), FILTER_PERMIT(SYS_exit_group)

/* It writes once; afterwards nothing is open to write to. */
static const struct sock_filter reaping_filter[] = {
	ONLY_NATIVE,
	PERMIT_REAPING,
	FILTER_KILL,
};

/* Its root directory is /proc, so that it opens nothing else. */
static const struct sock_filter watching_filter[] = {
	ONLY_NATIVE,
	PERMIT_REAPING,
	FILTER_PERMIT(SYS_clock_gettime),
	FILTER_PERMIT(SYS_openat),
	FILTER_PERMIT(SYS_read),
	FILTER_PERMIT(SYS_lseek),
	FILTER_PERMIT(SYS_getdents64),
	FILTER_PERMIT(SYS_kcmp),
	FILTER_PERMIT(SYS_kill),
	FILTER_KILL,
};

static int
load_filter(bool watches)
{
	const struct sock_filter *code =
	    watches ? watching_filter : reaping_filter;
	const struct sock_fprog program = { watches ? nitems(watching_filter)
						    : nitems(reaping_filter),
		(struct sock_filter *)(uintptr_t)code };

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* --- memory ------------------------------------------------------------- */

/*
 * The runner is told first, because it asks as soon as the command has ended. A
 * process that is about to fork gets the signal, too, and does not fork.
 */
static void
end_all(void)
{
	const uint64_t one = 1;

	if (syscall(SYS_write, TOLD, &one, sizeof(one)) < 0)
		_exit(1); /* the end of everything in the namespace */
	kill(-1, SIGKILL);
}

static struct timespec
time_until(int64_t at_ms)
{
	int64_t ms = at_ms - now_ms();

	if (ms < 0)
		ms = 0;
	return (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
}

/* --- the loop ----------------------------------------------------------- */

static void
reap(void)
{
	while (syscall(SYS_wait4, -1, NULL, WNOHANG, NULL) > 0)
		continue;
}

static void
wait_for_child(const sigset_t *all, const struct timespec *most)
{
	syscall(SYS_rt_sigtimedwait, all, NULL, most, (size_t)(_NSIG / 8));
}

/* Children that end do not bring the next look forward. */
static void
watch(struct memory_watch *w, const sigset_t *all)
{
	int64_t next = now_ms() + w->pause_ms;

	for (;;) {
		struct timespec most = time_until(next);

		reap();
		wait_for_child(all, &most);
		if (now_ms() < next)
			continue;
		if (memory_watch_look(w))
			end_all();
		next = now_ms() + w->pause_ms;
	}
}

/* --- the process -------------------------------------------------------- */

static int
place_init_descriptors(int ready, int told)
{
	if (move_fd(ready, READY, true) < 0 ||
	    (told >= 0 && move_fd(told, TOLD, true) < 0))
		return -1;
	close_from(told >= 0 ? TOLD + 1 : READY + 1);
	return 0;
}

ON_OWN_STACK void
inside_init(const struct inside *in, int ready, int told)
{
	bool dies = in->options.parent_death_signal;
	struct memory_watch w;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_DFL);
	setsid();
	prctl(PR_SET_NAME, "execd-init");
	if (place_init_descriptors(ready, told) < 0 ||
	    (told >= 0 && memory_watch_begin(&w, in->options.memory_bytes) < 0))
		_exit(1);
	if (inside_drop() < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    (dies && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) ||
	    load_filter(told >= 0) < 0 ||
	    syscall(SYS_write, READY, "", 1) != 1 ||
	    syscall(SYS_close, READY) < 0)
		_exit(1);
	if (told >= 0)
		watch(&w, &all);
	for (;;) {
		reap();
		wait_for_child(&all, NULL);
	}
}
