/* SPDX-License-Identifier: ISC */
/*
 * glob: the patterns of doc/sandbox.md section A6, and what is no pattern.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "resolve_parts.h"
#include "util.h"

/* The path is relative to the base; "yes" in any alternative counts. */
static const struct row {
	const char *pattern, *base, *path;
	bool want;
} rows[] = {
	/* `*` and `?` stop at a slash */
	{ "/ws/*.env", "/ws", "top.env", true },
	{ "/ws/*.env", "/ws", ".env", true },
	{ "/ws/*.env", "/ws", "a/top.env", false },
	{ "/ws/*.env", "/ws", "top.envx", false },
	{ "/ws/?.c", "/ws", "a.c", true },
	{ "/ws/?.c", "/ws", ".c", false },
	{ "/ws/?.c", "/ws", "ab.c", false },
	{ "/ws/a*b*c", "/ws", "abc", true },
	{ "/ws/a*b*c", "/ws", "axxbxbxc", true },
	{ "/ws/a*b*c", "/ws", "axxbxbx", false },
	{ "/ws/*", "/ws", ".hidden", true },
	{ "/ws/*/x", "/ws", "a/x", true },
	{ "/ws/*/x", "/ws", "x", false },
	{ "/ws/*/x", "/ws", "a/b/x", false },
	/* a whole component of two stars crosses */
	{ "/ws/**/*.env", "/ws", "top.env", true },
	{ "/ws/**/*.env", "/ws", "a/.hidden/deep.env", true },
	{ "**/x", "", "x", true },
	{ "**/x", "", "a/b/x", true },
	{ "**/x", "", "a/b/xx", false },
	{ "**/**/x", "", "x", true },
	{ "a/**/b/**/c", "a", "b/c", true },
	{ "a/**/b/**/c", "a", "x/b/y/z/c", true },
	{ "a/**/b/**/c", "a", "x/y/c", false },
	{ "a/**", "a", "b", true },
	{ "a/**", "a", "b/c", true },
	{ "a/**", "a", "", false },
	{ "**", "", "a/b", true },
	{ "/ws/a**c", "/ws", "abc", true },
	{ "/ws/a**c", "/ws", "a/c", false },
	/* classes */
	{ "/ws/[ab].c", "/ws", "b.c", true },
	{ "/ws/[ab].c", "/ws", "c.c", false },
	{ "/ws/[a-c]x", "/ws", "bx", true },
	{ "/ws/[!a-c]x", "/ws", "bx", false },
	{ "/ws/[^a-c]x", "/ws", "dx", true },
	{ "/ws/[]a]", "/ws", "]", true },
	{ "/ws/[!]a]", "/ws", "]", false },
	{ "/ws/[a-]", "/ws", "-", true },
	{ "/ws/[-a]", "/ws", "-", true },
	{ "/ws/[\\]", "/ws", "\\", true },
	{ "/ws/[*]", "/ws", "*", true },
	{ "/ws/[*]", "/ws", "x", false },
	/* unclosed: a letter */
	{ "/ws/[a*", "/ws", "[ab", true },
	{ "/ws/[a*", "/ws", "ab", false },
	{ "/ws/[", "/ws/[", "", true },
	{ "/ws/*[", "/ws", "x[", true },
	/* quotes */
	{ "/ws/\\*", "/ws/*", "", true },
	{ "/ws/*\\*", "/ws", "a*", true },
	{ "/ws/*\\*", "/ws", "ab", false },
	{ "/ws/\\{a\\}", "/ws/{a}", "", true },
	/* alternatives */
	{ "/ws/*.{env,pem}", "/ws", "a.pem", true },
	{ "/ws/*.{env,pem}", "/ws", "a.env", true },
	{ "/ws/*.{env,pem}", "/ws", "a.en", false },
	{ "/ws/{a,b/{c,d}}/*", "/ws/b/d", "x", true },
	{ "/ws/{a,b/{c,d}}/*", "/ws/a", "x", true },
	{ "/ws/{,x}*.c", "/ws", "a.c", true },
	{ "/ws/*{[,],x}", "/ws", "a,", true },
	/* fixed components, and none of it */
	{ "/ws/secret", "/ws/secret", "", true },
	{ "/", "/", "", true },
	{ "a//./b/*/", "a/b", "c", true },
	{ "../x/*", "../x", "y", true },
};

/* A path relative to the base, name by name as the resolver does it. */
static bool
glob_match(const struct glob *g, const char *path)
{
	uint64_t states = glob_start(g);

	while (*path != '\0') {
		size_t n = strcspn(path, "/");
		_cleanup_free_ char *name = xstrndup(path, n);

		if (n > 0)
			states = glob_step(g, states, name);
		path += n + (path[n] == '/');
	}
	return glob_matched(g, states);
}

static bool
matches(const struct glob_list *list, const char *base, const char *path)
{
	bool found = false;

	for (size_t i = 0; i < list->count; i++)
		found |= strcmp(list->globs[i].base, base) == 0 &&
			 glob_match(&list->globs[i], path);
	return found;
}

static void
test_match(void **state)
{
	for (size_t i = 0; i < nitems(rows); i++) {
		const struct row *r = &rows[i];
		struct slice text = { r->pattern, strlen(r->pattern) };
		const char *reason = "none";
		struct glob_list list;

		assert_int_equal(glob_parse(&list, text, &reason), 0);
		if (matches(&list, r->base, r->path) != r->want)
			fail_msg("%s: %s + %s", r->pattern, r->base, r->path);
		glob_list_clear(&list);
	}
}

static void
check_error(struct slice text, const char *want)
{
	const char *reason = "none";
	struct glob_list list;

	assert_int_equal(glob_parse(&list, text, &reason), -EINVAL);
	assert_string_equal(reason, want);
	glob_list_clear(&list);
}

static void
test_errors(void **state)
{
	char many[2 * GLOB_PARTS_MAX + 8] = "*";
	char text[GLOB_TEXT_MAX + 2];

	check_error(SLICE(""), "empty");
	check_error(SLICE("a\0b"), "it holds a NUL");
	check_error(SLICE("/ws/[z-a]"), "invalid range");
	check_error(SLICE("/ws/[!z-a]*"), "invalid range");
	check_error(SLICE("/ws/a\\"), "dangling '\\'");
	check_error(SLICE("/ws/{a,b"), "unclosed alternate group");
	check_error(SLICE("/ws/{a,{b}"), "unclosed alternate group");
	check_error(SLICE("/ws/a}"), "unopened alternate group");
	check_error(SLICE("/ws/{a}}"), "unopened alternate group");
	check_error(SLICE("/ws/*/../x"), "'..' behind a wildcard");
	for (int i = 0; i < GLOB_PARTS_MAX; i++)
		strcat(many, "/*");
	check_error(
	    (struct slice){ many, strlen(many) }, "too many components");
	memset(text, 'a', sizeof(text));
	check_error((struct slice){ text, sizeof(text) }, "too long");
	check_error(SLICE("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"),
	    "too many alternatives");
}

/* Hostile: a name of one letter, a pattern of many stars. */
static void
test_stars(void **state)
{
	char pattern[400] = "", name[256];
	const char *reason;
	struct glob_list list;

	for (int i = 0; i < 100; i++)
		strcat(pattern, "*a");
	strcat(pattern, "*b");
	memset(name, 'a', 255);
	name[255] = '\0';
	assert_int_equal(
	    glob_parse(
		&list, (struct slice){ pattern, strlen(pattern) }, &reason),
	    0);
	for (int i = 0; i < 1000; i++)
		assert_false(glob_match(&list.globs[0], name));
	glob_list_clear(&list);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_stars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
