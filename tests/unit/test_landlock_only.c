/* SPDX-License-Identifier: ISC */
/*
 * landlock_only: which plans Landlock and seccomp would hold alone, from
 * policies to answers, and whom the operator lets have them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "landlock_only.h"
#include "resolve_case.h"

static const struct sandbox_limits permitted = { .landlock_only = true };

/* "": it suits. */
static const struct resolve_case rows[] = {
	/* Nothing but roots: as it is used. */
	{ "A10.3", NULL, "r:@root", .want = "" },
	{ "A10.3", NULL, "r:@root", .net = true, .want = "" },
	{ "A10.3", "/ws/ /tmp/", "r:@root w:@ws w:@tmp", .names = "",
	    .want = "" },
	{ "A10.3", "/ws/f", "r:@root w:/ws/f", .names = "", .want = "" },
	{ "A10.4", "/ws/a/", "r:@root w:@ws w:/ws/a", .names = "", .want = "" },
	{ "A10.4", "/ws/ /etc/", "r:@root w:@ws r:/etc", .names = "",
	    .want = "" },
	{ "A10.7", "/ws/", "r:@root w:/none", .names = "", .want = "" },
	{ "A10.9", "/ws/l>/o /o/", "r:@root w:/ws/l", .names = "", .want = "" },
	/* The base. */
	{ "A10.3", NULL, "w:@root",
	    .want = "the policy makes the whole disk writable" },
	{ "A10.3", NULL, .unrestricted = true,
	    .want = "the policy makes the whole disk writable" },
	{ "A10.3", NULL, "r:/ws",
	    .want = "the policy does not let everything be read" },
	{ "A10.3", NULL, "r:@min w:@ws",
	    .want = "the policy does not let everything be read" },
	{ "A10.3", NULL, "d:@root",
	    .want = "the policy does not let everything be read" },
	/* Protected names, missing or not. */
	{ "A10.5", "/ws/.git/", "r:@root w:@ws",
	    .want = "the policy protects /ws/.git" },
	{ "A10.5", "/ws/", "r:@root w:@ws",
	    .want = "the policy protects /ws/.git" },
	{ "A10.5", "/ws/.git=gitdir:/ws/g /ws/g/", "r:@root w:@ws",
	    .want = "the policy protects /ws/.git" },
	{ "O6", "/ws/r/.git/hooks/ /ws/r/.git/config", "r:@root w:@ws",
	    .names = "", .nested = 3,
	    .want = "the policy protects /ws/r/.git/config" },
	/* Carve-outs and denials, missing or not. */
	{ "A10.4", "/ws/a/", "r:@root w:@ws r:/ws/a", .names = "",
	    .want = "the policy protects /ws/a" },
	{ "A10.4", "/ws/a/b/", "r:@root w:@ws r:/ws/a w:/ws/a/b", .names = "",
	    .want = "the policy protects /ws/a" },
	{ "A10.6", "/ws/", "r:@root w:@ws r:/ws/a/b", .names = "",
	    .want = "the policy protects /ws/a" },
	{ "A10.6", "/ws/a", "r:@root w:@ws d:/ws/a/b", .names = "",
	    .want = "the policy keeps in place /ws/a" },
	{ "A10.4", "/s/", "r:@root d:/s",
	    .want = "the policy denies reading /s" },
	{ "A10.4", "/s", "r:@root d:/s",
	    .want = "the policy denies reading /s" },
	{ "A10.8", "/ws/k.pem", "r:@root w:@ws d:*/ws/*.pem", .names = "",
	    .want = "the policy denies reading /ws/k.pem" },
	{ "O4", "/ws/a/b/", "r:@root w:@ws d:/ws/a/b", .names = "",
	    .want = "the policy denies reading /ws/a/b" },
	{ "O16", "/proc/", "r:@root d:/proc",
	    .want = "the policy denies reading /proc" },
	/* The operator's. */
	{ "E", "/run/", "r:@root", .hide = "/run",
	    .want = "the policy denies reading /run" },
	{ "E", "/h/.ssh/", "r:@root", .deny = "/h/.ssh",
	    .want = "the policy denies reading /h/.ssh" },
	{ "E", "/tmp/", "r:@root w:@tmp", .private_tmp = true,
	    .want = "the policy has one of its own: /tmp" },
	/* What a view has of its own. */
	{ "C3.7", "/dev/shm/", "r:@root w:/dev/shm", .names = "",
	    .want = "the policy makes the host's own writable: /dev/shm" },
	{ "C3.7", "/dev/", "r:@root w:/dev", .names = "",
	    .want = "the policy makes the host's own writable: /dev" },
	/* The resolver grants nothing in there. */
	{ "C3.8", "/proc/sys/", "r:@root w:/proc/sys", .names = "",
	    .want = "" },
	{ "C3.9", "/sys/fs/", "r:@root w:/sys/fs", .names = "",
	    .want = "the policy makes the host's own writable: /sys/fs" },
	{ "C3.7", "/device/ /system/", "r:@root w:/device w:/system",
	    .names = "", .want = "" },
	{ "C3.2", "/ws/s|", "r:@root w:/ws/s", .names = "",
	    .want = "the policy grants what is no file or directory: /ws/s" },
};

/* Why not; "" when it suits. */
static const char *
answer(const struct landlock_only *q)
{
	static char why[LANDLOCK_ONLY_WHY_MAX];
	bool suits = landlock_only_suits(q, why);

	assert_int_equal(suits, why[0] == '\0' && q->limits->landlock_only);
	return why;
}

static bool
check_row(const struct resolve_case *c)
{
	struct case_run *run = xcalloc(1, sizeof(*run));
	const char *fs = c->fs ? c->fs : "/ws/", *got;
	const struct landlock_only q = {
		.limits = &permitted, .plan = &run->plan, .single_user = true
	};
	bool same;

	fake_fs_init(&run->fs, fs, strlen(fs));
	case_resolve(run, c);
	got = run->err < 0 ? run->error : answer(&q);
	same = strcmp(got, c->want) == 0;
	if (!same)
		print_error("%s: %s: %s\n  got  %s\n  want %s\n", c->rule, fs,
		    c->entries ? c->entries : "", got, c->want);
	case_clear(run);
	free(run);
	return same;
}

static void
test_plans(void **state)
{
	size_t wrong = 0;

	for (size_t i = 0; i < nitems(rows); i++)
		wrong += !check_row(&rows[i]);
	assert_int_equal(wrong, 0);
}

/* The simplest plan of all, by what the operator and the request say. */
static const char *
rule(struct sandbox_limits limits, bool single_user, bool required)
{
	const struct plan plan = { .base = PLAN_BASE_READ };
	const struct landlock_only q = { .limits = &limits,
		.plan = &plan,
		.single_user = single_user,
		.required = required };

	return answer(&q);
}

static void
test_rules(void **state)
{
	struct sandbox_limits l = permitted;

	assert_string_equal(rule(l, true, false), "");
	assert_string_equal(rule(l, false, false), "execd runs as root");
	assert_string_equal(
	    rule(l, true, true), "the request requires every layer");
	l.unix_sockets = SANDBOX_UNIX_ALLOW;
	assert_string_equal(rule(l, true, false), "unix-sockets is not deny");
	l = permitted;
	l.require_groups = true;
	assert_string_equal(rule(l, true, false), "mode = require");
	/* Nobody has it who did not ask for it, nor is told of it. */
	l.landlock_only = false;
	assert_string_equal(rule(l, true, false), "");
	assert_string_equal(rule(l, true, true), "");
}

/* What the ceiling cut down is read-only where everything is. */
static void
test_cut_down(void **state)
{
	struct plan_mount mounts[] = {
		{ PLAN_READ, false, (char[]){ "/ws" }, { FS_DIRECTORY, 1, 2 } },
		{ PLAN_WRITE, false, (char[]){ "/wt" },
		    { FS_DIRECTORY, 1, 3 } },
		{ PLAN_READ, false, (char[]){ "/wt/a" }, { FS_FILE, 1, 4 } },
	};
	struct plan plan = { .mounts = mounts, .count = 2 };
	const struct landlock_only q = {
		.limits = &permitted, .plan = &plan, .single_user = true
	};

	assert_string_equal(answer(&q), "");
	plan.count = 3;
	assert_string_equal(answer(&q), "the policy protects /wt/a");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_cut_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
