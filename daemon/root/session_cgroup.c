/* SPDX-License-Identifier: ISC */
/*
 * The control groups of sessions, and the cleanup of those of an execd that was
 * killed.
 */
#include "session_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "log.h"
#include "saved.h"
#include "util.h"

/* --- Groups of an execd that was killed, which could not remove them ------ */

/*
 * Groups are called execd-PID. The pid alone does not tell whether that
 * execd still runs, because it may be in another pid namespace. Therefore an
 * execd holds a lock on its directory as long as it runs. An execd of another
 * namespace may have the same pid; the second one's group is called
 * execd-PID.1.
 */

#define PREFIX "execd-"

/* The groups of a session lie below it, and those of a command below these. */
#define LEVELS 2

static int
open_directory(int dir, const char *name)
{
	return openat(
	    dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Calls visit for each directory in a directory. */
static void
each_directory(
    int dir, void (*visit)(int dir, const char *name, int arg), int arg)
{
	int fd = open_directory(dir, ".");
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			visit(dir, e->d_name, arg);
	closedir(d);
}

static void
remove_group(int dir, const char *name, int levels)
{
	_cleanup_close_ int fd = levels > 0 ? open_directory(dir, name) : -1;

	if (fd >= 0)
		each_directory(fd, remove_group, levels - 1);
	unlinkat(dir, name, AT_REMOVEDIR);
}

/* Removes a group and the groups in it, which must be empty. Returns as
 * cgroup_remove(). */
static int
remove_groups(const struct cgroup *parent, const char *name)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (parent->dirs[i] >= 0)
			remove_group(parent->dirs[i], name, 1);
	/* Says what could not be removed. */
	return cgroup_remove(parent, name);
}

/* An execd that has just made its group may not have the lock yet. */
static bool
is_running(const char *name)
{
	pid_t pid = atoi(name + strlen(PREFIX));

	return pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH;
}

/* Whoever uses a group or removes it holds its lock. */
static void
cleanup_group(int dir, const char *name, int levels)
{
	_cleanup_close_ int fd = -1;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || is_running(name))
		return;
	fd = open_directory(dir, name);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		remove_group(dir, name, levels);
}

/* Removes groups below the one that execd was started in that nobody uses. The
 * kernel keeps a group that has a process. */
static void
cleanup(const struct cgroup *own)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (own->dirs[i] >= 0)
			each_directory(own->dirs[i], cleanup_group, LEVELS);
}

/* The directory may have been removed between the open and the lock. */
static int
lock_group(int parent, const char *name, int fd)
{
	struct stat ours, there;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EEXIST;
	if (fstat(fd, &ours) == 0 &&
	    fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	    ours.st_ino == there.st_ino)
		return 0;
	return -ENOENT;
}

/* Makes the group `name` below own and opens it as base, to be closed with
 * cgroup_close(). Nobody cleans it up as long as base is open. Returns 0,
 * -EEXIST if another execd has it, -ENOENT if a cleanup has just removed it, or
 * an error of cgroup_make(). */
static int
claim_group(const struct cgroup *own, const char *name, struct cgroup *base)
{
	int err = cgroup_make(own, name, base);

	for (int i = 0; err == 0 && i < CGROUP_HIERARCHIES; i++)
		if (base->dirs[i] >= 0)
			err = lock_group(own->dirs[i], name, base->dirs[i]);
	if (err < 0)
		cgroup_close(base);
	return err;
}

/* --- The groups of the sessions of this execd ---------------------------- */

static struct cgroup own = CGROUP_NONE;	 /* where execd was started */
static struct cgroup base = CGROUP_NONE; /* execd's own group below it */
static char base_name[32];
static unsigned controllers; /* of the sessions' groups */
static bool moved;	     /* into base's BROKER_NAME */
static pid_t companion;	     /* the process that moves with this one */

/* Names of groups that are tried before giving up. */
#define CLAIMS_MAX 100

/* Leaf groups, for version 2. */
#define BROKER_NAME "monitor"
#define RUNNER_NAME "runner"

/* In version 2 a group that gives its children controllers has no members of
 * its own. So execd moves into a group of its own beside them. */
static int
move_aside(void)
{
	int dir = base.dirs[CGROUP_UNIFIED], err;
	char pid[16];

	if (mkdirat(dir, BROKER_NAME, 0755) < 0 && errno != EEXIST)
		return -errno;
	err = write_whole(dir, BROKER_NAME "/cgroup.procs", "0");
	snprintf(pid, sizeof(pid), "%d", (int)companion);
	if (err == 0 && companion > 0)
		err = write_whole(dir, BROKER_NAME "/cgroup.procs", pid);
	moved = err == 0;
	return err;
}

static int
hand_down(void)
{
	int err = cgroup_hand_down(&own);

	if (err == -EBUSY && (err = move_aside()) == 0)
		err = cgroup_hand_down(&own);
	return err < 0 ? err : cgroup_hand_down(&base);
}

/* Others with this name are in other pid namespaces: not many. */
static int
claim(void)
{
	int err = -EEXIST, length;

	for (int i = 0; i < CLAIMS_MAX && (err == -EEXIST || err == -ENOENT);
	     i++) {
		length = snprintf(
		    base_name, sizeof(base_name), "execd-%d", (int)getpid());
		if (i > 0)
			snprintf(base_name + length,
			    sizeof(base_name) - (size_t)length, ".%d", i);
		err = claim_group(&own, base_name, &base);
	}
	return err;
}

void
session_cgroup_init(pid_t broker)
{
	int err;

	companion = broker;
	cgroup_open_usable(&own);
	if (!cgroup_is_open(&own))
		return;
	cleanup(&own);
	err = claim();
	if (err < 0) {
		log_warn(err, "control groups: making %s", base_name);
		cgroup_close(&own);
		return;
	}
	if (base.dirs[CGROUP_UNIFIED] >= 0) {
		err = hand_down();
		if (err < 0)
			log_warn(err, "control groups: handing controllers "
				      "down to sessions");
	}
	controllers = cgroup_controllers(&base);
}

void
session_cgroup_save(struct saved *s)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		saved_fd(s, &own.dirs[i]);
		saved_fd(s, &base.dirs[i]);
	}
	saved_text(s, base_name, sizeof(base_name));
	SAVE(s, controllers);
	SAVE(s, moved);
	SAVE(s, companion);
}

unsigned
session_cgroup_controllers(void)
{
	return controllers;
}

/* The controllers without which the limits cannot be enforced. */
static unsigned
needed_by(const struct control_user *s)
{
	return (s->session_processes ? CGROUP_COUNTS_PIDS : 0) |
	       (s->session_memory_bytes ? CGROUP_COUNTS_MEMORY : 0) |
	       (s->session_cpu_percent ? CGROUP_COUNTS_CPU : 0);
}

/* Moves back to the group where execd was started, once this gives its children
 * no controllers. Only then execd's own group is empty. */
static void
move_back(void)
{
	int err = cgroup_take_back(&base);

	if (err == 0)
		err = cgroup_take_back(&own);
	if (err == 0)
		err =
		    write_whole(own.dirs[CGROUP_UNIFIED], "cgroup.procs", "0");
	if (err < 0)
		log_debug("control groups: going back: %s", strerror(-err));
}

void
session_cgroup_clear(void)
{
	int err;

	if (!cgroup_is_open(&base))
		return;
	if (moved)
		move_back();
	cgroup_close(&base);
	err = remove_groups(&own, base_name);
	if (err < 0)
		log_warn(err, "control groups: removing %s", base_name);
	cgroup_close(&own);
}

/* The user may make groups below, and in version 2 move his own processes
 * between them. The limits of the session stay root's. */
static int
delegate(const struct cgroup *c, uid_t uid, gid_t gid)
{
	int unified = c->dirs[CGROUP_UNIFIED];

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c->dirs[i] >= 0 && fchown(c->dirs[i], uid, gid) < 0)
			return -errno;
	if (unified >= 0 &&
	    (fchownat(unified, "cgroup.procs", uid, gid, 0) < 0 ||
		fchownat(unified, "cgroup.subtree_control", uid, gid, 0) < 0))
		return -errno;
	return 0;
}

int
session_cgroup_join(const struct cgroup *session)
{
	int err = 0;

	for (int i = 0; i < CGROUP_HIERARCHIES && err == 0; i++)
		if (session->dirs[i] >= 0)
			err = write_whole(session->dirs[i],
			    i == CGROUP_UNIFIED ? RUNNER_NAME "/cgroup.procs"
						: "tasks",
			    "0");
	return err;
}

/* In version 2 the groups of commands, beside the leaf, can have limits. */
static int
make_leaf(const struct cgroup *session)
{
	int dir = session->dirs[CGROUP_UNIFIED], err;

	if (dir < 0)
		return 0;
	err = cgroup_hand_down(session);
	if (err < 0)
		return err;
	return mkdirat(dir, RUNNER_NAME, 0755) < 0 && errno != EEXIST ? -errno
								      : 0;
}

static const char *
put_name(char name[CONTROL_GROUP_MAX], uint64_t number)
{
	snprintf(name, CONTROL_GROUP_MAX, SESSION_GROUP_PREFIX "%llu",
	    (unsigned long long)number);
	return name;
}

int
session_cgroup_for(
    const struct control_user *s, uint64_t number, struct cgroup *c)
{
	const struct cgroup_limits limits = {
		.pids = s->session_processes ? s->session_processes
					     : SESSION_PIDS_MAX,
		.memory_bytes = s->session_memory_bytes,
		.cpu_percent = s->session_cpu_percent,
	};
	char name[CONTROL_GROUP_MAX];
	struct cgroup parent = base;
	int err;

	*c = (struct cgroup)CGROUP_NONE;
	if (needed_by(s) & ~controllers)
		return -EOPNOTSUPP;
	if (!cgroup_is_open(&base))
		return 0;
	/* In version 1 a hierarchy of its own would serve nothing. */
	if (s->session_cpu_percent == 0 && s->limits_command_cpu == 0)
		parent.dirs[CGROUP_CPU] = -1;
	err = cgroup_make(&parent, put_name(name, number), c);
	if (err < 0)
		return err;
	err = cgroup_limit(c, &limits, controllers);
	if (err == 0)
		err = make_leaf(c);
	if (err == 0)
		err = delegate(c, s->uid, s->gid);
	if (err == 0)
		return 0;
	cgroup_close(c);
	session_cgroup_close(number);
	return err;
}

/* In version 1 all processes have ended: with their pid namespace, or as
 * orphans. */
void
session_cgroup_close(uint64_t number)
{
	char name[CONTROL_GROUP_MAX], path[sizeof(name) + 16];
	int err;

	put_name(name, number);
	snprintf(path, sizeof(path), "%s/cgroup.kill", name);
	if (base.dirs[CGROUP_UNIFIED] >= 0) {
		err = write_whole(base.dirs[CGROUP_UNIFIED], path, "1");
		if (err < 0)
			log_error(err, "control group %s: killing it", name);
	}
	err = remove_groups(&base, name);
	if (err < 0)
		log_warn(err, "control group %s: removing it", name);
}
