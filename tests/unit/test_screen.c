/* SPDX-License-Identifier: ISC */
/*
 * screen: what a program left on the user's terminal is taken back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "screen.h"

static const struct {
	const char *output, *restored;
} rows[] = {
	{ "plain", "" },
	{ "\033[?1049h\033[?25l", "\033[?1049l\033[?25h" }, /* vim, less */
	{ "\033[?1049h text \033[?1049l", "" },
	{ "\033[?1000;1006;2004hx", "\033[?1000l\033[?1006l\033[?2004l" },
	{ "\033[?1h\033[?47h\033[?1047h", "\033[?1l\033[?47l\033[?1047l" },
	{ "\033[?12;7h\033[1049h\033]?1049h", "" }, /* others' sequences */
	{ "\033[?99999999999999999999h", "" },
	{ "\033[?1;2;3;4;5;6;7;8;9;10;1049h", "" }, /* more than one has */
	{ "\033[?\033[?25l", "\033[?25h" },
	{ "\033[?1h\033[?1000h\033[?1002h\033[?1003h\033[?1006h\033[?1004h"
	  "\033[?2004h\033[?47h\033[?1047h\033[?1049h\033[?25l",
	    "\033[?1l\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1004l"
	    "\033[?2004l\033[?47l\033[?1047l\033[?1049l\033[?25h" },
};

static void
test_restored(void **state)
{
	char text[SCREEN_RESTORE_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t cut = 0; cut <= strlen(rows[i].output); cut++) {
			struct screen s = { 0 };

			screen_watch(&s, rows[i].output, cut);
			screen_watch(&s, rows[i].output + cut,
			    strlen(rows[i].output) - cut);
			screen_restore(&s, text);
			assert_string_equal(text, rows[i].restored);
			screen_restore(&s, text);
			assert_string_equal(text, "");
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
