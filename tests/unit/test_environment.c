/* SPDX-License-Identifier: ISC */
/*
 * environment: the steps of doc/protocol.md section 8 in their order, and the
 * patterns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "environment.h"

static char *const base[] = { (char *)(uintptr_t) "PATH=/bin",
	(char *)(uintptr_t) "HOME=/root", (char *)(uintptr_t) "FOO=foo",
	(char *)(uintptr_t) "MY_KEY=k", (char *)(uintptr_t) "api_token=t",
	(char *)(uintptr_t) "MONKEY=1", (char *)(uintptr_t) "PASSWORD=p",
	NULL };

/* Builds from JSON texts; the result is joined with blanks. */
static void
check(const char *policy, const char *env, const char *want)
{
	struct json_doc pd, ed;
	struct env_policy p = { 0 };
	char joined[512] = "";
	char **envp;

	assert_int_equal(json_parse(&ed, env, strlen(env)), 0);
	assert_int_equal(json_parse(&pd, policy, strlen(policy)), 0);
	if (pd.root->type == JSON_OBJECT) {
		const struct json_value *inherit = json_get(pd.root, "inherit");

		p.inherit = json_is(inherit, "all")    ? ENV_INHERIT_ALL
			    : json_is(inherit, "core") ? ENV_INHERIT_CORE
						       : ENV_INHERIT_NONE;
		p.ignore_default_excludes =
		    json_get(pd.root, "ignore")->boolean;
		p.exclude = json_get(pd.root, "exclude");
		p.set = json_get(pd.root, "set");
		p.include_only = json_get(pd.root, "only");
	}
	envp = environment_build(
	    base, pd.root->type == JSON_OBJECT ? &p : NULL, NULL, ed.root);
	for (char **e = envp; e && *e; e++) {
		strcat(joined, *e);
		strcat(joined, e[1] ? " " : "");
	}
	assert_string_equal(envp ? joined : "nul", want);
	free(envp);
	json_clear(&pd);
	json_clear(&ed);
}

#define POLICY(inherit, ignore, exclude, set, only)                            \
	"{\"inherit\":\"" inherit "\",\"ignore\":" ignore                      \
	",\"exclude\":" exclude ",\"set\":" set ",\"only\":" only "}"

static void
test_steps(void **state)
{
	check("null", "{\"A\":\"1\",\"B\":\"\"}", "A=1 B=");
	check("null", "{}", "");
	check(POLICY("none", "true", "[]", "{\"A\":\"1\",\"B\":\"2\"}", "[]"),
	    "{\"B\":\"3\",\"C\":\"4\"}", "A=1 B=3 C=4");
	check(POLICY("core", "true", "[]", "{}", "[]"), "{}",
	    "PATH=/bin HOME=/root");
	check(POLICY("all", "false", "[]", "{}", "[]"), "{}",
	    "PATH=/bin HOME=/root FOO=foo PASSWORD=p");
	check(POLICY("all", "true", "[\"*\"]", "{\"A\":\"1\"}", "[]"),
	    "{\"B\":\"2\"}", "A=1 B=2");
	check(POLICY("none", "false", "[]", "{\"API_KEY\":\"k\"}", "[]"), "{}",
	    "API_KEY=k");
	/* includeOnly also filters what set gave, never what env gives. */
	check(POLICY("all", "true", "[]", "{\"A1\":\"1\",\"B1\":\"2\"}",
		  "[\"A*\",\"path\"]"),
	    "{\"C1\":\"3\"}", "PATH=/bin api_token=t A1=1 C1=3");
	check(POLICY("all", "true", "[]", "{}", "[\"NO_SUCH\"]"),
	    "{\"X\":\"y\"}", "X=y");
	/* Dropped, then given again by env. */
	check(POLICY("all", "true", "[]", "{}", "[\"HOME\"]"),
	    "{\"PATH\":\"/x\"}", "PATH=/x HOME=/root");
}

static void
test_odd_names(void **state)
{
	check("null", "{\"\":\"v\",\"a b\":\"c=d\",\"x=y\":\"z\"}",
	    "=v a b=c=d x=y=z");
	check("null", "{\"A\":\"x\\u0000y\"}", "nul");
	check("null", "{\"A\\u0000\":\"x\"}", "nul");
}

static void
test_patterns(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool match;
	} rows[] = {
		{ "*KEY*", "MONKEY", true },
		{ "*KEY*", "key", true },
		{ "pat*", "PATH", true },
		{ "?ATH", "PATH", true },
		{ "?ATH", "ATH", false },
		{ "[P]ATH", "PATH", false },
		{ "{PATH}", "PATH", false },
		{ "", "PATH", false },
		{ "", "", false },
		{ "*", "", true },
		{ "*", "anything", true },
		{ "a*b*c", "aXXbYYc", true },
		{ "a*b*c", "aXXbYYd", false },
		{ "**a", "bba", true },
		{ "PATH", "PATHS", false },
	};

	for (size_t i = 0; i < nitems(rows); i++) {
		struct slice pattern = { rows[i].pattern,
			strlen(rows[i].pattern) };
		struct slice name = { rows[i].name, strlen(rows[i].name) };

		assert_int_equal(
		    environment_matches(pattern, name), rows[i].match);
	}
}

/* Only what is not set is added, and what was there is not copied. */
static void
test_defaults(void **state)
{
	static const char *const names[] = { "A", "B", "C", NULL };
	char a[] = "A=", bc[] = "BC=x", c[] = "C=1";
	char *none[] = { NULL }, *some[] = { a, bc, c, NULL };
	char **envp = environment_default(some, names, "/v");

	for (size_t i = 0; i < 3; i++)
		assert_string_equal(envp[i], some[i]);
	assert_string_equal(envp[3], "B=/v");
	assert_null(envp[4]);
	free(envp);
	envp = environment_default(none, names, "");
	assert_string_equal(envp[0], "A=");
	assert_string_equal(envp[2], "C=");
	assert_null(envp[3]);
	free(envp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
