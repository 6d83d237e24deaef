/* SPDX-License-Identifier: ISC */
/* terminal_modes: what SSH says of a terminal, there and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "terminal_modes.h"

static void
take(struct termios *t, const char *text, size_t len)
{
	terminal_modes_take(t, text, len);
}

#define TAKE(t, text) take(t, text, sizeof(text) - 1)

/* One terminal has all bits and the other has none. Each mode that is carried
 * must arrive. */
static void
test_there_and_back(void **state)
{
	struct termios all, none = { 0 }, got;
	uint8_t text[TERMINAL_MODES_MAX];
	size_t n;

	memset(&all, 0xff, sizeof(all));
	for (size_t i = 0; i < sizeof(all.c_cc); i++)
		all.c_cc[i] = (cc_t)(i + 1);
	n = terminal_modes_put(&all, text);
	assert_true(n <= sizeof(text) && n % 5 == 1 && text[n - 1] == 0);
	got = none;
	terminal_modes_take(&got, text, n);
	assert_true(
	    (got.c_iflag & (IUTF8 | ICRNL | IXON)) == (IUTF8 | ICRNL | IXON));
	assert_true(
	    (got.c_lflag & (ECHO | ICANON | ISIG)) == (ECHO | ICANON | ISIG));
	assert_true((got.c_oflag & (OPOST | ONLCR)) == (OPOST | ONLCR));
	assert_int_equal(got.c_cc[VERASE], VERASE + 1);
	assert_int_equal(got.c_cc[VMIN], 0);
	assert_int_equal(got.c_cflag, 0);
	n = terminal_modes_put(&none, text);
	got = all;
	terminal_modes_take(&got, text, n);
	assert_int_equal(
	    got.c_lflag & (ECHO | ICANON | ISIG | IEXTEN | TOSTOP), 0);
	assert_int_equal(got.c_cc[VINTR], _POSIX_VDISABLE);
	assert_int_equal(got.c_cc[VMIN], VMIN + 1);
}

/* Numbers as RFC 4254 and RFC 8160 write them. */
static void
test_numbers(void **state)
{
	struct termios t = { 0 };

	TAKE(&t, "\3\0\0\0\10\52\0\0\0\1\65\0\0\0\1\110\0\0\0\1\1\0\0\0\377");
	assert_int_equal(t.c_cc[VERASE], 8);
	assert_int_equal(t.c_iflag, IUTF8);
	assert_int_equal(t.c_lflag, ECHO);
	assert_int_equal(t.c_oflag, ONLCR);
	assert_int_equal(t.c_cc[VINTR], _POSIX_VDISABLE);
	TAKE(&t, "\52\0\0\0\0\1\0\0\1\3");
	assert_int_equal(t.c_iflag, 0);
	assert_int_equal(t.c_cc[VINTR], _POSIX_VDISABLE);
}

/* What is unknown is skipped while its length is known; then all is over. */
static void
test_unknown_and_cut_off(void **state)
{
	struct termios t = { 0 };

	TAKE(&t, "\177\1\2\3\4\3\0\0\0\10\200\0\0\226\0\52\0\0\0\1");
	assert_int_equal(t.c_cc[VERASE], 8);
	assert_int_equal(t.c_iflag, IUTF8);
	t = (struct termios){ 0 };
	TAKE(&t, "\0\3\0\0\0\10");
	TAKE(&t, "\240\0\0\0\1\3\0\0\0\10");
	TAKE(&t, "\3\0\0\0");
	TAKE(&t, "");
	assert_int_equal(t.c_cc[VERASE], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_unknown_and_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
