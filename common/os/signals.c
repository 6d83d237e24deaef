/* SPDX-License-Identifier: ISC */
#include "signals.h"

#include <signal.h>

#include "util.h"

/* A handler, because execve(2) does not reset what is ignored. */
static void
nothing(int sig)
{
}

void
signals_ignore_unused(void)
{
	static const int unused[] = { SIGALRM, SIGVTALRM, SIGPROF, SIGIO,
		SIGPWR, SIGSTKFLT, SIGXFSZ, SIGXCPU };
	struct sigaction action = { .sa_handler = nothing,
		.sa_flags = SA_RESTART };

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < nitems(unused); i++)
		sigaction(unused[i], &action, NULL);
}
