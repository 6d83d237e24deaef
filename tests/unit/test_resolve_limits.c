/* SPDX-License-Identifier: ISC */
/*
 * resolve: many entries, deep paths, too many of anything, errors of the
 * disk, and what plan_access() reads from a plan.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "resolve_rows.h"

/* --- how long it takes ---------------------------------------------------- */

static double
used_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor time for a million short paths that are made and compared: what
 * this machine, this build and its other work make of any time. */
static double
yardstick_s(void)
{
	double begin = used_s();
	char *last = xstrdup(""), *path;
	int order = 0;

	for (unsigned i = 0; i < 1000000; i++) {
		path = xasprintf("/r%u/x/y", i);
		order += strcmp(last, path) < 0;
		free(last);
		last = path;
	}
	free(last);
	assert_true(order > 0);
	return used_s() - begin;
}

/* At most so many times that: ten times what the build needs that needs most,
 * which is one with sanitizers. */
static void
assert_cheap(double begin, unsigned yardsticks)
{
	double used = used_s() - begin;

	assert_true(used < yardsticks * yardstick_s());
}

/* A disk without end: every name is a directory, "f..." a file, "m..." is
 * missing, "lN" leads to "lN+1" beside it. */
static int
endless_lookup(void *owner, const char *path, struct fs_node *node)
{
	char first = strrchr(path, '/')[1];

	*node = (struct fs_node){ .type = first == 'f'	 ? FS_FILE
					  : first == 'm' ? FS_MISSING
					  : first == 'l' ? FS_LINK
							 : FS_DIRECTORY };
	return 0;
}

static int
endless_read_link(void *owner, const char *path, char *text, size_t cap)
{
	int n = atoi(strrchr(path, '/') + 2);

	snprintf(text, cap, n > 1 ? "l%d" : "end", n - 1);
	return 0;
}

static int
endless_read_file(void *owner, const char *path, char *text, size_t cap)
{
	snprintf(text, cap, "gitdir: .\n");
	return 0;
}

static int
endless_list(void *owner, const char *path, bool directories,
    fs_visit_fn *visit, void *arg)
{
	const size_t *files = owner;
	char name[32];

	for (size_t i = 0; i < *files; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		if (!visit(arg, name, FS_MISSING))
			break;
	}
	visit(arg, "d", FS_DIRECTORY);
	return 0;
}

struct big {
	struct sandbox_entry *entries;
	struct path_uri *roots;
	size_t count, nroots, files;
	unsigned nested;
	struct plan plan;
	char error[ARGS_ERROR_MAX];
	int err;
};

static void
big_add(struct big *b, enum sandbox_access access, char *path)
{
	/* A sanitizer copies at each call: room is made for twice as many. */
	if ((b->count & (b->count - 1)) == 0)
		b->entries = xreallocarray(b->entries,
		    b->count == 0 ? 1 : 2 * b->count, sizeof(*b->entries));
	b->entries[b->count++] =
	    (struct sandbox_entry){ .access = access, .path.path = path };
}

static void
big_resolve(struct big *b)
{
	static const char *const names[] = { ".git", ".codex", NULL };
	struct sandbox_context c = { .entries = b->entries,
		.nentries = b->count,
		.roots = b->roots,
		.nroots = b->nroots };
	struct resolve_request r = { .context = &c,
		.cwd = "/",
		.protected_names = names,
		.nested_git_depth = b->nested };
	struct fs_view view = { &b->files, endless_lookup, endless_read_link,
		endless_read_file, endless_list };

	b->err = resolve(&b->plan, &r, &view, b->error);
}

static void
big_clear(struct big *b)
{
	for (size_t i = 0; i < b->count; i++)
		free((char *)(uintptr_t)b->entries[i].path.path);
	for (size_t i = 0; i < b->nroots; i++)
		free((char *)(uintptr_t)b->roots[i].path);
	free(b->entries);
	free(b->roots);
	plan_clear(&b->plan);
}

static void
check_big(struct big *b, int err, const char *error)
{
	big_resolve(b);
	assert_string_equal(b->error, error);
	assert_int_equal(b->err, err);
	big_clear(b);
}

/* "/d/d/.../LAST", n components above. */
static char *
deep_path(size_t n, const char *last)
{
	char *path = xmalloc(2 * n + strlen(last) + 2);

	for (size_t i = 0; i < n; i++)
		memcpy(path + 2 * i, "/d", 2);
	path[2 * n] = '/';
	strcpy(path + 2 * n + 1, last);
	return path;
}

static void
test_many(void **state)
{
	struct big b = { 0 };
	double begin = used_s();

	for (size_t i = 0; i < SANDBOX_LIST_MAX; i++)
		big_add(&b, i % 3, xasprintf("/r%zu/x/y%zu", i % 100, i));
	big_resolve(&b);
	assert_int_equal(b.err, 0);
	assert_true(b.plan.count > SANDBOX_LIST_MAX / 2);
	for (size_t i = 0; i + 1 < b.plan.count; i++)
		assert_true(strcmp(b.plan.mounts[i].path,
				b.plan.mounts[i + 1].path) < 0);
	assert_cheap(begin, 30);
	big_clear(&b);
}

/* Each entry below the one before. */
static void
test_nested(void **state)
{
	struct big b = { .nested = 3 };
	double begin = used_s();

	for (size_t i = 0; i < 1000; i++)
		big_add(&b, i % 2 ? SANDBOX_READ : SANDBOX_WRITE,
		    deep_path(i, "d"));
	big_resolve(&b);
	assert_int_equal(b.err, 0);
	assert_int_equal(plan_access(&b.plan, "/d/d/d/x"), SANDBOX_WRITE);
	assert_int_equal(plan_access(&b.plan, "/d/d/x"), SANDBOX_READ);
	assert_cheap(begin, 10);
	big_clear(&b);
}

/* A search for repositories never ends before it has seen all: the directory
 * beyond the limit refuses. */
static void
test_nested_names(void **state)
{
	struct big b = { .nested = 1, .files = 4999 };

	big_add(&b, SANDBOX_WRITE, deep_path(0, "d"));
	check_big(&b, 0, "");
	b = (struct big){ .nested = 1, .files = 5000 };
	big_add(&b, SANDBOX_WRITE, deep_path(0, "d"));
	check_big(&b, -EINVAL,
	    "nested-git: more than 5000 directories to search for "
	    "repositories, at /d: lower nested-git-depth (1), or set "
	    "nested-git = off");
	b = (struct big){ .nested = 2, .files = 2499 };
	big_add(&b, SANDBOX_WRITE, deep_path(0, "d"));
	check_big(&b, 0, "");
	b = (struct big){ .nested = 2, .files = 2500 };
	big_add(&b, SANDBOX_WRITE, deep_path(0, "d"));
	check_big(&b, -EINVAL,
	    "nested-git: more than 5000 directories to search for "
	    "repositories, at /d/d: lower nested-git-depth (2), or set "
	    "nested-git = off");
}

static void
test_deep(void **state)
{
	struct big b = { 0 };
	double begin = used_s();

	for (size_t i = 0; i < SANDBOX_LIST_MAX; i++)
		big_add(&b, SANDBOX_DENY, deep_path(2000, "d"));
	check_big(
	    &b, -EINVAL, "sandbox paths have more than 4000000 components");
	assert_cheap(begin, 60);
	b = (struct big){ 0 };
	big_add(&b, SANDBOX_DENY, deep_path(PATH_MAX, "d"));
	big_add(&b, SANDBOX_WRITE, deep_path(PATH_MAX, "f"));
	check_big(&b, 0, "");
}

static void
test_long_name(void **state)
{
	char path[NAME_MAX + 8];
	struct big b = { 0 };

	memset(path, 'd', sizeof(path));
	memcpy(path, "/w/", 3);
	path[sizeof(path) - 1] = '\0';
	big_add(&b, SANDBOX_WRITE, xstrdup("/w"));
	big_add(&b, SANDBOX_DENY, xstrdup(path));
	big_resolve(&b);
	assert_int_equal(b.err, 0);
	assert_int_equal(plan_access(&b.plan, "/w/x"), SANDBOX_WRITE);
	big_clear(&b);
}

static void
test_links(void **state)
{
	struct big b = { 0 };

	big_add(&b, SANDBOX_READ, xstrdup("/l40"));
	big_resolve(&b);
	assert_int_equal(b.err, 0);
	assert_int_equal(plan_access(&b.plan, "/end/x"), SANDBOX_READ);
	assert_int_equal(b.plan.count, 41);
	big_clear(&b);
	b = (struct big){ 0 };
	big_add(&b, SANDBOX_READ, xstrdup("/l41"));
	check_big(&b, -EINVAL,
	    "cannot resolve sandbox path /l41: Too many levels of symbolic "
	    "links (os error 40)");
}

static void
test_mounts(void **state)
{
	struct big b = { 0 };

	big_add(&b, SANDBOX_WRITE, xstrdup("/"));
	for (size_t i = 0; i < 9000; i++)
		big_add(&b, SANDBOX_DENY, xasprintf("/a%zu/b/c/f", i));
	check_big(&b, -EINVAL, "sandbox policy needs more than 20000 mounts");
}

static void
add_pattern(struct big *b, const char *text)
{
	big_add(b, SANDBOX_DENY, NULL);
	b->entries[b->count - 1].kind = SANDBOX_GLOB;
	b->entries[b->count - 1].text = (struct slice){ text, strlen(text) };
}

static void
test_matches(void **state)
{
	struct big b = { .files = RESOLVE_MATCHES_MAX };

	add_pattern(&b, "/w/f*");
	big_resolve(&b);
	assert_int_equal(b.err, 0);
	assert_int_equal(b.plan.count, 0);
	big_clear(&b);
	b = (struct big){ .files = RESOLVE_MATCHES_MAX + 1 };
	big_add(&b, SANDBOX_READ, xstrdup("/"));
	add_pattern(&b, "/w/f*");
	check_big(&b, -EINVAL, "sandbox patterns match more than 8192 paths");
	b = (struct big){ .files = RESOLVE_MATCHES_MAX };
	big_add(&b, SANDBOX_READ, xstrdup("/"));
	add_pattern(&b, "/w/f*");
	big_resolve(&b);
	assert_int_equal(b.plan.count, RESOLVE_MATCHES_MAX);
	big_clear(&b);
}

/* A tree without an end, and many patterns on it. */
static void
test_scan(void **state)
{
	struct big b = { .files = 5000 };
	double begin = used_s();

	add_pattern(&b, "/w/**/x");
	check_big(
	    &b, -EINVAL, "sandbox patterns look at more than 10000000 names");
	b = (struct big){ .files = 1 };
	for (size_t i = 0; i < SANDBOX_LIST_MAX; i++)
		add_pattern(&b, "/w/{a,b,c}*");
	check_big(&b, -EINVAL, "more than 20000 sandbox patterns");
	assert_cheap(begin, 130);
}

static void
test_roots(void **state)
{
	struct big b = { 0 };

	b.roots = xcalloc(SANDBOX_LIST_MAX, sizeof(*b.roots));
	for (size_t i = 0; i < SANDBOX_LIST_MAX; i++)
		b.roots[b.nroots++].path = xasprintf("/r%zu", i);
	for (size_t i = 0; i < SANDBOX_LIST_MAX; i++) {
		big_add(&b, SANDBOX_WRITE, NULL);
		b.entries[i].kind = SANDBOX_SPECIAL;
		b.entries[i].special = SANDBOX_PROJECT_ROOTS;
	}
	check_big(&b, -EINVAL, "sandbox entries name more than 100000 paths");
}

static void
test_nul(void **state)
{
	struct big b = { 0 };

	b.roots = xcalloc(1, sizeof(*b.roots));
	b.roots[b.nroots++].path = xstrdup("/w");
	big_add(&b, SANDBOX_WRITE, NULL);
	b.entries[0].kind = SANDBOX_SPECIAL;
	b.entries[0].special = SANDBOX_PROJECT_ROOTS;
	b.entries[0].text = SLICE("a\0b");
	check_big(&b, -EINVAL, "sandbox subpath holds a NUL byte");
}

/* What the view cannot say ends the resolution, and nothing leaks. */
static void
test_view_error(void **state)
{
	static const char fs[] = "/ws/.git/ /ws/a/";
	static const struct resolve_case c = { .entries = "r:@root w:@ws" };
	struct case_run *run = xcalloc(1, sizeof(*run));

	fake_fs_init(&run->fs, fs, strlen(fs));
	run->fs.error = -EIO;
	case_resolve(run, &c);
	assert_int_equal(run->err, -EIO);
	assert_int_equal(run->plan.count, 0);
	case_clear(run);
	free(run);
}

static void
test_access(void **state)
{
	static const char fs[] = "/ws/.git/ /ws/d/o/ /ws/d/x /ws/a/s /proc/";
	static const struct resolve_case c = { .names = ".git .aws",
		.entries = "r:@root w:@ws d:/ws/d w:/ws/d/o d:/ws/a/s "
			   "d:/proc" };
	static const struct {
		const char *path;
		enum sandbox_access want;
	} paths[] = { { "/", SANDBOX_READ }, { "/w", SANDBOX_READ },
		{ "/wsx", SANDBOX_READ }, { "/ws", SANDBOX_WRITE },
		{ "/ws/x/y", SANDBOX_WRITE }, { "/ws/.git", SANDBOX_READ },
		{ "/ws/.git/x", SANDBOX_READ }, { "/ws/.gitx", SANDBOX_WRITE },
		{ "/ws/.aws/x", SANDBOX_READ }, { "/ws/d", SANDBOX_DENY },
		{ "/ws/d/x", SANDBOX_DENY }, { "/ws/d/o/x", SANDBOX_WRITE },
		{ "/ws/a", SANDBOX_WRITE }, { "/ws/a/t", SANDBOX_WRITE },
		{ "/ws/a/s", SANDBOX_DENY }, { "/proc/1", SANDBOX_DENY },
		{ "/proc", SANDBOX_DENY }, { "/process", SANDBOX_READ } };
	struct case_run *run = xcalloc(1, sizeof(*run));

	fake_fs_init(&run->fs, fs, strlen(fs));
	case_resolve(run, &c);
	assert_int_equal(run->err, 0);
	for (size_t i = 0; i < nitems(paths); i++)
		if (plan_access(&run->plan, paths[i].path) != paths[i].want)
			fail_msg("%s", paths[i].path);
	case_clear(run);
	free(run);
}

/* What the resolver saw is told, so that a change is seen later. */
static void
test_seen(void **state)
{
	static const char fs[] = "/ws/.git/ /ws/f";
	static const struct resolve_case c = { .names = ".git .aws",
		.entries = "r:@root w:@ws d:/ws/f" };
	static const enum fs_type types[] = { FS_DIRECTORY, FS_MISSING,
		FS_DIRECTORY, FS_FILE };
	struct case_run *run = xcalloc(1, sizeof(*run));

	fake_fs_init(&run->fs, fs, strlen(fs));
	case_resolve(run, &c);
	assert_int_equal(run->plan.count, nitems(types));
	for (size_t i = 0; i < nitems(types); i++) {
		const struct plan_mount *m = &run->plan.mounts[i];
		struct fs_node now;

		fake_lookup(&run->fs, m->path, &now);
		assert_int_equal(m->seen.type, types[i]);
		assert_int_equal(m->seen.inode, now.inode);
		assert_int_equal(m->seen.device, now.device);
	}
	case_clear(run);
	free(run);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_nested_names),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_view_error),
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
