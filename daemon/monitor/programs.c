/*
 * Where the other programs are, seen from the running execd itself.
 */
#include "programs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor_paths.h"

/* Both layouts are found from the directory that execd lies in:
 * $prefix/sbin/execd and BUILD/daemon/monitor/execd. */
static const struct layout {
	const char *execd;
	const char *frontend;
	const char *runner;
} layouts[] = {
	{ "/daemon/monitor/execd", "/daemon/frontend/execd-frontend",
	    "/runner/execd-runner" },
	{ "/" EXECD_SBINDIR "/execd", "/" EXECD_LIBEXECDIR "/execd-frontend",
	    "/" EXECD_LIBEXECDIR "/execd-runner" },
};

static int
join(char out[PATH_MAX], const char *base, size_t base_len, const char *tail)
{
	int n = snprintf(out, PATH_MAX, "%.*s%s", (int)base_len, base, tail);

	return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int
try_layout(struct programs *p, const char *self, const struct layout *l)
{
	size_t len = strlen(self), tail = strlen(l->execd);
	int err;

	if (len < tail || strcmp(self + len - tail, l->execd) != 0)
		return -ENOENT;
	err = join(p->frontend, self, len - tail, l->frontend);
	if (err < 0)
		return err;
	return join(p->runner, self, len - tail, l->runner);
}

int
programs_find(struct programs *p, char missing[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *both[] = { p->frontend, p->runner };

	snprintf(missing, PATH_MAX, "/proc/self/exe");
	if (n < 0)
		return -errno;
	self[n] = '\0';
	if (try_layout(p, self, &layouts[0]) < 0 &&
	    try_layout(p, self, &layouts[1]) < 0) {
		snprintf(missing, PATH_MAX,
		    "execd-frontend (seen from %.4000s)", self);
		return -ENOENT;
	}
	for (int i = 0; i < 2; i++) {
		snprintf(missing, PATH_MAX, "%s", both[i]);
		if (access(both[i], X_OK) < 0)
			return -errno;
	}
	return 0;
}
