/* SPDX-License-Identifier: ISC */
/*
 * Sockets that systemd bound and passes to execd.
 */
#include "activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "log.h"
#include "util.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

static char *names[CONTROL_LISTENERS_MAX];
static int count;

static int
number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : 0;
}

void
activation_init(void)
{
	const char *text = getenv("LISTEN_FDNAMES");
	_cleanup_free_ char *copy = xstrdup(text ? text : "");
	char *rest = copy, *name;

	/* They are for another process if it is not our pid. */
	if (number_of("LISTEN_PID") == getpid())
		count = number_of("LISTEN_FDS");
	if (count > CONTROL_LISTENERS_MAX)
		log_warn(0, "systemd gives %d sockets, the first %d are known",
		    count, CONTROL_LISTENERS_MAX);
	if (count < 0 || count > CONTROL_LISTENERS_MAX)
		count = count < 0 ? 0 : CONTROL_LISTENERS_MAX;
	for (int i = 0; i < count; i++) {
		name = strsep(&rest, ":");
		names[i] = xstrdup(name && *name ? name : "unknown");
		fcntl(FIRST_FD + i, F_SETFD, FD_CLOEXEC);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

int
activation_find(const char *name)
{
	for (int i = 0; i < count; i++) {
		int fd;

		if (strcmp(names[i], name) != 0)
			continue;
		fd = fcntl(FIRST_FD + i, F_DUPFD_CLOEXEC, 4);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}
