/* SPDX-License-Identifier: ISC */
#include "programs.h"

#include "base.h"
#include "program_paths.h"

/* Where they are in the build tree. Installed, all but execd lie together. */
static const struct {
	const char *directory, *name;
} programs[INSTALLED_PROGRAMS] = {
	[INSTALLED_FRONTEND] = { "/daemon/frontend/", "execd-frontend" },
	[INSTALLED_RUNNER] = { "/runner/", "execd-runner" },
	[INSTALLED_HTTP] = { "/runner/http/", "execd-http" },
	[INSTALLED_KEYS] = { "/daemon/keys/", "execd-keys" },
	[INSTALLED_BROKER] = { "/daemon/broker/", "execd-broker" },
	[INSTALLED_FILES] = { "/runner/", "execd-files" },
	[INSTALLED_NETPROXY] = { "/runner/netproxy/", "execd-netproxy" },
	[INSTALLED_SANDBOX] = { "/runner/", "execd-sandbox" },
	[INSTALLED_CHILD] = { "/daemon/child/", "execd-child" },
	[INSTALLED_EXECD] = { "/daemon/root/", "execd" },
};

/* Where the running program may be, below the build tree or the prefix. */
#define BUILT "/daemon/"
static const char *const layouts[] = {
	BUILT "root/execd",
	BUILT "broker/execd-broker",
	"/" EXECD_SBINDIR "/execd",
	/* /usr/sbin may be a link to bin. The kernel knows the real name. */
	"/bin/execd",
	"/" EXECD_LIBEXECDIR "/execd-broker",
};

/* Comes after the name of a program that an upgrade has replaced (proc(5)). */
#define DELETED " (deleted)"

const char *
programs_self(void)
{
	static char self[PATH_MAX];
	size_t len, deleted = strlen(DELETED);
	ssize_t n = 0;

	if (self[0] == '\0')
		n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return NULL;
	len = strlen(self);
	if (len > deleted && strcmp(self + len - deleted, DELETED) == 0)
		self[len - deleted] = '\0';
	return self;
}

static const char *
find_layout(const char *self)
{
	size_t len = strlen(self);

	for (size_t i = 0; i < nitems(layouts); i++) {
		size_t tail = strlen(layouts[i]);

		if (len >= tail && strcmp(self + len - tail, layouts[i]) == 0)
			return layouts[i];
	}
	return NULL;
}

int
programs_open_one(enum installed_program program, char missing[PATH_MAX])
{
	const char *self = programs_self(), *layout;
	int fd, n;

	snprintf(missing, PATH_MAX, "/proc/self/exe");
	if (self == NULL)
		return -errno;
	layout = find_layout(self);
	if (layout == NULL) {
		snprintf(missing, PATH_MAX,
		    "execd's programs (seen from %.4000s)", self);
		return -ENOENT;
	}
	n = snprintf(missing, PATH_MAX, "%.*s%s%s",
	    (int)(strlen(self) - strlen(layout)), self,
	    strncmp(layout, BUILT, strlen(BUILT)) == 0
		? programs[program].directory
	    : program == INSTALLED_EXECD ? "/" EXECD_SBINDIR "/"
					 : "/" EXECD_LIBEXECDIR "/",
	    programs[program].name);
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	if (access(missing, X_OK) < 0)
		return -errno;
	fd = open(missing, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int
programs_open_self(void)
{
	const char *self = programs_self();
	int fd = self != NULL ? open(self, O_PATH | O_CLOEXEC) : -1;

	return fd < 0 ? -errno : fd;
}

int
programs_open(struct programs *p, char missing[PATH_MAX])
{
	*p = (struct programs)PROGRAMS_NONE;
	for (int i = 0; i < PROGRAMS_OPENED; i++) {
		int fd = p->fds[i] = programs_open_one(i, missing);

		if (fd < 0) {
			programs_close(p);
			return fd;
		}
	}
	return 0;
}

void
programs_close(struct programs *p)
{
	for (int i = 0; i < PROGRAMS_OPENED; i++)
		if (p->fds[i] >= 0)
			close(steal_fd(&p->fds[i]));
}
