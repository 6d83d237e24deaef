/* SPDX-License-Identifier: ISC */
/*
 * The control group of this process: proc_pid_cgroup(5), and the mounts.
 */
#include "base.h"
#include "cgroup.h"

#define LINE_BYTES 8192

/* The controller of each hierarchy in version 1; "" stands for version 2. */
static const char *const controllers[CGROUP_HIERARCHIES] = { "", "pids",
	"memory", "cpu" };

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

/* Finds the path in /proc/self/cgroup, with lines "ID:CONTROLLERS:PATH". */
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

/* Finds where a hierarchy is mounted, and which part of it:
 * proc_pid_mountinfo(5). */
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
	/* The mount shows only the part of the hierarchy below `root`. */
	if (strcmp(root, "/") != 0) {
		if (!path_lies_in(own, root))
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
	struct cgroup unified = CGROUP_NONE;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		c->dirs[i] = open_hierarchy(controllers[i]);
	unified.dirs[CGROUP_UNIFIED] = c->dirs[CGROUP_UNIFIED];
	if (c->dirs[CGROUP_UNIFIED] < 0 || c->dirs[CGROUP_PIDS] < 0 ||
	    cgroup_available(&unified) & CGROUP_COUNTS_PIDS)
		return;
	close(c->dirs[CGROUP_UNIFIED]);
	c->dirs[CGROUP_UNIFIED] = -1;
}

/* Returns -errno if this user cannot create groups there or, in version 2,
 * cannot move processes into groups below. */
static int
check_mine(int i, int dir)
{
	return faccessat(dir, ".", W_OK, AT_EACCESS) < 0 ||
		       (i == CGROUP_UNIFIED &&
			   faccessat(dir, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		   ? -errno
		   : 0;
}

int
cgroup_open_usable(struct cgroup *c)
{
	int why = -ENOENT, err;

	cgroup_open_own(c);
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		err = c->dirs[i] < 0 ? 0 : check_mine(i, c->dirs[i]);
		if (err == 0)
			continue;
		why = err;
		close(c->dirs[i]);
		c->dirs[i] = -1;
	}
	return cgroup_is_open(c) ? 0 : why;
}
