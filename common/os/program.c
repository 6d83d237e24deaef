/* SPDX-License-Identifier: ISC */
#include "program.h"

#include "base.h"

/* Returns true if another process holds a lease on the file (fcntl(2),
 * F_SETLEASE). execve(2) would wait for that process for up to 45 seconds. A
 * file that cannot be opened for another reason counts as not leased. */
static bool
is_leased(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return errno == EWOULDBLOCK;
	close(fd);
	return false;
}

/* With several candidates, EACCES may only mean that a directory of PATH may
 * not be searched, which is no refusal. A program that is named by its path is
 * always refused. */
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
