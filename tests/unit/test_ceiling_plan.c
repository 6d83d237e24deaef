/* SPDX-License-Identifier: ISC */
/*
 * The operator's ceiling over what a policy comes to, on a real directory.
 */
#include "ceiling_case.h"

static void
add(struct plan *plan, enum plan_kind kind, const char *path)
{
	struct fs_node seen = { .type = FS_MISSING };
	struct stat st;

	if (lstat(path, &st) == 0)
		seen = (struct fs_node){ FS_DIRECTORY, st.st_dev, st.st_ino };
	plan->mounts =
	    xreallocarray(plan->mounts, plan->count + 1, sizeof(*plan->mounts));
	plan->mounts[plan->count++] = (struct plan_mount){
		.kind = kind, .path = xstrdup(path), .seen = seen
	};
}

/* With workspace-write, a root, and a plan of one writable mount. */
static void
begin(struct ceiling *c, struct ceiling_grant *g, struct plan *plan,
    const char *root, const char *written)
{
	static struct path_uri uri;
	static struct sandbox_context asked;

	uri = (struct path_uri){ .path = root };
	asked = plain;
	asked.roots = &uri;
	asked.nroots = 1;
	*c = make(true);
	assert_int_equal(ceiling_judge(c, &asked, false, NULL, g, error), 0);
	*plan = (struct plan){ .base = PLAN_BASE_READ };
	add(plan, PLAN_WRITE, written);
}

static void
end(struct ceiling *c, struct ceiling_grant *g, struct plan *plan)
{
	plan_clear(plan);
	ceiling_grant_clear(g);
	clear(c);
}

static void
test_plans(void **state)
{
	struct ceiling_grant g;
	struct ceiling c;
	struct plan plan;

	begin(&c, &g, &plan, at("work"), at("work"));
	add(&plan, PLAN_PLACEHOLDER_DIRECTORY, at("work/.git"));
	assert_int_equal(ceiling_judge_plan(&c, &g, NULL, &plan, error), 0);
	assert_int_equal(plan.count, 2);
	c.limits.max_profile = SANDBOX_PROFILE_READ_ONLY;
	assert_int_equal(
	    ceiling_judge_plan(&c, &g, NULL, &plan, error), -EINVAL);
	assert_non_null(strstr(error, "limit: write /var/tmp/execd-ceiling-"));
	c.limits.clamp = true;
	assert_int_equal(ceiling_judge_plan(&c, &g, NULL, &plan, error), 0);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.mounts[0].kind, PLAN_READ);
	assert_int_equal(g.clamped, 1 << CEILING_WRITE);
	end(&c, &g, &plan);
}

/* A pin is writable: where its place is not any more, it must not stay. */
static void
test_pins(void **state)
{
	struct ceiling_grant g;
	struct ceiling c;
	struct plan plan;

	begin(&c, &g, &plan, at("work/a"), at("work"));
	add(&plan, PLAN_PIN, at("work/a"));
	add(&plan, PLAN_DENY_DIRECTORY, at("work/a/b"));
	add(&plan, PLAN_PLACEHOLDER_DIRECTORY, at("work/a/c"));
	c.limits.max_profile = SANDBOX_PROFILE_READ_ONLY;
	c.limits.clamp = true;
	assert_int_equal(ceiling_judge_plan(&c, &g, NULL, &plan, error), 0);
	assert_int_equal(plan.count, 2);
	assert_int_equal(plan.mounts[0].kind, PLAN_READ);
	assert_int_equal(plan.mounts[1].kind, PLAN_DENY_DIRECTORY);
	end(&c, &g, &plan);
}

static void
turn(const char *link, const char *target)
{
	unlink(link);
	assert_int_equal(symlink(target, link), 0);
}

/* What a root led to when it was judged is what counts. */
static void
test_turned_links(void **state)
{
	struct ceiling_grant g;
	struct ceiling c;
	struct plan plan;

	turn(at("turn"), "work");
	begin(&c, &g, &plan, at("turn"), at("work/a"));
	assert_int_equal(ceiling_judge_plan(&c, &g, NULL, &plan, error), 0);
	end(&c, &g, &plan);

	begin(&c, &g, &plan, at("turn"), at("other"));
	turn(at("turn"), "other");
	assert_int_equal(
	    ceiling_judge_plan(&c, &g, NULL, &plan, error), -EINVAL);
	end(&c, &g, &plan);
	unlink(at("turn"));

	/* One that was not there. */
	begin(&c, &g, &plan, at("turn"), at("other"));
	turn(at("turn"), "other");
	assert_int_equal(
	    ceiling_judge_plan(&c, &g, NULL, &plan, error), -EINVAL);
	end(&c, &g, &plan);
	unlink(at("turn"));
}

static void
test_tmpdir(void **state)
{
	static const struct {
		const char *tmpdir;
		bool bounded, permitted;
	} cases[] = {
		{ "other", false, true },
		{ "other", true, true },
		{ "work/out", false, true },
		{ "work/out", true, false },
		{ "work", true, false },
	};
	static const char *bounds[] = { top, NULL };
	const char **any;
	struct ceiling_grant g;
	struct ceiling c;
	struct plan plan;

	for (size_t i = 0; i < nitems(cases); i++) {
		begin(&c, &g, &plan, at("work"), at("other"));
		any = c.workspace_roots;
		if (cases[i].bounded)
			c.workspace_roots = bounds;
		assert_int_equal(ceiling_judge_plan(
				     &c, &g, at(cases[i].tmpdir), &plan, error),
		    cases[i].permitted ? 0 : -EINVAL);
		c.workspace_roots = any;
		end(&c, &g, &plan);
	}
}

/* A place is what the resolver saw there, on a way without links. */
static void
test_moved_places(void **state)
{
	struct ceiling_grant g;
	struct ceiling c;
	struct plan plan;

	begin(&c, &g, &plan, at("work"), at("work/a"));
	plan.mounts[0].seen.inode++;
	assert_int_equal(
	    ceiling_judge_plan(&c, &g, NULL, &plan, error), -EINVAL);
	end(&c, &g, &plan);

	begin(&c, &g, &plan, at("work"), at("in/a"));
	assert_int_equal(
	    ceiling_judge_plan(&c, &g, NULL, &plan, error), -EINVAL);
	end(&c, &g, &plan);
}

/* Writing everything comes down to the workspace, less what was denied. */
static void
test_everything(void **state)
{
	struct sandbox_entry entries[] = {
		{ .access = SANDBOX_WRITE,
		    .kind = SANDBOX_SPECIAL,
		    .special = SANDBOX_ROOT },
		{ .access = SANDBOX_DENY,
		    .kind = SANDBOX_PATH,
		    .path.path = at("work/a") },
	};
	struct ceiling_grant g;
	struct ceiling c;
	struct plan plan;

	begin(&c, &g, &plan, at("work"), at("other"));
	plan.base = PLAN_BASE_WRITE;
	g.context.entries = entries;
	g.context.nentries = nitems(entries);
	assert_int_equal(
	    ceiling_judge_plan(&c, &g, NULL, &plan, error), -EINVAL);
	assert_string_equal(
	    error, "sandbox policy exceeds this executor's limit: write /");
	c.limits.clamp = true;
	assert_int_equal(
	    ceiling_judge_plan(&c, &g, NULL, &plan, error), -EAGAIN);
	assert_int_equal(g.context.nentries, 4);
	assert_int_equal(g.context.entries[0].access, SANDBOX_READ);
	assert_int_equal(g.context.entries[1].access, SANDBOX_DENY);
	assert_string_equal(g.context.entries[2].path.path, at("work"));
	assert_string_equal(g.context.entries[3].path.path, "/tmp");
	assert_int_equal(
	    ceiling_judge_plan(&c, &g, NULL, &plan, error), -ESTALE);
	end(&c, &g, &plan);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_pins),
		cmocka_unit_test(test_turned_links),
		cmocka_unit_test(test_tmpdir),
		cmocka_unit_test(test_moved_places),
		cmocka_unit_test(test_everything),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
