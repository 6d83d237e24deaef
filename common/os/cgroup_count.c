/* SPDX-License-Identifier: ISC */
/*
 * What the kernel counts in a control group of commands; root's execd asks for
 * nothing of it.
 */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "util.h"

/* Reads N from a line "KEY N" of the file. Returns 0 if the file or the key
 * does not exist. */
static uint64_t
read_count(int dir, const char *name, const char *key)
{
	size_t len = strlen(key);
	unsigned long long n = 0;
	char text[1024];
	const char *at;

	if (dir < 0 || cgroup_read_file(dir, name, text, sizeof(text)) <= 0)
		return 0;
	for (at = text; at != NULL; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return sscanf(at + len, " %llu", &n) == 1 ? n : 0;
	}
	return 0;
}

uint64_t
cgroup_forks_denied(const struct cgroup *c)
{
	bool unified = c->dirs[CGROUP_UNIFIED] >= 0;

	return read_count(c->dirs[unified ? CGROUP_UNIFIED : CGROUP_PIDS],
	    "pids.events", "max");
}

int
cgroup_open_oom(const struct cgroup *c)
{
	bool v1 = c->dirs[CGROUP_MEMORY] >= 0;
	int fd = openat(c->dirs[v1 ? CGROUP_MEMORY : CGROUP_UNIFIED],
	    v1 ? "memory.oom_control" : "memory.events", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Both files have a line "oom_kill N". */
uint64_t
cgroup_read_oom(int fd)
{
	unsigned long long n = 0;
	char text[1024];
	const char *at;
	ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return 0;
	text[len] = '\0';
	at = strstr(text, "oom_kill ");
	return at != NULL && sscanf(at, "oom_kill %llu", &n) == 1 ? n : 0;
}

uint64_t
cgroup_oom_kills(const struct cgroup *c)
{
	_cleanup_close_ int fd = cgroup_open_oom(c);

	return cgroup_read_oom(fd);
}

static int
open_own_oom(void)
{
	struct cgroup own;
	int fd;

	cgroup_open_own(&own);
	fd = cgroup_open_oom(&own);
	cgroup_close(&own);
	return fd;
}

uint64_t
cgroup_own_oom_kills(void)
{
	static int count_fd = -1;
	static bool tried;

	if (!tried)
		count_fd = open_own_oom();
	tried = true;
	return cgroup_read_oom(count_fd);
}

bool
cgroup_is_empty(const struct cgroup *c)
{
	char byte[2];

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c->dirs[i] >= 0)
			return cgroup_read_file(c->dirs[i], "cgroup.procs",
				   byte, sizeof(byte)) == 0;
	return true;
}
