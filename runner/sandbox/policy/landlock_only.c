/* SPDX-License-Identifier: ISC */
#include "landlock_only.h"

static const char *
rule_against(const struct landlock_only *q)
{
	const struct plan *plan = q->plan;

	if (!q->single_user)
		return "execd runs as root";
	if (q->limits->require_groups)
		return "mode = require";
	if (q->required)
		return "the request requires every layer";
	/*
	 * Sockets of the host would be within reach. A user's service manager,
	 * for example, starts any command outside of every sandbox.
	 */
	if (q->limits->unix_sockets != SANDBOX_UNIX_DENY)
		return "unix-sockets is not deny";
	if (plan->base == PLAN_BASE_WRITE)
		return "the policy makes the whole disk writable";
	if (plan->base == PLAN_BASE_EMPTY)
		return "the policy does not let everything be read";
	return plan->deny_proc ? "the policy denies reading /proc" : NULL;
}

/*
 * A view has its own /dev and /proc, and lets nothing of the host's be written
 * here.
 */
static bool
is_system(const char *path)
{
	return path_lies_in(path, "/dev") || path_lies_in(path, "/proc") ||
	       path_lies_in(path, "/sys");
}

/* A read-only mount needs enforcement only if its parent is writable. */
static bool
is_carved_out(const struct plan *plan, const struct plan_mount *m)
{
	_cleanup_free_ char *parent = xstrdup(m->path);

	*strrchr(parent, '/') = '\0';
	return plan_access(plan, parent) == SANDBOX_WRITE;
}

static const char *
mount_against(const struct plan *plan, const struct plan_mount *m)
{
	switch (m->kind) {
	case PLAN_WRITE:
		if (is_system(m->path))
			return "makes the host's own writable:";
		return m->seen.type == FS_DIRECTORY || m->seen.type == FS_FILE
			   ? NULL
			   : "grants what is no file or directory:";
	case PLAN_READ:
		return is_carved_out(plan, m) ? "protects" : NULL;
	case PLAN_DENY_DIRECTORY:
	case PLAN_DENY_FILE:
		return "denies reading";
	case PLAN_PLACEHOLDER_FILE:
	case PLAN_PLACEHOLDER_DIRECTORY:
		return "protects";
	case PLAN_PRIVATE:
		/* No sockets are made here in any case. */
		return strcmp(m->path, RESOLVE_X11) == 0
			   ? NULL
			   : "has one of its own:";
	case PLAN_PIN:
		return "keeps in place";
	}
	return "needs a view of";
}

/*
 * Prefers another reason to a pin: the pin comes first in the plan, but the
 * mount that it serves says more.
 */
static const struct plan_mount *
find_against(const struct plan *plan)
{
	const struct plan_mount *pin = NULL;

	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		if (mount_against(plan, m) == NULL)
			continue;
		if (m->kind != PLAN_PIN)
			return m;
		if (pin == NULL)
			pin = m;
	}
	return pin;
}

bool
landlock_only_suits(const struct landlock_only *q, char *why)
{
	const struct plan_mount *m;
	const char *rule;

	why[0] = '\0';
	if (!q->limits->landlock_only)
		return false;
	rule = rule_against(q);
	m = rule == NULL ? find_against(q->plan) : NULL;
	if (rule != NULL)
		snprintf(why, LANDLOCK_ONLY_WHY_MAX, "%s", rule);
	else if (m != NULL)
		snprintf(why, LANDLOCK_ONLY_WHY_MAX, "the policy %s %.160s",
		    mount_against(q->plan, m), m->path);
	return rule == NULL && m == NULL;
}
