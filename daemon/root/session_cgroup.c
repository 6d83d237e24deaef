/* SPDX-License-Identifier: ISC */
/*
 * The control groups of sessions.
 */
#include "session_cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_claim.h"
#include "log.h"
#include "saved.h"
#include "util.h"

static struct cgroup_claim claim = { CGROUP_NONE, CGROUP_NONE };

/* In version 2 the group of a session has no members of its own. */
#define RUNNER_NAME "runner"

void
session_cgroup_init(void)
{
	char why[CGROUP_CLAIM_WHY_MAX];

	if (cgroup_claim(&claim, why) < 0)
		log_warn(0,
		    "control groups: sessions have none: %s; they have in a "
		    "systemd unit with Delegate=yes (execd-sessions.service)",
		    why);
	else if (*why != '\0')
		log_warn(0, "control groups: %s", why);
}

void
session_cgroup_save(struct saved *s)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		saved_fd(s, &claim.own.dirs[i]);
		saved_fd(s, &claim.base.dirs[i]);
	}
	saved_text(s, claim.name, sizeof(claim.name));
	SAVE(s, claim.controllers);
	SAVE(s, claim.moved);
}

unsigned
session_cgroup_controllers(void)
{
	return claim.controllers;
}

/* The controllers without which the limits cannot be enforced. */
static unsigned
needed_by(const struct control_user *s)
{
	return (s->tasks_max ? CGROUP_COUNTS_PIDS : 0) |
	       (s->memory_max_bytes ? CGROUP_COUNTS_MEMORY : 0) |
	       (s->cpu_quota_percent ? CGROUP_COUNTS_CPU : 0);
}

void
session_cgroup_clear(void)
{
	int err = cgroup_claim_end(&claim);

	if (err < 0)
		log_warn(err, "control groups: removing %s", claim.name);
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
		.pids = s->tasks_max,
		.memory_bytes = s->memory_max_bytes,
		.cpu_percent = s->cpu_quota_percent,
		.cpu_weight = s->cpu_weight,
		.io_weight = s->io_weight,
	};
	char name[CONTROL_GROUP_MAX];
	struct cgroup parent = claim.base;
	int err;

	*c = (struct cgroup)CGROUP_NONE;
	if (needed_by(s) & ~claim.controllers)
		return -EOPNOTSUPP;
	if (!cgroup_is_open(&claim.base))
		return 0;
	/* In version 1 a hierarchy of its own would serve nothing. */
	if (s->cpu_quota_percent == 0 && s->limits_command_cpu == 0)
		parent.dirs[CGROUP_CPU] = -1;
	err = cgroup_make(&parent, put_name(name, number), c);
	if (err == 0)
		err = cgroup_limit(c, &limits, claim.controllers);
	if (err == 0)
		err = make_leaf(c);
	if (err == 0)
		err = delegate(c, s->uid, s->gid);
	if (err == 0)
		return 0;
	if (cgroup_is_open(c))
		session_cgroup_close(number);
	cgroup_close(c);
	if (needed_by(s) != 0)
		return err;
	log_warn(err, "control group %s: the session has none", name);
	return 0;
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
	if (claim.base.dirs[CGROUP_UNIFIED] >= 0) {
		err = write_whole(claim.base.dirs[CGROUP_UNIFIED], path, "1");
		if (err < 0)
			log_error(err, "control group %s: killing it", name);
	}
	err = cgroup_claim_remove(&claim.base, name);
	if (err < 0)
		log_warn(err, "control group %s: removing it", name);
}
