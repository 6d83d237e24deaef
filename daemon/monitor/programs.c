/*
 * Where the other programs are, seen from the running execd itself.
 */
#include "programs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor_paths.h"
#include "util.h"

#define INSTALLED(execd)                                                       \
	{                                                                      \
		execd, "/" EXECD_LIBEXECDIR "/execd-frontend",                 \
		    "/" EXECD_LIBEXECDIR "/execd-runner",                      \
		    "/" EXECD_LIBEXECDIR "/execd-http",                        \
		    "/" EXECD_LIBEXECDIR "/execd-keys"                         \
	}

/* These layouts are found from the directory that execd lies in:
 * $prefix/sbin/execd and BUILD/daemon/monitor/execd. */
static const struct layout {
	const char *execd, *frontend, *runner, *http, *keys;
} layouts[] = {
	{ "/daemon/monitor/execd", "/daemon/frontend/execd-frontend",
	    "/runner/execd-runner", "/runner/http/execd-http",
	    "/daemon/keys/execd-keys" },
	INSTALLED("/" EXECD_SBINDIR "/execd"),
	/* /usr/sbin may be a link to bin: the kernel knows the real name. */
	INSTALLED("/bin/execd"),
};

static const struct layout *
find_layout(const char *self)
{
	size_t len = strlen(self);

	for (size_t i = 0; i < nitems(layouts); i++) {
		size_t tail = strlen(layouts[i].execd);

		if (len >= tail &&
		    strcmp(self + len - tail, layouts[i].execd) == 0)
			return &layouts[i];
	}
	return NULL;
}

static int
open_program(const char *base, size_t base_len, const char *tail, int *fd,
    char missing[PATH_MAX])
{
	int n =
	    snprintf(missing, PATH_MAX, "%.*s%s", (int)base_len, base, tail);

	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	if (access(missing, X_OK) < 0)
		return -errno;
	*fd = open(missing, O_PATH | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

int
programs_open(struct programs *p, char missing[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const struct layout *l;
	size_t base;
	int err;

	snprintf(missing, PATH_MAX, "/proc/self/exe");
	if (n < 0)
		return -errno;
	self[n] = '\0';
	l = find_layout(self);
	if (l == NULL) {
		snprintf(missing, PATH_MAX,
		    "execd-frontend (seen from %.4000s)", self);
		return -ENOENT;
	}
	base = (size_t)n - strlen(l->execd);
	err = open_program(self, base, l->frontend, &p->frontend, missing);
	if (err == 0)
		err = open_program(self, base, l->runner, &p->runner, missing);
	if (err == 0)
		err = open_program(self, base, l->http, &p->http, missing);
	if (err == 0)
		err = open_program(self, base, l->keys, &p->keys, missing);
	return err;
}
