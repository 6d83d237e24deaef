/* SPDX-License-Identifier: ISC */
/*
 * The control groups of sessions.
 */
#include "session_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_file.h"
#include "log.h"
#include "saved.h"
#include "session_cgroup_cleanup.h"
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
	int joins[CGROUP_HIERARCHIES], err;
	struct cgroup aside;

	err = cgroup_make(&base, BROKER_NAME, &aside);
	if (err < 0)
		return err;
	err = cgroup_open_joins(&aside, joins);
	cgroup_close(&aside);
	if (err < 0)
		return err;
	err = write(joins[CGROUP_UNIFIED], "0", 1) == 1 ? 0 : -errno;
	if (err == 0 && companion > 0 &&
	    dprintf(joins[CGROUP_UNIFIED], "%d", (int)companion) < 0)
		err = -errno;
	cgroup_close_joins(joins);
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

/* In version 2 the lock was another open file of the same directory. */
static void
read_lock_2(struct saved *s, int *dir)
{
	int lock;

	saved_fd(s, &lock);
	if (lock < 0)
		return;
	fcntl(*dir, F_SETFD, FD_CLOEXEC); /* of no use any more */
	*dir = lock;
}

void
session_cgroup_save(struct saved *s)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		saved_fd(s, &own.dirs[i]);
		saved_fd(s, &base.dirs[i]);
		if (s->version == 2)
			read_lock_2(s, &base.dirs[i]);
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
	int joins[CGROUP_HIERARCHIES];

	if (cgroup_take_back(&base) < 0 || cgroup_take_back(&own) < 0 ||
	    cgroup_open_joins(&own, joins) < 0)
		return;
	if (write(joins[CGROUP_UNIFIED], "0", 1) != 1)
		log_debug("control groups: going back: %s", strerror(errno));
	cgroup_close_joins(joins);
}

void
session_cgroup_clear(void)
{
	int err;

	if (!cgroup_is_open(&base))
		return;
	if (moved) {
		move_back();
		cgroup_remove(&base, BROKER_NAME);
	}
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (base.dirs[i] >= 0)
			session_cgroup_remove_children(base.dirs[i], 0);
	cgroup_close(&base);
	err = cgroup_remove(&own, base_name);
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
session_cgroup_open_joins(
    const struct cgroup *session, int joins[CGROUP_HIERARCHIES])
{
	struct cgroup leaf = CGROUP_NONE, unified = CGROUP_NONE, c = *session;
	int err;

	if (session->dirs[CGROUP_UNIFIED] < 0)
		return cgroup_open_joins(session, joins);
	unified.dirs[CGROUP_UNIFIED] = session->dirs[CGROUP_UNIFIED];
	err = cgroup_make(&unified, RUNNER_NAME, &leaf);
	c.dirs[CGROUP_UNIFIED] = leaf.dirs[CGROUP_UNIFIED];
	if (err == 0)
		err = cgroup_open_joins(&c, joins);
	cgroup_close(&leaf);
	return err;
}

int
session_cgroup_for(
    const struct control_user *s, const char *group, struct cgroup *c)
{
	const struct cgroup_limits limits = {
		.pids = s->session_processes ? s->session_processes
					     : SESSION_PIDS_MAX,
		.memory_bytes = s->session_memory_bytes,
		.cpu_percent = s->session_cpu_percent,
	};
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
	err = cgroup_make(&parent, group, c);
	if (err == 0)
		err = cgroup_limit(c, &limits, controllers);
	if (err == 0 && c->dirs[CGROUP_UNIFIED] >= 0)
		err = cgroup_hand_down(c);
	if (err == 0)
		err = delegate(c, s->uid, s->gid);
	if (err == 0)
		return 0;
	cgroup_close(c);
	session_cgroup_close(group);
	return err;
}

/* A runner's own groups are empty, because its processes ended with it. */
void
session_cgroup_close(const char *name)
{
	struct cgroup c;
	int err;

	cgroup_open(&base, name, &c);
	if (!cgroup_is_open(&c))
		return;
	/* In version 1 all have ended: with their pid namespace, or as
	 * orphans. */
	err =
	    c.dirs[CGROUP_UNIFIED] < 0
		? 0
		: cgroup_write_file(c.dirs[CGROUP_UNIFIED], "cgroup.kill", "1");
	if (err < 0)
		log_error(err, "control group %s: killing it", name);
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c.dirs[i] >= 0)
			session_cgroup_remove_children(c.dirs[i], 0);
	cgroup_close(&c);
	err = cgroup_remove(&base, name);
	if (err < 0)
		log_warn(err, "control group %s: removing it", name);
}
