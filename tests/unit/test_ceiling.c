/*
 * The operator's ceiling, on a real directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ceiling.h"

static char top[] = "/tmp/execd-ceiling-XXXXXX";
static char error[ARGS_ERROR_MAX];

static const char *
at(const char *name)
{
	static char paths[8][256];
	static int next;
	char *path = paths[next++ % 8];

	snprintf(path, 256, "%s/%s", top, name);
	return path;
}

static int
make_tree(void **state)
{
	if (mkdtemp(top) == NULL)
		return -1;
	return mkdir(at("work"), 0755) || mkdir(at("work/a"), 0755) ||
	       mkdir(at("other"), 0755) ||
	       symlink("../other", at("work/out")) || symlink("work", at("in"));
}

static int
remove_tree(void **state)
{
	return unlink(at("in")) || unlink(at("work/out")) ||
	       rmdir(at("other")) || rmdir(at("work/a")) || rmdir(at("work")) ||
	       rmdir(top);
}

static struct ceiling
make(bool strict)
{
	struct sandbox_limits l;
	struct ceiling c;

	sandbox_limits_default(&l, strict);
	ceiling_init(&c, &l, "/home/u");
	return c;
}

static void
clear(struct ceiling *c)
{
	free(c->workspace_roots);
	free(c->writable_roots);
	free(c->deny_read);
	free(c->hide);
	free(c->protected_names);
}

static const struct sandbox_context disabled = { .type = SANDBOX_DISABLED,
	.network_enabled = true,
	.files_unrestricted = true,
	.unrestricted = true };
static const struct sandbox_context external = { .type = SANDBOX_EXTERNAL,
	.files_unrestricted = true };
static const struct sandbox_context full = { .type = SANDBOX_MANAGED,
	.files_unrestricted = true };
static const struct sandbox_context online = { .type = SANDBOX_MANAGED,
	.network_enabled = true };
static const struct sandbox_context plain = { .type = SANDBOX_MANAGED };

static void
test_requests(void **state)
{
	static const struct {
		const struct sandbox_context *asked;
		const char *strict; /* what it exceeds; NULL: nothing */
	} cases[] = {
		{ NULL, "unsandboxed" },
		{ &disabled, "unsandboxed" },
		{ &external, "external" },
		{ &full, "write /" },
		{ &online, NULL },
		{ &plain, NULL },
	};

	for (size_t i = 0; i < nitems(cases); i++) {
		struct ceiling open = make(false), strict = make(true);
		struct ceiling_grant g;
		char text[256];

		assert_int_equal(
		    ceiling_judge(&open, cases[i].asked, "/", &g, error), 0);
		assert_int_equal(
		    ceiling_judge(&strict, cases[i].asked, "/", &g, error),
		    cases[i].strict ? -EINVAL : 0);
		if (cases[i].strict != NULL) {
			snprintf(text, sizeof(text),
			    "sandbox policy exceeds this executor's limit: %s",
			    cases[i].strict);
			assert_string_equal(error, text);
		}
		strict.limits.clamp = true;
		assert_int_equal(
		    ceiling_judge(&strict, cases[i].asked, "/", &g, error), 0);
		assert_false(g.context.unrestricted);
		assert_false(g.context.files_unrestricted);
		if (cases[i].asked == &full)
			assert_false(g.context.network_enabled);
		clear(&open);
		clear(&strict);
	}
}

static void
test_network(void **state)
{
	struct ceiling c = make(false);
	struct ceiling_grant g;

	assert_int_equal(ceiling_judge_network(&c, error), 0);
	c.limits.network = false;
	assert_int_equal(ceiling_judge_network(&c, error), -EINVAL);
	assert_int_equal(ceiling_judge(&c, &online, "/", &g, error), -EINVAL);
	assert_string_equal(
	    error, "sandbox policy exceeds this executor's limit: network");
	c.limits.clamp = true;
	assert_int_equal(ceiling_judge(&c, &online, "/", &g, error), 0);
	assert_false(g.context.network_enabled);
	clear(&c);
}

/* By where a path leads, never by its text. */
static void
test_roots(void **state)
{
	static const struct {
		const char *cwd;
		bool permitted;
	} cases[] = {
		{ "work", true },
		{ "work/a", true },
		{ "work/a/missing/b", true },
		{ "in/a", true },
		{ "other", false },
		{ "work/out", false },
		{ "work/out/missing", false },
		{ "", false },
		{ "workshop", false },
	};
	struct sandbox_limits l;
	struct ceiling_grant g;
	struct ceiling c;

	sandbox_limits_default(&l, false);
	snprintf(l.workspace_roots, sizeof(l.workspace_roots),
	    "/nonexistent/*\n%s/wor[k]", top);
	ceiling_init(&c, &l, "/home/u");
	for (size_t i = 0; i < nitems(cases); i++) {
		struct path_uri root = { .path = at(cases[i].cwd) };
		struct sandbox_context asked = plain;

		assert_int_equal(
		    ceiling_judge(&c, &plain, root.path, &g, error),
		    cases[i].permitted ? 0 : -EINVAL);
		asked.roots = &root;
		asked.nroots = 1;
		assert_int_equal(ceiling_judge(&c, &asked, NULL, &g, error),
		    cases[i].permitted ? 0 : -EINVAL);
	}
	clear(&c);
}

static void
add(struct plan *plan, enum plan_kind kind, const char *path)
{
	plan->mounts =
	    xreallocarray(plan->mounts, plan->count + 1, sizeof(*plan->mounts));
	plan->mounts[plan->count++] =
	    (struct plan_mount){ .kind = kind, .path = xstrdup(path) };
}

static void
test_plans(void **state)
{
	struct path_uri root = { .path = at("work") };
	struct sandbox_context granted = plain;
	struct ceiling c = make(true);
	struct plan plan = { .base = PLAN_BASE_READ };

	granted.roots = &root;
	granted.nroots = 1;
	add(&plan, PLAN_WRITE, root.path);
	add(&plan, PLAN_MASK_DIRECTORY, at("work/.git"));
	assert_int_equal(
	    ceiling_judge_plan(&c, &granted, NULL, &plan, error), 0);
	assert_int_equal(plan.count, 2);
	c.limits.max_profile = SANDBOX_PROFILE_READ_ONLY;
	assert_int_equal(
	    ceiling_judge_plan(&c, &granted, NULL, &plan, error), -EINVAL);
	assert_non_null(strstr(error, "limit: write /tmp/execd-ceiling-"));
	c.limits.clamp = true;
	assert_int_equal(
	    ceiling_judge_plan(&c, &granted, NULL, &plan, error), 0);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.mounts[0].kind, PLAN_READ);
	plan.base = PLAN_BASE_WRITE;
	assert_int_equal(
	    ceiling_judge_plan(&c, &granted, NULL, &plan, error), 0);
	assert_int_equal(plan.base, PLAN_BASE_READ);
	plan_clear(&plan);
	clear(&c);
}

static void
test_lists(void **state)
{
	struct sandbox_limits l;
	struct ceiling c;

	sandbox_limits_default(&l, false);
	snprintf(l.deny_read, sizeof(l.deny_read), "~/.ssh\n\n/a b\n~\n~x");
	ceiling_init(&c, &l, "/home/u");
	assert_string_equal(c.deny_read[0], "/home/u/.ssh");
	assert_string_equal(c.deny_read[1], "/a b");
	assert_string_equal(c.deny_read[2], "/home/u");
	assert_string_equal(c.deny_read[3], "~x");
	assert_null(c.deny_read[4]);
	assert_string_equal(c.protected_names[3], ".aws");
	clear(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
