/* SPDX-License-Identifier: ISC */
/*
 * The control groups of sessions.
 */
#include "session_cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "log.h"
#include "saved.h"
#include "util.h"

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
	err = cgroup_write_file(dir, BROKER_NAME "/cgroup.procs", "0");
	snprintf(pid, sizeof(pid), "%d", (int)companion);
	if (err == 0 && companion > 0)
		err = cgroup_write_file(dir, BROKER_NAME "/cgroup.procs", pid);
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
		err = session_cgroup_claim(&own, base_name, &base);
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
	session_cgroup_cleanup(&own);
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
		err = cgroup_write_file(
		    own.dirs[CGROUP_UNIFIED], "cgroup.procs", "0");
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
	err = session_cgroup_remove(&own, base_name);
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
			err = cgroup_write_file(session->dirs[i],
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
		err = cgroup_write_file(base.dirs[CGROUP_UNIFIED], path, "1");
		if (err < 0)
			log_error(err, "control group %s: killing it", name);
	}
	err = session_cgroup_remove(&base, name);
	if (err < 0)
		log_warn(err, "control group %s: removing it", name);
}
