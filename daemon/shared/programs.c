/* SPDX-License-Identifier: ISC */
/*
 * Finds the other programs from where the running one is.
 */
#include "programs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "program_paths.h"
#include "util.h"

#define INSTALLED(self)                                                        \
	{                                                                      \
		self,                                                          \
		{                                                              \
			"/" EXECD_LIBEXECDIR "/execd-broker",                  \
			    "/" EXECD_LIBEXECDIR "/execd-frontend",            \
			    "/" EXECD_LIBEXECDIR "/execd-runner",              \
			    "/" EXECD_LIBEXECDIR "/execd-http",                \
			    "/" EXECD_LIBEXECDIR "/execd-keys"                 \
		}                                                              \
	}
#define BUILT(self)                                                            \
	{                                                                      \
		self,                                                          \
		{                                                              \
			"/daemon/broker/execd-broker",                         \
			    "/daemon/frontend/execd-frontend",                 \
			    "/runner/execd-runner", "/runner/http/execd-http", \
			    "/daemon/keys/execd-keys"                          \
		}                                                              \
	}

/* These layouts are tried from the directory of the running program:
 * $prefix/sbin/execd, $prefix/libexec/execd-broker, and the build tree. */
static const struct layout {
	const char *self;
	const char *programs[INSTALLED_PROGRAMS];
} layouts[] = {
	BUILT("/daemon/root/execd"),
	BUILT("/daemon/broker/execd-broker"),
	INSTALLED("/" EXECD_SBINDIR "/execd"),
	/* /usr/sbin may be a link to bin. The kernel knows the real name. */
	INSTALLED("/bin/execd"),
	INSTALLED("/" EXECD_LIBEXECDIR "/execd-broker"),
};

/* Comes after the name of a program that an upgrade has replaced (proc(5)). */
#define DELETED " (deleted)"

/* Finds where this program was when it was executed. Later it may be
 * renamed. */
static const char *
find_self(void)
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

static const struct layout *
find_layout(const char *self)
{
	size_t len = strlen(self);

	for (size_t i = 0; i < nitems(layouts); i++) {
		size_t tail = strlen(layouts[i].self);

		if (len >= tail &&
		    strcmp(self + len - tail, layouts[i].self) == 0)
			return &layouts[i];
	}
	return NULL;
}

static int
open_at(
    const char *base, size_t base_len, const char *tail, char missing[PATH_MAX])
{
	int fd, n = snprintf(
		    missing, PATH_MAX, "%.*s%s", (int)base_len, base, tail);

	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	if (access(missing, X_OK) < 0)
		return -errno;
	fd = open(missing, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int
programs_open_one(enum installed_program program, char missing[PATH_MAX])
{
	const char *self = find_self();
	const struct layout *l;

	snprintf(missing, PATH_MAX, "/proc/self/exe");
	if (self == NULL)
		return -errno;
	l = find_layout(self);
	if (l == NULL) {
		snprintf(missing, PATH_MAX,
		    "execd's programs (seen from %.4000s)", self);
		return -ENOENT;
	}
	return open_at(self, strlen(self) - strlen(l->self),
	    l->programs[program], missing);
}

void
programs_note_self(void)
{
	find_self();
}

int
programs_open_self(void)
{
	const char *self = find_self();
	int fd = self != NULL ? open(self, O_PATH | O_CLOEXEC) : -1;

	return fd < 0 ? -errno : fd;
}

int
programs_open(struct programs *p, char missing[PATH_MAX])
{
	const struct {
		enum installed_program program;
		int *fd;
	} all[] = {
		{ INSTALLED_FRONTEND, &p->frontend },
		{ INSTALLED_RUNNER, &p->runner },
		{ INSTALLED_HTTP, &p->http },
		{ INSTALLED_KEYS, &p->keys },
	};

	for (size_t i = 0; i < nitems(all); i++) {
		*all[i].fd = programs_open_one(all[i].program, missing);
		if (*all[i].fd < 0)
			return *all[i].fd;
	}
	return 0;
}
