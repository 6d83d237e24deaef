/*
 * Control groups of sessions that have run nothing yet: made when they are
 * about to. Most of what a session costs the kernel is its groups.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor.h"
#include "quota.h"
#include "starter.h"
#include "util.h"

bool
quota_can_wait(const struct identity *id)
{
	const struct identity_limits *l = &id->limits;

	/* A starter and its monitor would have to ask each other, too. */
	return monitor.root && monitor.conf != NULL && !starter_is_used() &&
	       quota_joins_at_once() && l->session_processes == 0 &&
	       l->session_memory_bytes == 0 && l->session_cpu_percent == 0;
}

/* What each may start in the end, and themselves: in no case without end. */
int
quota_open_idle(const struct identity *id, int joins[CGROUP_HIERARCHIES])
{
	struct cgroup_limits limits = { .pids = SESSION_PIDS_MAX };
	struct cgroup c = CGROUP_NONE, parent = CGROUP_NONE;
	char name[32];
	int err;

	if (!quota_can_wait(id))
		return cgroup_open_joins(&c, joins);
	limits.pids += monitor.conf->limits.max_sessions;
	parent.dirs[CGROUP_PIDS] = quota_base()->dirs[CGROUP_PIDS];
	snprintf(name, sizeof(name), "idle-%u", id->uid);
	err = cgroup_make(&parent, name, &c);
	if (err == 0)
		err = cgroup_limit(&c, &limits, CGROUP_COUNTS_PIDS);
	if (err == 0)
		err = cgroup_open_joins(&c, joins);
	cgroup_close(&c);
	return err;
}

static int
join_for(pid_t runner, const int joins[CGROUP_HIERARCHIES])
{
	char pid[16];
	int length = snprintf(pid, sizeof(pid), "%d", (int)runner);

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (joins[i] >= 0 &&
		    write(joins[i], pid, (size_t)length) != length)
			return -errno;
	return 0;
}

int
quota_take_in(const char *session_id, const struct identity *id, pid_t runner,
    struct cgroup *c, char reason[256])
{
	int joins[CGROUP_HIERARCHIES];
	int err = quota_for(session_id, id, c, reason);

	if (err < 0)
		return err;
	err = quota_open_joins(c, joins);
	if (err == 0) {
		err = join_for(runner, joins);
		cgroup_close_joins(joins);
	}
	if (err == 0)
		return 0;
	snprintf(reason, 256,
	    "its runner joining the session's control group: %s",
	    strerror(-err));
	cgroup_close(c);
	return err;
}
