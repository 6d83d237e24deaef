/* SPDX-License-Identifier: ISC */
/*
 * options: the tables are sound, and what they say is what is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "execctl.h"

static void
check_table(const struct option_row *table)
{
	for (; table != NULL && table->name != NULL; table++) {
		assert_true(strlen(table->name) > 1);
		assert_true(table->help[0] != '\0');
		assert_null(strchr(table->help, '\n'));
	}
}

/* No option of a command hides another one, but for -h of ls(1), which nobody
 * takes for --help. */
static void
check_pair(const struct option_row *a, const struct option_row *b)
{
	for (const struct option_row *i = a; i && i->name; i++)
		for (const struct option_row *j = b; j && j->name; j++) {
			if (i == j)
				continue;
			assert_string_not_equal(i->name, j->name);
			if (i->letter != 0 &&
			    strcmp(i->name, "human-readable") != 0)
				assert_int_not_equal(i->letter, j->letter);
		}
}

static void
test_tables(void **state)
{
	check_table(execctl_options);
	check_pair(execctl_options, execctl_options);
	for (const struct command *c = execctl_commands; c->name != NULL; c++) {
		check_table(c->options);
		check_pair(c->options, c->options);
		check_pair(c->options, execctl_options);
		assert_non_null(c->run);
		assert_true(c->max_arguments < 0 ||
			    c->max_arguments >= c->min_arguments);
	}
}

/* argv ends with NULL; getopt(3) changes its order. */
static int
parse(struct parsed *p, const char **argv)
{
	int argc = 0;

	while (argv[argc] != NULL)
		argc++;
	return options_parse(p, execctl_options, execctl_commands, argc,
	    (char **)(uintptr_t)argv);
}

static void
test_where_options_stand(void **state)
{
	const char *argv[] = { "execctl", "-u", "ws://a", "run", "-t",
		"--env=A=1", "-E", "B=2", "--quiet", "ls", "-l", "--url", "x",
		NULL };
	struct parsed p;

	assert_int_equal(parse(&p, argv), 0);
	assert_string_equal(p.command->name, "run");
	assert_string_equal(option(&p, "url"), "ws://a");
	assert_string_equal(option(&p, "tty"), "");
	assert_non_null(option(&p, "quiet"));
	assert_null(option(&p, "json"));
	assert_string_equal(option(&p, "env"), "B=2");
	assert_string_equal(option_nth(&p, "env", 0), "A=1");
	assert_null(option_nth(&p, "env", 2));
	/* The rest is the command's, dashes and all. */
	assert_int_equal(p.narguments, 4);
	assert_string_equal(p.arguments[0], "ls");
	assert_string_equal(p.arguments[2], "--url");
	options_clear(&p);
}

static void
test_others_may_have_options_behind(void **state)
{
	const char *argv[] = { "execctl", "cp", "a", "-r", "b", "--json",
		NULL };
	struct parsed p;

	assert_int_equal(parse(&p, argv), 0);
	assert_int_equal(p.narguments, 2);
	assert_non_null(option(&p, "recursive"));
	assert_non_null(option(&p, "json"));
	options_clear(&p);
}

static void
test_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms; /* 0: refused */
	} cases[] = { { "1ms", 1 }, { "10s", 10000 }, { "2m", 120000 },
		{ "1h", 3600000 }, { "0s", 0 }, { "10", 10000 }, { "s", 0 },
		{ "", 0 }, { "-1s", 0 }, { "1.5s", 0 }, { " 1s", 0 },
		{ "1s ", 0 }, { "1 s", 0 }, { "99999999999h", 0 },
		{ "99999999999999999999s", 0 }, { "1d", 0 }, { "1m30s", 90000 },
		{ "1h1m1s1ms", 3661001 }, { "1h5ms", 3600005 }, { "30s1m", 0 },
		{ "1m1m", 0 }, { "1m30", 0 }, { "m30s", 0 } };

	for (size_t i = 0; i < nitems(cases); i++) {
		uint64_t ms = 0;
		int err = option_duration(cases[i].text, &ms);

		assert_int_equal(err == 0, cases[i].ms != 0);
		if (err == 0)
			assert_int_equal(ms, cases[i].ms);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_where_options_stand),
		cmocka_unit_test(test_others_may_have_options_behind),
		cmocka_unit_test(test_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
