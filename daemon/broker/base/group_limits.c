/* SPDX-License-Identifier: ISC */
/*
 * Limits of sessions that only a control group can enforce.
 */
#include "group_limits.h"

#include <errno.h>
#include <stdio.h>

#include "cgroup.h"
#include "log.h"
#include "util.h"

static unsigned controllers;

static const struct need {
	const char *keyword, *what;
	unsigned controller;
	const char *instead; /* what holds commands without it */
} needs[] = {
	{ "session-processes", "processes", CGROUP_COUNTS_PIDS,
	    "RLIMIT_NPROC holds sandboxed commands" },
	{ "session-memory", "memory", CGROUP_COUNTS_MEMORY,
	    "a watch holds sandboxed commands" },
	{ "session-cpu", "processor time", CGROUP_COUNTS_CPU,
	    "nothing limits it" },
};

void
group_limits_learn(unsigned there)
{
	controllers = there;
}

void
group_limits_log(bool root)
{
	if (controllers == 0 && !root) {
		log_info("control groups: none is delegated to this user; "
			 "resource limits and a watch of their memory hold "
			 "sandboxed commands");
		return;
	}
	for (size_t i = 0; i < nitems(needs); i++)
		if (!(controllers & needs[i].controller))
			log_warn(0, "control groups: none here counts %s; %s",
			    needs[i].what, needs[i].instead);
}

static unsigned
needed_by(const struct identity_limits *l)
{
	return (l->session_processes ? CGROUP_COUNTS_PIDS : 0) |
	       (l->session_memory_bytes ? CGROUP_COUNTS_MEMORY : 0) |
	       (l->session_cpu_percent ? CGROUP_COUNTS_CPU : 0);
}

int
group_limits_check(struct identity *const *identities, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned missing =
		    needed_by(&identities[i]->limits) & ~controllers;

		for (size_t j = 0; j < nitems(needs); j++) {
			if (!(missing & needs[j].controller))
				continue;
			log_error(0,
			    "[identity %s]: %s: this host cannot enforce it: "
			    "no control group counts %s (execd doctor)",
			    identities[i]->name, needs[j].keyword,
			    needs[j].what);
			err = -EOPNOTSUPP;
		}
	}
	return err;
}

void
group_limits_reason(const struct identity *id, char *reason)
{
	snprintf(reason, 256,
	    "this host has no control groups for the limits of %.100s: "
	    "execd doctor tells which",
	    id->name);
}
