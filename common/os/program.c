/* SPDX-License-Identifier: ISC */
/*
 * The last steps before a program.
 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

void
program_reset_signals(void)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Does somebody hold a lease on the program (fcntl(2), F_SETLEASE)? execve(2)
 * would wait for its holder, up to 45 seconds, and with it whoever waits for
 * the start. What cannot be read has no say here. */
static bool
is_leased(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return errno == EWOULDBLOCK;
	close(fd);
	return false;
}

/* A directory of PATH that may not be searched says nothing of the programs
 * that may be in it; a program that is named by its path is refused. */
static bool
is_refused(const char *path, bool searched)
{
	return !searched || faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0;
}

int
program_execute(
    const char *const *candidates, char *const argv[], char *const envp[])
{
	int err = ENOENT;

	for (const char *const *c = candidates; *c != NULL; c++) {
		if (is_leased(*c))
			return -ETXTBSY;
		execve(*c, argv, envp);
		if (errno == EACCES) {
			if (is_refused(*c, candidates[1] != NULL))
				err = EACCES;
		} else if (errno != ENOENT && errno != ENOTDIR)
			return -errno;
		else if (candidates[1] == NULL)
			err = errno;
	}
	return -err;
}
