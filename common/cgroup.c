/*
 * Control groups, by descriptor.
 */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

#define LINE_BYTES 8192

/* Version 1 controllers by hierarchy; "" is version 2. */
static const char *const controllers[CGROUP_HIERARCHIES] = { "", "pids",
	"memory" };

/* --- files -------------------------------------------------------------- */

static int
write_file(int dir, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text);

	return fd < 0 || write(fd, text, (size_t)len) != len ? -errno : 0;
}

static ssize_t
read_file(int dir, const char *name, char *text, size_t cap)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, cap - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

static bool
has_word(const char *list, const char *word, char separator)
{
	size_t n = strlen(word);

	for (const char *p = list; *p != '\0';) {
		const char *end = strchrnul(p, separator);

		if ((size_t)(end - p) == n && memcmp(p, word, n) == 0)
			return true;
		p = *end == '\0' ? end : end + 1;
	}
	return false;
}

/* --- where the caller is ------------------------------------------------ */

/* A line of /proc/self/cgroup: "ID:CONTROLLERS:PATH". */
static bool
find_own_path(const char *controller, char path[PATH_MAX])
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[LINE_BYTES];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
		char *list = strchr(line, ':');
		char *own = list != NULL ? strchr(list + 1, ':') : NULL;

		if (own == NULL)
			continue;
		*own++ = '\0';
		own[strcspn(own, "\n")] = '\0';
		found = *controller == '\0'
			    ? list[1] == '\0'
			    : has_word(list + 1, controller, ',');
		if (found)
			snprintf(path, PATH_MAX, "%s", own);
	}
	if (f != NULL)
		fclose(f);
	return found;
}

/* Where a hierarchy is mounted, and what of it: proc_pid_mountinfo(5). */
static bool
find_mount(const char *controller, char root[PATH_MAX], char point[PATH_MAX])
{
	const char *type = *controller == '\0' ? "cgroup2" : "cgroup";
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[LINE_BYTES], fstype[64], options[1024];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
		const char *tail = strstr(line, " - ");

		if (tail == NULL ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) !=
			2 ||
		    sscanf(tail, " - %63s %*s %1023s", fstype, options) != 2)
			continue;
		found =
		    strcmp(fstype, type) == 0 &&
		    (*controller == '\0' || has_word(options, controller, ','));
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static int
open_hierarchy(const char *controller)
{
	char own[PATH_MAX], root[PATH_MAX], point[PATH_MAX];
	_cleanup_free_ char *path = NULL;
	const char *rest = own;
	int fd;

	if (!find_own_path(controller, own) ||
	    !find_mount(controller, root, point))
		return -ENOENT;
	/* Of a mount that shows only a part of the hierarchy. */
	if (strcmp(root, "/") != 0) {
		if (strncmp(own, root, strlen(root)) != 0)
			return -ENOENT;
		rest += strlen(root);
	}
	path = xasprintf("%s%s", point, strcmp(rest, "/") == 0 ? "" : rest);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void
cgroup_open_own(struct cgroup *c)
{
	char text[1024];

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		c->dirs[i] = open_hierarchy(controllers[i]);
	if (c->dirs[CGROUP_UNIFIED] < 0 || c->dirs[CGROUP_PIDS] < 0)
		return;
	if (read_file(c->dirs[CGROUP_UNIFIED], "cgroup.controllers", text,
		sizeof(text)) > 0) {
		text[strcspn(text, "\n")] = '\0';
		if (has_word(text, "pids", ' '))
			return;
	}
	close(c->dirs[CGROUP_UNIFIED]);
	c->dirs[CGROUP_UNIFIED] = -1;
}

/* --- groups ------------------------------------------------------------- */

bool
cgroup_is_open(const struct cgroup *c)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c->dirs[i] >= 0)
			return true;
	return false;
}

void
cgroup_close(struct cgroup *c)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (c->dirs[i] >= 0)
			close(c->dirs[i]);
		c->dirs[i] = -1;
	}
}

static int
make_in(int parent, const char *name)
{
	int fd;

	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(
	    parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int
cgroup_make(const struct cgroup *parent, const char *name, struct cgroup *c)
{
	*c = (struct cgroup)CGROUP_NONE;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		int fd =
		    parent->dirs[i] < 0 ? -1 : make_in(parent->dirs[i], name);

		if (fd < -1) {
			cgroup_close(c);
			cgroup_remove(parent, name);
			return fd;
		}
		c->dirs[i] = fd;
	}
	return 0;
}

void
cgroup_remove(const struct cgroup *parent, const char *name)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (parent->dirs[i] >= 0)
			unlinkat(parent->dirs[i], name, AT_REMOVEDIR);
}

static int
write_limit(int dir, const char *name, uint64_t value, const char *unlimited)
{
	char text[32];
	int err;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	err =
	    dir < 0 ? 0 : write_file(dir, name, value == 0 ? unlimited : text);
	/* A controller that is not there, or not handed down. */
	return err == -ENOENT ? 0 : err;
}

int
cgroup_limit(const struct cgroup *c, uint64_t pids, uint64_t memory_bytes)
{
	const struct {
		int dir;
		const char *name;
		uint64_t value;
		const char *unlimited;
	} limits[] = {
		{ c->dirs[CGROUP_UNIFIED], "pids.max", pids, "max" },
		{ c->dirs[CGROUP_PIDS], "pids.max", pids, "max" },
		{ c->dirs[CGROUP_UNIFIED], "memory.max", memory_bytes, "max" },
		{ c->dirs[CGROUP_MEMORY], "memory.limit_in_bytes", memory_bytes,
		    "-1" },
	};
	int err = 0;

	for (size_t i = 0; i < nitems(limits) && err == 0; i++)
		err = write_limit(limits[i].dir, limits[i].name,
		    limits[i].value, limits[i].unlimited);
	return err;
}

/* --- members ------------------------------------------------------------ */

void
cgroup_open_joins(const struct cgroup *c, int joins[CGROUP_HIERARCHIES])
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		joins[i] =
		    c->dirs[i] < 0
			? -1
			: openat(c->dirs[i],
			      i == CGROUP_UNIFIED ? "cgroup.procs" : "tasks",
			      O_WRONLY | O_CLOEXEC);
}

int
cgroup_join(const int joins[CGROUP_HIERARCHIES])
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (joins[i] >= 0 && write(joins[i], "0", 1) != 1)
			return -errno;
	return 0;
}

static int
kill_members(int dir)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	int pid;

	if (f == NULL)
		return -errno;
	/* 0: outside our pid namespace, out of reach. */
	while (fscanf(f, "%d", &pid) == 1)
		if (pid > 0)
			kill((pid_t)pid, SIGKILL);
	fclose(f);
	return 0;
}

/* Version 1 has no kill: who may not fork any more cannot escape a list. */
static int
kill_by_list(int dir)
{
	int err = write_file(dir, "pids.max", "0");

	return err < 0 ? err : kill_members(dir);
}

int
cgroup_kill(const struct cgroup *c)
{
	if (c->dirs[CGROUP_UNIFIED] >= 0)
		return write_file(c->dirs[CGROUP_UNIFIED], "cgroup.kill", "1");
	if (c->dirs[CGROUP_PIDS] >= 0)
		return kill_by_list(c->dirs[CGROUP_PIDS]);
	return -ENOENT;
}

/* Of a file of lines "KEY N"; 0 when it or the key is not there. */
static uint64_t
read_count(int dir, const char *name, const char *key)
{
	size_t len = strlen(key);
	unsigned long long n = 0;
	char text[1024];
	const char *at;

	if (dir < 0 || read_file(dir, name, text, sizeof(text)) <= 0)
		return 0;
	for (at = text; at != NULL; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return sscanf(at + len, " %llu", &n) == 1 ? n : 0;
	}
	return 0;
}

uint64_t
cgroup_oom_kills(const struct cgroup *c)
{
	bool unified = c->dirs[CGROUP_UNIFIED] >= 0;

	return read_count(c->dirs[unified ? CGROUP_UNIFIED : CGROUP_MEMORY],
	    unified ? "memory.events" : "memory.oom_control", "oom_kill");
}

uint64_t
cgroup_forks_denied(const struct cgroup *c)
{
	bool unified = c->dirs[CGROUP_UNIFIED] >= 0;

	return read_count(c->dirs[unified ? CGROUP_UNIFIED : CGROUP_PIDS],
	    "pids.events", "max");
}

bool
cgroup_is_empty(const struct cgroup *c)
{
	char byte[2];

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c->dirs[i] >= 0)
			return read_file(c->dirs[i], "cgroup.procs", byte,
				   sizeof(byte)) == 0;
	return true;
}
