/*
 * The last steps before a program.
 */
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

void
program_reset_signals(void)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
program_execute(
    const char *const *candidates, char *const argv[], char *const envp[])
{
	int err = ENOENT;

	for (const char *const *c = candidates; *c != NULL; c++) {
		execve(*c, argv, envp);
		if (errno == EACCES)
			err = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			return -errno;
		else if (candidates[1] == NULL)
			err = errno;
	}
	return -err;
}
