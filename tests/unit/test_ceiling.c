/* SPDX-License-Identifier: ISC */
/*
 * The operator's ceiling over what a client asks, on a real directory.
 */
#include "ceiling_case.h"

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
		    ceiling_judge(&open, cases[i].asked, false, "/", &g, error),
		    0);
		assert_int_equal(ceiling_judge(&strict, cases[i].asked, false,
				     "/", &g, error),
		    cases[i].strict ? -EINVAL : 0);
		ceiling_grant_clear(&g);
		if (cases[i].strict != NULL) {
			snprintf(text, sizeof(text),
			    "sandbox policy exceeds this executor's limit: %s",
			    cases[i].strict);
			assert_string_equal(error, text);
		}
		strict.limits.clamp = true;
		assert_int_equal(ceiling_judge(&strict, cases[i].asked, false,
				     "/", &g, error),
		    0);
		assert_false(g.context.unrestricted);
		assert_false(g.context.files_unrestricted);
		assert_int_equal(g.clamped != 0, cases[i].strict != NULL);
		if (cases[i].asked == &full || cases[i].asked == &external)
			assert_false(g.context.network_enabled);
		ceiling_grant_clear(&g);
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
	c.limits.network_host = false;
	assert_false(ceiling_holds_requests(&c));
	c.limits.unsandboxed = false;
	assert_int_equal(ceiling_judge_network(&c, error), 0);
	assert_true(ceiling_holds_requests(&c));
	c.limits.network_host = true;
	assert_false(ceiling_holds_requests(&c));
	c.limits.unsandboxed = true;
	c.limits.network = false;
	assert_int_equal(ceiling_judge_network(&c, error), -EINVAL);
	assert_int_equal(
	    ceiling_judge(&c, &online, false, "/", &g, error), -EINVAL);
	assert_string_equal(
	    error, "sandbox policy exceeds this executor's limit: network");
	c.limits.clamp = true;
	assert_int_equal(ceiling_judge(&c, &online, false, "/", &g, error), 0);
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
		    ceiling_judge(&c, &plain, false, root.path, &g, error),
		    cases[i].permitted ? 0 : -EINVAL);
		ceiling_grant_clear(&g);
		asked.roots = &root;
		asked.nroots = 1;
		assert_int_equal(
		    ceiling_judge(&c, &asked, false, NULL, &g, error),
		    cases[i].permitted ? 0 : -EINVAL);
		ceiling_grant_clear(&g);
		c.limits.clamp = true;
		assert_int_equal(
		    ceiling_judge(&c, &asked, false, NULL, &g, error), 0);
		assert_int_equal(g.context.nroots, cases[i].permitted);
		assert_int_equal(
		    g.clamped, cases[i].permitted ? 0 : 1 << CEILING_ROOT);
		ceiling_grant_clear(&g);
		c.limits.clamp = false;
	}
	clear(&c);
}

/* Whoever can make a link below a pattern does not choose what it means. */
static void
test_patterns(void **state)
{
	static const struct {
		const char *pattern, *root;
		bool permitted;
	} cases[] = {
		{ "wor*", "work/a", true },
		{ "wor*/a", "work/a", true },
		{ "wor*/a", "work", false },
		{ "in", "work", true },
		{ "i*", "work", false },
		{ "*/out", "other", false },
		{ "*/out/.", "other", false },
		{ "work/out", "other", true },
		{ "work/out/*", "other", false },
		{ "work/./*", "work/a", true },
	};
	struct ceiling_grant g;
	struct sandbox_limits l;
	struct ceiling c;

	for (size_t i = 0; i < nitems(cases); i++) {
		sandbox_limits_default(&l, true);
		snprintf(l.workspace_roots, sizeof(l.workspace_roots), "%s/%s",
		    top, cases[i].pattern);
		ceiling_init(&c, &l, "/home/u");
		assert_int_equal(ceiling_judge(&c, &plain, false,
				     at(cases[i].root), &g, error),
		    cases[i].permitted ? 0 : -EINVAL);
		ceiling_grant_clear(&g);
		clear(&c);
	}
}

static void
test_lists(void **state)
{
	struct sandbox_limits l;
	struct ceiling c;

	sandbox_limits_default(&l, false);
	snprintf(
	    l.deny_read, sizeof(l.deny_read), "~/.ssh\n\n/a b\n~\n~x\n-~/k");
	ceiling_init(&c, &l, "/home/u");
	assert_string_equal(c.deny_read[0], "/home/u/.ssh");
	assert_string_equal(c.deny_read[1], "/a b");
	assert_string_equal(c.deny_read[2], "/home/u");
	assert_string_equal(c.deny_read[3], "~x");
	assert_string_equal(c.deny_read[4], "-/home/u/k");
	assert_null(c.deny_read[5]);
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
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
