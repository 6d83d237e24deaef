/* SPDX-License-Identifier: ISC */
/*
 * Why a command ended.
 */
#include "end_cause.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "session.h"

static uint64_t
to_ms(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000 + (uint64_t)tv->tv_usec / 1000;
}

/*
 * At the hard limit the kernel kills with SIGKILL and gives no other sign
 * (setrlimit(2)). The runner has the same limit as its commands. The kernel
 * counts ticks for the limit, but getrusage(2) measures exactly: on a busy host
 * a process had used 1.68 s when the limit of 2 s killed it. So half of the
 * limit is taken as reached.
 */
static bool
used_all_cpu_time(const struct rusage *usage)
{
	uint64_t ms = to_ms(&usage->ru_utime) + to_ms(&usage->ru_stime);
	struct rlimit limit;

	return getrlimit(RLIMIT_CPU, &limit) == 0 &&
	       limit.rlim_max != RLIM_INFINITY && ms >= limit.rlim_max * 500;
}

static enum end_cause
cause_of_signal(const struct process *p, int sig)
{
	if (p->oom_killed)
		return END_MEMORY;
	if (sig == SIGXCPU ||
	    (sig == SIGKILL && !p->killed && used_all_cpu_time(&p->usage)))
		return END_CPU_TIME;
	if (sig == SIGXFSZ)
		return END_FILE_SIZE;
	if (sig == SIGSYS && p->sandboxed)
		return END_FILTER;
	return p->killed || p->signals & UINT64_C(1) << sig ? END_CLIENT
							    : END_SIGNAL;
}

enum end_cause
end_cause(const struct session_process *sp)
{
	const struct process *p = &sp->process;

	if (sp->unrecorded)
		return END_RECORDING;
	if (p->timed_out)
		return p->deadline_for == DEADLINE_COMMAND
			   ? END_COMMAND_DEADLINE
			   : END_TIMEOUT;
	if (sp->session->terminating || sp->orphaned)
		return END_SESSION;
	if (WIFSIGNALED(p->wait_status))
		return cause_of_signal(p, WTERMSIG(p->wait_status));
	return END_ITSELF;
}
