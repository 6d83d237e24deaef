/* SPDX-License-Identifier: ISC */
/*
 * audit_text: texts of clients in records, and ids that must not look alike
 * there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redact.h"
#include "utf8.h"

#define MOST (CONTROL_PROCESS_MAX - 1)

static void
test_copy(void **state)
{
	char to[5];

	assert_false(audit_copy(to, sizeof(to), SLICE("")));
	assert_string_equal(to, "");
	assert_false(audit_copy(to, sizeof(to), SLICE("1234")));
	assert_string_equal(to, "1234");
	assert_true(audit_copy(to, sizeof(to), SLICE("12345")));
	assert_string_equal(to, "1234");
	assert_true(audit_copy(to, sizeof(to), SLICE("12\0")));
	assert_string_equal(to, "12");
	assert_true(audit_copy(to, sizeof(to), SLICE("\0")));
	assert_string_equal(to, "");
}

static const char *
shown(struct slice id)
{
	static char texts[4][CONTROL_PROCESS_MAX];
	static size_t next;
	char *text = texts[next++ % nitems(texts)];

	audit_copy_id(text, id);
	assert_int_equal(utf8_find_invalid(text, strlen(text)), strlen(text));
	return text;
}

static void
test_as_it_is(void **state)
{
	const struct slice ids[] = { SLICE(""), SLICE("p1"),
		SLICE("\xc3\xbc\x1b\n"), SLICE("[cut 0123456789abcdef]"),
		SLICE("x [cut") };
	char longest[MOST + 1];

	for (size_t i = 0; i < nitems(ids); i++)
		assert_string_equal(shown(ids[i]), ids[i].ptr);
	memset(longest, 'x', MOST);
	longest[MOST] = '\0';
	assert_string_equal(shown((struct slice){ longest, MOST }), longest);
}

/* What begins alike is told apart, and the same id is the same text. */
static void
test_cut(void **state)
{
	char a[1000], b[1000], plain[CONTROL_PROCESS_MAX];
	const char *text;
	size_t n;

	assert_string_not_equal(shown(SLICE("p\0a")), shown(SLICE("p\0b")));
	assert_string_not_equal(shown(SLICE("p\0")), shown(SLICE("p")));
	assert_string_not_equal(shown(SLICE("\0")), shown(SLICE("\0\0")));
	assert_string_equal(shown(SLICE("p\0a")), shown(SLICE("p\0a")));
	assert_memory_equal(shown(SLICE("p\0a")), "p [cut ", 7);
	memset(a, 'x', sizeof(a));
	memset(b, 'x', sizeof(b));
	b[sizeof(b) - 1] = 'y';
	assert_string_not_equal(shown((struct slice){ a, sizeof(a) }),
	    shown((struct slice){ b, sizeof(b) }));
	assert_string_not_equal(shown((struct slice){ a, MOST + 1 }),
	    shown((struct slice){ a, MOST + 2 }));
	assert_int_equal(strlen(shown((struct slice){ a, MOST + 1 })), MOST);
	/* One that is called what another one is shown as. */
	strcpy(plain, shown(SLICE("p\0a")));
	text = shown((struct slice){ plain, strlen(plain) });
	assert_string_not_equal(text, plain);
	strcpy(plain, shown((struct slice){ a, sizeof(a) }));
	n = strlen(plain);
	text = shown((struct slice){ plain, n });
	assert_string_not_equal(text, plain);
}

/* shown() sees to it that no character is cut in two. */
static void
test_characters(void **state)
{
	char text[400];

	for (size_t before = 0; before < 4; before++) {
		memset(text, 'x', before);
		for (size_t i = before; i + 4 <= sizeof(text); i += 4)
			memcpy(text + i, "\xf0\x9f\x98\x80", 4);
		shown((struct slice){ text, before + 380 });
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_as_it_is),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
