/* SPDX-License-Identifier: ISC */
/*
 * denial: the rules of doc/sandbox.md part D, words across chunks and streams
 * included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "process_state.h"
#include "util.h"

struct chunk {
	enum stream stream;
	const char *text;
};

static bool
judge(const struct chunk *chunks, size_t n, int exit_code)
{
	struct retention r;
	bool denied;

	retention_init(&r, 1 << 20);
	for (size_t i = 0; i < n; i++)
		retention_append(&r, i + 1, chunks[i].stream, chunks[i].text,
		    strlen(chunks[i].text));
	denied = denial_is_likely(&r, exit_code);
	retention_clear(&r);
	return denied;
}

static bool
judge_text(const char *text, int exit_code)
{
	const struct chunk c = { STREAM_STDERR, text };

	return judge(&c, 1, exit_code);
}

static void
test_words(void **state)
{
	static const char *const words[] = { "operation not permitted",
		"permission denied", "read-only file system", "seccomp",
		"sandbox", "landlock", "failed to write file",
		"touch: cannot touch 'x': Read-only file system\n",
		"PERMISSION DENIED", "xSeccompx", "bash: LandLock!" };
	static const char *const others[] = { "", "permission", "denied",
		"permission  denied", "permission\ndenied", "read-only",
		"no such file or directory", "sand box", "failed to write" };

	for (size_t i = 0; i < nitems(words); i++) {
		assert_true(judge_text(words[i], 1));
		assert_false(judge_text(words[i], 0));
	}
	for (size_t i = 0; i < nitems(others); i++)
		assert_false(judge_text(others[i], 1));
}

/* A word comes before the code; without one, only SIGSYS tells. */
static void
test_codes(void **state)
{
	static const int codes[] = { 1, 2, 126, 127, 128, 137, 143, 159, 255 };

	for (size_t i = 0; i < nitems(codes); i++) {
		assert_true(judge_text("permission denied", codes[i]));
		assert_int_equal(judge_text("x", codes[i]), codes[i] == 159);
		assert_int_equal(judge(NULL, 0, codes[i]), codes[i] == 159);
	}
	assert_false(judge(NULL, 0, 0));
}

static void
test_chunks(void **state)
{
	static const struct {
		struct chunk chunks[4];
		bool denied;
	} rows[] = {
		{ { { STREAM_STDERR, "permission " },
		      { STREAM_STDERR, "denied" } },
		    true },
		{ { { STREAM_STDERR, "per" }, { STREAM_STDERR, "mission" },
		      { STREAM_STDERR, " de" }, { STREAM_STDERR, "nied" } },
		    true },
		/* Cut by the other stream, on either. */
		{ { { STREAM_STDERR, "land" }, { STREAM_STDOUT, "x" },
		      { STREAM_STDERR, "lock" } },
		    true },
		{ { { STREAM_STDOUT, "land" }, { STREAM_STDERR, "x" },
		      { STREAM_STDOUT, "lock" } },
		    true },
		/* Put together by both. */
		{ { { STREAM_STDOUT, "sec" }, { STREAM_STDERR, "comp" } },
		    true },
		{ { { STREAM_STDERR, "comp" }, { STREAM_STDOUT, "sec" } },
		    false },
		{ { { STREAM_PTY, "sand" }, { STREAM_PTY, "box" } }, true },
		{ { { STREAM_STDOUT, "sand" }, { STREAM_STDOUT, "-" },
		      { STREAM_STDOUT, "box" } },
		    false },
	};

	for (size_t i = 0; i < nitems(rows); i++) {
		size_t n = 0;

		while (n < 4 && rows[i].chunks[n].text != NULL)
			n++;
		assert_int_equal(judge(rows[i].chunks, n, 1), rows[i].denied);
	}
}

/* What fell out of the retained output does not count any more. */
static void
test_dropped_output(void **state)
{
	static char other[600];
	struct retention r;

	memset(other, 'x', sizeof(other));
	retention_init(&r, 1000);
	retention_append(&r, 1, STREAM_STDERR, "permission denied", 17);
	assert_true(denial_is_likely(&r, 1));
	retention_append(&r, 2, STREAM_STDOUT, other, sizeof(other));
	assert_true(denial_is_likely(&r, 1));
	retention_append(&r, 3, STREAM_STDOUT, other, sizeof(other));
	assert_false(denial_is_likely(&r, 1));
	retention_clear(&r);
}

/* Output is bytes: a NUL, or what is no character, ends nothing. */
static void
test_bytes(void **state)
{
	static const char text[] = "a\0\xff\xfe permission denied";
	struct retention r;

	retention_init(&r, 1000);
	retention_append(&r, 1, STREAM_STDOUT, text, sizeof(text) - 1);
	assert_true(denial_is_likely(&r, 1));
	retention_clear(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_dropped_output),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
