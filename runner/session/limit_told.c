/* SPDX-License-Identifier: ISC */
/*
 * Tells a command's reader what a limit did to it: one line on its standard
 * error, before exited. Somebody who only sees status 137 looks for a bug in
 * the program.
 */
#include "limit_told.h"

#include "audit.h"
#include "base.h"
#include "report.h"
#include "session.h"

#define KEY_MAX 256

/* The group whose limit it was has one of these numbers. */
struct level {
	const char *key; /* without command- */
	bool command;
	bool of_identity; /* it was set for the identity; else in [limits] */
	uint64_t value;
};

/* The smallest limit at or above a level: that one is a command's own, too. */
static struct level
smallest(const struct level *levels, size_t n)
{
	struct level least = { .value = 0 };

	for (size_t i = 0; i < n; i++)
		if (levels[i].value > 0 &&
		    (least.value == 0 || levels[i].value < least.value))
			least = levels[i];
	return least;
}

static const char *
unit_of(uint64_t *value)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	size_t i = 0;

	while (i + 1 < nitems(units) && *value > 0 && *value % 1024 == 0) {
		*value /= 1024;
		i++;
	}
	return units[i];
}

static void
name_level(const struct session *s, const struct level *l, bool bytes,
    char text[KEY_MAX])
{
	const struct sandbox_limits *limits = &s->sandbox.ceiling.limits;
	uint64_t value = l->value;
	const char *unit = bytes ? unit_of(&value) : "";

	snprintf(text, KEY_MAX, "%s%s = %" PRIu64 "%s of %s%s",
	    l->command ? "command-" : "", l->key, value, unit,
	    l->of_identity ? "identity " : "[limits]",
	    l->of_identity ? limits->origins.identity : "");
}

/* Names the limit of memory or tasks that acted in a group of that kind.
 * Returns false if none of ours is known to have. */
static bool
name_limit(const struct session *s, enum cgroup_level level, bool memory,
    char text[KEY_MAX])
{
	const struct sandbox_limits *l = &s->sandbox.ceiling.limits;
	const unsigned bit = memory ? CGROUP_COUNTS_MEMORY : CGROUP_COUNTS_PIDS;
	const char *key = memory ? "memory-max" : "tasks-max";
	const struct level levels[] = {
		{ key, true, (l->own & bit) != 0,
		    memory ? l->memory_bytes : l->pids },
		{ key, false, true,
		    memory ? l->of_identity.memory_bytes
			   : l->of_identity.pids },
		{ key, false, false,
		    memory ? l->of_all.memory_bytes : l->of_all.pids },
	};
	struct level found;

	if (level == CGROUP_OF_MACHINE)
		return false;
	found = level == CGROUP_OF_COMMAND
		    ? smallest(levels, nitems(levels))
		    : levels[level == CGROUP_OF_IDENTITY ? 1 : 2];
	if (found.value > 0)
		name_level(s, &found, memory, text);
	return found.value > 0;
}

static void
say(struct session_process *sp, const char *text)
{
	_cleanup_free_ char *line =
	    xasprintf("execd: %s%s\n", text, sp->process.tty ? "\r" : "");

	log_warn(0, "process %.*s: %s", (int)sp->id_len, sp->id, text);
	process_say(&sp->process, line, strlen(line));
	audit_limited(sp, text);
}

static void
tell_memory(struct session_process *sp)
{
	struct process *p = &sp->process;
	char key[KEY_MAX];
	enum cgroup_level level = p->group == NULL
				      ? CGROUP_OF_COMMAND
				      : command_cgroup_blame(p->groups,
					    p->group, CGROUP_COUNTS_MEMORY);

	if (!name_limit(sp->session, level, true, key))
		snprintf(key, sizeof(key), "the machine ran out of memory");
	sp->limit = xasprintf("%s", key);
	if (p->oom_killed) {
		_cleanup_free_ char *text = xasprintf("killed: %s", key);

		say(sp, text);
	} else {
		_cleanup_free_ char *text =
		    xasprintf("%" PRIu64 " of its processes were killed: %s",
			p->counts.memory_kills, key);

		say(sp, text);
	}
}

static void
tell_tasks(struct session_process *sp)
{
	struct process *p = &sp->process;
	char key[KEY_MAX];
	_cleanup_free_ char *text = NULL;

	if (!name_limit(sp->session,
		command_cgroup_blame(p->groups, p->group, CGROUP_COUNTS_PIDS),
		false, key))
		snprintf(key, sizeof(key), "tasks-max");
	text = xasprintf("limit: %s: %" PRIu64 " forks were refused", key,
	    p->counts.forks_denied);
	say(sp, text);
}

/* Other limits that kill have no numbers of a group. */
static void
tell_other(struct session_process *sp)
{
	enum end_cause cause = end_cause(sp);
	_cleanup_free_ char *text = NULL;

	if (cause != END_CPU_TIME && cause != END_FILE_SIZE &&
	    cause != END_COMMAND_DEADLINE)
		return;
	text = xasprintf("killed: %s of identity %s", control_cause_name(cause),
	    sp->session->sandbox.ceiling.limits.origins.identity);
	say(sp, text);
}

static void
tell_uncovered(struct session_process *sp)
{
	_cleanup_free_ char *text =
	    xasprintf("killed: %.150s was replaced outside of the sandbox, "
		      "which no longer protects it",
		sp->uncovered);

	say(sp, text);
}

void
limit_tell(struct session_process *sp)
{
	struct process *p = &sp->process;

	if (p->group != NULL)
		p->counts = command_cgroup_counts(p->group);
	else
		p->counts.memory_kills = p->oom_killed;
	if (p->oom_killed || p->counts.memory_kills > 0)
		tell_memory(sp);
	if (p->counts.forks_denied > 0)
		tell_tasks(sp);
	if (sp->uncovered != NULL)
		tell_uncovered(sp);
	tell_other(sp);
}

void
limit_write(struct json_writer *w, const struct session_process *sp)
{
	const struct process *p = &sp->process;
	enum end_cause cause = end_cause(sp);

	if (p->oom_killed)
		json_key_bool(w, "oomKilled", true);
	if (cause == END_MEMORY || cause == END_CPU_TIME ||
	    cause == END_FILE_SIZE || cause == END_COMMAND_DEADLINE ||
	    sp->uncovered != NULL)
		json_key_cstring(w, "killedBy", control_cause_name(cause));
	if (sp->limit != NULL)
		json_key_cstring(w, "limit", sp->limit);
	if (p->counts.forks_denied > 0)
		json_key_u64(w, "forksDenied", p->counts.forks_denied);
}
