/* SPDX-License-Identifier: ISC */
/* Signals that are pending for a command, and answers that it may not have
 * heard. */
#include "socket_calls.h"

#include "call_proxy.h"

#define ERESTARTSYS 512 /* of the kernel, which shows it to no program */
#define BIT(sig)    (1ull << ((sig)-1))

/* --- answers that may be unheard ---------------------------------------- */

static struct call_answer kept[64];

static bool
is_same(const struct call_made *a, const struct call_made *b)
{
	return a->socket == b->socket && a->pid == b->pid &&
	       memcmp(&a->call, &b->call, sizeof(a->call)) == 0 &&
	       memcmp(&a->asked, &b->asked, sizeof(a->asked)) == 0;
}

static struct call_answer *
find(const struct call_made *made)
{
	for (size_t i = 0; i < nitems(kept); i++)
		if (made->socket != 0 && is_same(&kept[i].made, made))
			return &kept[i];
	return NULL;
}

void
call_signals_keep(const struct call_made *made, int err, bool heard)
{
	static size_t next;
	struct call_answer *a = find(made);

	if (a == NULL)
		a = &kept[next++ % nitems(kept)];
	*a = (struct call_answer){ *made, err, heard };
}

const struct call_answer *
call_signals_find(const struct call_made *made)
{
	return find(made);
}

/* --- signals ------------------------------------------------------------ */

/*
 * A signal of the whole process is told to its first thread if that one wants
 * it; SIGCHLD is told to the thread that started the child. The kernel's
 * ERESTARTSYS is for a thread that was told of a signal, and any other one
 * would see that number, so it gets EINTR.
 */
static bool
is_told(bool first, long threads, uint64_t own, uint64_t shared)
{
	if (threads > 1)
		shared &= ~BIT(SIGCHLD);
	return own != 0 || (first && shared != 0);
}

/* What the first thread leaves to the others. It may be slow to take the rest,
 * and the end of another thread's call would be for nobody. */
static uint64_t
left_by(const struct call_proxy_status *first)
{
	return strstr(first->text, "\nState:\tZ") != NULL
		   ? UINT64_MAX
		   : call_proxy_status_get(first, "\nSigBlk:", 16) |
			 BIT(SIGCHLD);
}

int
call_signals_interrupt(pid_t pid, pid_t process, bool timed)
{
	struct call_proxy_status s, f;
	bool first = pid == process;
	uint64_t own, shared, blocked;

	if (call_proxy_status_read(&s, pid) < 0 ||
	    (!first && call_proxy_status_read(&f, process) < 0))
		return 0;
	blocked = call_proxy_status_get(&s, "\nSigBlk:", 16);
	own = call_proxy_status_get(&s, "\nSigPnd:", 16) & ~blocked;
	shared = call_proxy_status_get(&s, "\nShdPnd:", 16) & ~blocked;
	if (!first)
		shared &= left_by(&f);
	/* Each thread of a process that is stopped was told so. */
	if ((own | shared) == 0)
		return !first && strstr(f.text, "\nState:\tT") != NULL
			   ? -ERESTARTSYS
			   : 0;
	return !timed && is_told(first,
			     (long)call_proxy_status_get(&s, "\nThreads:", 10),
			     own, shared)
		   ? -ERESTARTSYS
		   : -EINTR;
}
