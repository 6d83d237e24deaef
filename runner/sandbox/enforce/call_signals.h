/* SPDX-License-Identifier: ISC */
/*
 * What signals do to a call that the proxy carries out (call_proxy.h). The
 * kernel waits for the proxy's answer in the place of the call. A signal that
 * comes before the proxy has taken the call up lets the kernel begin it again,
 * which nobody notices. After that, since Linux 5.19, only a signal that kills
 * ends the wait (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), so that a call which
 * the proxy has begun is carried out once, however many signals come. Two
 * things follow from this.
 *
 * A call that waits for somebody else, as connect(2) does, would hold back each
 * signal until then. So the proxy looks for signals itself, and lets the kernel
 * end such a call as it does where there is no proxy.
 *
 * Before Linux 5.19 each signal ends the wait, and up to 6.16 one that comes
 * just before the call is taken up can. Then the call is begun again although
 * it was carried out. What is done for a socket cannot be done twice, so the
 * latest answers are kept for the next time. A pair of sockets is made anew
 * there, and the first one stays open in the command.
 *
 * Sources: seccomp_unotify(2), signal(7), proc_pid_status(5).
 */
#ifndef CALL_SIGNALS_H
#define CALL_SIGNALS_H

#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base.h"

/*
 * Two calls are the same if one thread makes both of them, at one place of its
 * program, with equal arguments, one socket and one address.
 */
struct call_made {
	pid_t pid; /* the thread */
	struct seccomp_data call;
	struct sockaddr_storage asked; /* the address that it gave */
	uint64_t socket; /* its cookie, which is never another's; 0: none */
};

struct call_answer {
	struct call_made made;
	int err;
	bool heard; /* false: the thread had gone from its call by then */
};

/* Keeps the answer to a call that was carried out. */
void call_signals_keep(const struct call_made *made, int err, bool heard);

/* Returns the kept answer to the same call, or NULL. It is valid until the next
 * call of call_signals_keep(). */
const struct call_answer *call_signals_find(const struct call_made *made);

/*
 * Tells whether a signal is to end a call that waits. `process` is the thread
 * group of `pid`. timed: SO_SNDTIMEO limits the wait. Returns 0, or what the
 * proxy answers: -EINTR, or the kernel's own -ERESTARTSYS, which begins the
 * call again after the signal if the handler says so (SA_RESTART), there is
 * none, or the process was only stopped.
 */
int call_signals_interrupt(pid_t pid, pid_t process, bool timed);

#endif
