/* SPDX-License-Identifier: ISC */
#include "signals.h"

#include "base.h"

void
signals_ignore_unused(bool hangup)
{
	static const int unused[] = { SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM,
		SIGSTKFLT, SIGTTIN, SIGTTOU, SIGXCPU, SIGXFSZ, SIGVTALRM,
		SIGPROF, SIGIO, SIGPWR };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < nitems(unused); i++)
		sigaddset(&set, unused[i]);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sigaddset(&set, sig);
	if (hangup)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}
