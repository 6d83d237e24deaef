/* SPDX-License-Identifier: ISC */
#include "program.h"

#include <sys/resource.h>

/* Tells whether the file begins with "#!" and its first line ends with CR
 * LF. */
static bool
has_carriage_return(int fd)
{
	char line[256]; /* execve(2) reads as much */
	ssize_t n = fd < 0 ? -1 : pread(fd, line, sizeof(line), 0);
	const char *end = n > 2 ? memchr(line, '\n', (size_t)n) : NULL;

	return end != NULL && line[0] == '#' && line[1] == '!' &&
	       end[-1] == '\r';
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
	int err = ENOENT, why;

	for (const char *const *c = candidates; *c != NULL; c++) {
		/* It is closed by a successful exec. */
		int fd = open(*c, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

		/* If another process holds a lease on the file (fcntl(2),
		 * F_SETLEASE), execve(2) would wait for that process for up to
		 * 45 seconds. */
		if (fd < 0 && errno == EWOULDBLOCK)
			return -ETXTBSY;
		execve(*c, argv, envp);
		why = errno;
		if (why == EACCES) {
			if (is_refused(*c, candidates[1] != NULL))
				err = EACCES;
		} else if (why != ENOENT && why != ENOTDIR)
			return -why;
		else if (why == ENOENT && has_carriage_return(fd))
			err = PROGRAM_CARRIAGE_RETURN;
		else if (candidates[1] == NULL)
			err = why;
		if (fd >= 0)
			close(fd);
	}
	return -err;
}

int
program_limit_cpu(uint32_t seconds)
{
	const struct rlimit limit = { seconds, (rlim_t)seconds + 1 };
	struct rlimit have;

	if (seconds == 0)
		return 0;
	if (getrlimit(RLIMIT_CPU, &have) < 0)
		return -errno;
	if (have.rlim_max < limit.rlim_max)
		return 0;
	return setrlimit(RLIMIT_CPU, &limit) < 0 ? -errno : 0;
}
