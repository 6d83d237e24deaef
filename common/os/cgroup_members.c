/* SPDX-License-Identifier: ISC */
/*
 * The members of a control group: how processes join it, what the kernel counts
 * of them, and how they are killed. Apart, because root's execd asks for
 * nothing of it.
 */
#include "base.h"
#include "cgroup.h"

/* Reads N from a line "KEY N" of the file. Returns 0 if the file or the key
 * does not exist. */
uint64_t
cgroup_read_count(int dir, const char *name, const char *key)
{
	size_t len = strlen(key);
	unsigned long long n = 0;
	char text[1024];
	const char *at;

	if (dir < 0 || read_whole(dir, name, text, sizeof(text)) <= 0)
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

	return cgroup_read_count(
	    c->dirs[unified ? CGROUP_UNIFIED : CGROUP_PIDS], "pids.events",
	    "max");
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
			return read_whole(c->dirs[i], "cgroup.procs", byte,
				   sizeof(byte)) == 0;
	return true;
}

/* The kernel counts links of a group as of a directory. */
bool
cgroup_is_nested(const struct cgroup *c)
{
	struct stat st;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c->dirs[i] >= 0 && fstat(c->dirs[i], &st) == 0 &&
		    st.st_nlink > 2)
			return true;
	return false;
}

/* --- joining ------------------------------------------------------------ */

/* Root's execd has a way of its own: its runners join once, and keep no file
 * open for it. */

void
cgroup_close_joins(int joins[CGROUP_HIERARCHIES])
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (joins[i] >= 0)
			close(joins[i]);
		joins[i] = -1;
	}
}

int
cgroup_open_joins(const struct cgroup *c, int joins[CGROUP_HIERARCHIES])
{
	int err = 0;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		joins[i] = -1;
		if (c->dirs[i] < 0 || err < 0)
			continue;
		joins[i] = openat(c->dirs[i],
		    i == CGROUP_UNIFIED ? "cgroup.procs" : "tasks",
		    O_WRONLY | O_CLOEXEC);
		if (joins[i] < 0)
			err = -errno;
	}
	if (err < 0)
		cgroup_close_joins(joins);
	return err;
}

int
cgroup_join(const int joins[CGROUP_HIERARCHIES], bool born)
{
	for (int i = born ? CGROUP_UNIFIED + 1 : 0; i < CGROUP_HIERARCHIES; i++)
		if (joins[i] >= 0 && write(joins[i], "0", 1) != 1)
			return -errno;
	return 0;
}

/* --- killing ------------------------------------------------------------ */

static int
kill_members(int dir)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	int pid;

	if (f == NULL)
		return -errno;
	/* A pid of 0 is outside our pid namespace and cannot be signalled. */
	while (fscanf(f, "%d", &pid) == 1)
		if (pid > 0)
			kill((pid_t)pid, SIGKILL);
	fclose(f);
	return 0;
}

/* Version 1 has no cgroup.kill. The members are first kept from forking, so
 * that none can escape the list. */
static int
kill_by_list(int dir)
{
	int err = write_whole(dir, "pids.max", "0");

	return err < 0 ? err : kill_members(dir);
}

int
cgroup_kill(const struct cgroup *c)
{
	if (c->dirs[CGROUP_UNIFIED] >= 0)
		return write_whole(c->dirs[CGROUP_UNIFIED], "cgroup.kill", "1");
	if (c->dirs[CGROUP_PIDS] >= 0)
		return kill_by_list(c->dirs[CGROUP_PIDS]);
	return -ENOENT;
}
