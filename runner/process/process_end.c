/* SPDX-License-Identifier: ISC */
/*
 * Ends a command: asks it, signals it, or kills it at a deadline. A deadline
 * holds for everything that the command started: what still holds its streams
 * then is killed too.
 */
#include <event2/event.h>
#include <signal.h>
#include <sys/wait.h>

#include "log.h"
#include "loop.h"
#include "process.h"
#include "reserve.h"

static int
signal_members(struct process *p, int sig, enum process_target target)
{
	const struct process_tree t = { p->leader, p->mark, p->reaped_at };

	return process_tree_signal(&t, sig, target);
}

/*
 * Kills the control group, daemons included; exact where there is a group.
 * Returns 0 or -errno; after an error some processes may be left.
 */
static int
kill_group(struct process *p)
{
	int err = p->group != NULL ? command_cgroup_kill(p->group) : 0;

	if (err < 0)
		log_error(err,
		    "the control group of process %d cannot be killed",
		    (int)p->leader);
	return err;
}

static int
signal_tree(struct process *p, int sig, enum process_target target)
{
	int n;

	reserve_give(RESERVE_TO_KILL);
	n = signal_members(p, sig, target);
	if (sig == SIGKILL && target == PROCESS_TREE)
		kill_group(p);
	if (n < 0)
		log_error(
		    n, "signal %d to the processes of %d", sig, (int)p->leader);
	reserve_keep();
	return n;
}

void
process_end_kill_all(struct process *p)
{
	int n = 0;

	reserve_give(RESERVE_TO_KILL);
	if (kill_group(p) < 0 || p->mark != 0)
		n = signal_members(p, SIGKILL, PROCESS_TREE);
	if (n < 0)
		log_error(n, "killing the processes of %d", (int)p->leader);
	reserve_keep();
}

void
process_end_without_init(struct process *p)
{
	if (p->sandbox == NULL || p->init.pid > 0)
		return;
	/*
	 * What it left behind is our child now, or below one. Usually there is
	 * nothing, and /proc need not be searched.
	 */
	if (!p->reaped || reaper_has_orphans())
		signal_tree(p, SIGKILL, PROCESS_TREE);
}

/* Tells whether the kernel has ended it, even if it is not reaped yet. */
static bool
is_over(const struct process *p)
{
	siginfo_t info = { 0 };

	return p->reaped || (waitid(P_PID, (id_t)p->pid, &info,
				 WEXITED | WNOHANG | WNOWAIT) == 0 &&
				info.si_pid != 0);
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct process *p = arg;

	p->deadline_ms = 0;
	p->timed_out = p->deadline_for != DEADLINE_GRACE && !is_over(p);
	p->killed = true;
	signal_tree(p, SIGKILL, PROCESS_TREE);
	if (!process_terminate(p))
		process_abandon(p);
}

/* Sets a deadline, unless an earlier one is set. */
static void
plan(struct process *p, struct event_base *base, uint64_t ms,
    enum process_deadline why)
{
	struct timeval tv = timeval_of_ms(ms);
	int64_t at = now_ms() + (int64_t)tv.tv_sec * 1000 + tv.tv_usec / 1000;

	if (p->deadline_ms != 0 && p->deadline_ms <= at)
		return;
	process_end_clear(p);
	p->deadline_ms = at;
	p->deadline_for = why;
	event_assign(&p->deadline, base, -1, 0, deadline_cb, p);
	loop_add(&p->deadline, &tv);
}

void
process_end_clear(struct process *p)
{
	if (p->deadline_ms != 0)
		event_del(&p->deadline);
	p->deadline_ms = 0;
}

void
process_end_closed(struct process *p)
{
	if (p->deadline_for != DEADLINE_GRACE)
		process_end_clear(p);
}

void
process_set_timeout(struct process *p, struct event_base *base,
    uint64_t timeout_ms, enum process_deadline why)
{
	/*
	 * Counts from now, not from the beginning of the turn, so that it is
	 * never early.
	 */
	event_base_update_cache_time(base);
	plan(p, base, timeout_ms, why);
}

/*
 * A stopped process gets SIGTERM only when it continues. A shell on a terminal
 * ignores SIGTERM, but not SIGHUP.
 */
void
process_ask_to_end(struct process *p)
{
	if (p->tty)
		process_signal(p, SIGHUP);
	process_signal(p, SIGTERM);
	process_signal(p, SIGCONT);
}

bool
process_end_gracefully(
    struct process *p, struct event_base *base, uint64_t grace_ms)
{
	if (p->reaped)
		return false;
	process_ask_to_end(p);
	plan(p, base, grace_ms, DEADLINE_GRACE);
	return true;
}

bool
process_signal_target(struct process *p, int sig, enum process_target target)
{
	p->killed |= sig == SIGKILL;
	p->signals |= UINT64_C(1) << sig;
	if (p->state.closed || (p->reaped && target == PROCESS_ALONE))
		return false;
	if (!p->reaped && target == PROCESS_ALONE)
		return kill(p->pid, sig) == 0;
	if (!p->reaped && target == PROCESS_GROUP)
		return kill(-p->pid, sig) == 0;
	return signal_tree(p, sig, target) > 0;
}
