/* SPDX-License-Identifier: ISC */
/*
 * redact: what is a secret in a command, and what is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redact.h"
#include "util.h"

#define R REDACTED_MARK

/* Words, each behind the other with a line between; NULL ends. */
static char *
redact(const char *names, const char *values, const char *const *words,
    unsigned *count)
{
	struct redact_state state = { 0 };
	struct redact_rules rules;
	struct buf out;

	redact_rules_init(&rules, names, values);
	buf_init(&out, 1 << 16);
	for (; *words != NULL; words++) {
		redact_word(&state, &rules,
		    (struct slice){ *words, strlen(*words) }, &out);
		if (words[1] != NULL)
			buf_puts(&out, "\n");
	}
	buf_put_u8(&out, '\0');
	assert_false(out.failed);
	*count = state.count;
	return (char *)out.data;
}

static unsigned
marks_in(const char *text)
{
	unsigned n = 0;

	while ((text = strstr(text, R)) != NULL) {
		n++;
		text++;
	}
	return n;
}

static void
expect(const char *const *words, const char *expected)
{
	unsigned count;
	_cleanup_free_ char *text = redact("", "", words, &count);

	assert_string_equal(text, expected);
	assert_int_equal(count, marks_in(expected));
}

/* One word, which may be a script. */
static void
test_texts(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "ls -l /tmp", "ls -l /tmp" },
		{ "", "" },
		/* options */
		{ "x --password hunter2 y", "x --password " R " y" },
		{ "x --password=hunter2 y", "x --password=" R " y" },
		{ "x --api-key 'a b' y", "x --api-key '" R "' y" },
		{ "x --TOKEN=\"a b\" y", "x --TOKEN=\"" R "\" y" },
		{ "x --token --password p", "x --token --password " R },
		{ "x --max-tokens 100", "x --max-tokens 100" },
		{ "x --password-file /p", "x --password-file /p" },
		{ "curl -u me:secret h", "curl -u me:" R " h" },
		{ "curl --user 'me:secret x' h", "curl --user 'me:" R " x' h" },
		{ "docker run -u 1000:1000 i", "docker run -u 1000:1000 i" },
		/* variables */
		{ "DB_PASS=x make", "DB_PASS=" R " make" },
		{ "PWD=/x make", "PWD=/x make" },
		{ "COMPASS=x make", "COMPASS=x make" },
		{ "GITHUB_TOKEN='x y' a", "GITHUB_TOKEN='" R "' a" },
		{ "a&&AWS_SECRET_ACCESS_KEY=x;b",
		    "a&&AWS_SECRET_ACCESS_KEY=" R ";b" },
		{ "[ $TOKEN == x ]", "[ $TOKEN == x ]" },
		/* headers */
		{ "-H 'Authorization: Basic eDp5' u",
		    "-H 'Authorization: " R "' u" },
		{ "-H \"X-Api-Key: a\" u", "-H \"X-Api-Key: " R "\" u" },
		{ "Cookie: a=b; c=d\nx: y", "Cookie: " R "\nx: y" },
		{ "use bearer abc.def now", "use bearer " R " now" },
		/* JSON */
		{ "{\"password\": \"x\\\"y\", \"a\": 1}",
		    "{\"password\": \"" R "\", \"a\": 1}" },
		{ "\"{\\\"token\\\": \\\"x\\\", \\\"a\\\": 1}\"",
		    "\"{\\\"token\\\": \\\"" R "\\\", \\\"a\\\": 1}\"" },
		{ "{'secret':'a\\b'}", "{'secret':'" R "'}" },
		/* URLs */
		{ "git clone https://me:x@h/r",
		    "git clone https://me:" R "@h/r" },
		{ "https://abc@h/", "https://" R "@h/" },
		{ "ssh://git@h/r", "ssh://git@h/r" },
		{ "http://h:80/a@b", "http://h:80/a@b" },
		{ "http://h/?a=1&access_token=x&b=2",
		    "http://h/?a=1&access_token=" R "&b=2" },
		{ "std::token::x", "std::token::x" },
		/* by their look */
		{ "x ghp_abcdef y", "x " R " y" },
		{ "AKIAABCDEFGHIJKLMNOP", R },
		{ "k:eyJhbGciOi.eyJzdWIi.c2ln", "k:" R },
		/* cut anywhere */
		{ "--password", "--password" },
		{ "--password=", "--password=" },
		{ "password: \"", "password: \"" },
		{ "password=\"abc", "password=\"" R },
		{ "password=\"abc\\", "password=\"" R },
		{ "https://a:b@", "https://a:" R "@" },
	};

	for (size_t i = 0; i < nitems(cases); i++)
		expect((const char *const[]){ cases[i].text, NULL },
		    cases[i].expected);
}

static void
test_words(void **state)
{
	expect((const char *const[]){ "mysql", "--password", "two words", "db",
		   NULL },
	    "mysql\n--password\n" R "\ndb");
	expect((const char *const[]){ "curl", "-u", "me:a b", "u", NULL },
	    "curl\n-u\nme:" R " b\nu");
	expect((const char *const[]){ "x", "--token", NULL }, "x\n--token");
	expect((const char *const[]){ "x", "--token", "", "y", NULL },
	    "x\n--token\n\ny");
	expect((const char *const[]){ "sh", "-lc", "A_KEY=1 TOKEN=x y", NULL },
	    "sh\n-lc\nA_KEY=1 TOKEN=" R " y");
}

static void
test_configured(void **state)
{
	static const char *const words[] = { "x", "--PIN", "1234", "pin=5",
		"p=6", "s3cr3t-9", "s3cr3t", NULL };
	unsigned count;
	_cleanup_free_ char *text =
	    redact("p\n\npin", "s3cr3t-?\n", words, &count);

	assert_string_equal(
	    text, "x\n--PIN\n" R "\npin=" R "\np=" R "\n" R "\ns3cr3t");
	assert_int_equal(count, 4);
}

static void
test_too_many_patterns(void **state)
{
	char names[4 * REDACT_PATTERNS_MAX + 8] = "";
	struct redact_rules rules;

	for (size_t i = 0; i < REDACT_PATTERNS_MAX + 2; i++)
		memcpy(names + 2 * i, "a\n", 3);
	redact_rules_init(&rules, names, "");
	assert_int_equal(rules.nnames, REDACT_PATTERNS_MAX);
	assert_int_equal(rules.nvalues, 0);
}

/* The secret that would be cut is not there in part, and nothing behind a
 * full buffer is looked at. */
static void
test_full(void **state)
{
	struct redact_rules rules;

	redact_rules_init(&rules, "", "");
	for (size_t limit = 0; limit < 40; limit++) {
		struct redact_state st = { 0 };
		struct buf out;

		buf_init(&out, limit);
		redact_word(&st, &rules,
		    SLICE("aaaa --password=hunter2 bbbbbbbbbbbbbbbb"), &out);
		buf_put_u8(&out, '\0');
		assert_true(out.failed || limit > 33);
		if (out.len > 0)
			assert_null(memmem(out.data, out.len, "hun", 3));
		buf_clear(&out);
	}
}

/* Patterns full of stars against a megabyte without an end. */
static void
test_work_is_bounded(void **state)
{
	size_t len = 1 << 20;
	_cleanup_free_ char *word = xmalloc(len);
	char values[REDACT_PATTERNS_MAX * 40 + 1] = "";
	struct redact_state st = { 0 };
	struct redact_rules rules;
	struct buf out;

	memset(word, 'a', len);
	for (size_t i = 0; i < REDACT_PATTERNS_MAX; i++)
		strcat(values, "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n");
	redact_rules_init(&rules, "", values);
	buf_init(&out, 2 * len);
	/* A token each, twice over: minutes if it were more than linear. */
	for (size_t i = 0; i < len; i += 300)
		word[i] = ' ';
	redact_word(&st, &rules, (struct slice){ word, len }, &out);
	assert_int_equal(out.len, len);
	assert_int_equal(st.count, 0);
	buf_clear(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_configured),
		cmocka_unit_test(test_too_many_patterns),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_work_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
