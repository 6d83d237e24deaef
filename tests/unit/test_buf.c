/* SPDX-License-Identifier: ISC */
/*
 * buf: the limit holds, reading past the end fails once and for all.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "buf.h"

static void
test_fields_round_trip(void **state)
{
	struct buf b;
	struct buf_reader r;
	char s[8];

	buf_init(&b, 1024);
	buf_put_u8(&b, 7);
	buf_put_u32(&b, 0x01020304);
	buf_put_u64(&b, 0x0102030405060708);
	buf_put_string(&b, "abc", 3);
	assert_false(b.failed);
	buf_reader_init(&r, b.data, b.len);
	assert_int_equal(buf_get_u8(&r), 7);
	assert_int_equal(buf_get_u32(&r), 0x01020304);
	assert_true(buf_get_u64(&r) == 0x0102030405060708);
	assert_int_equal(buf_get_string(&r, s, sizeof(s)), 3);
	assert_string_equal(s, "abc");
	assert_int_equal(buf_end(&r), 0);
	buf_clear(&b);
}

static void
test_limit_is_exact(void **state)
{
	struct buf b;

	buf_init(&b, 10);
	buf_put(&b, "0123456789", 10);
	assert_false(b.failed);
	buf_put_u8(&b, 1);
	assert_true(b.failed);
	assert_int_equal(b.len, 10);
	buf_clear(&b);
}

static void
test_reader_refuses(void **state)
{
	struct {
		const char *bytes;
		size_t n;
	} bad[] = {
		{ "\4\0\0\0abc", 7 },  /* longer than the packet */
		{ "\3\0\0\0a\0c", 7 }, /* inner NUL */
		{ "\4\0\0\0abcd", 8 }, /* no room for the NUL */
		{ "\377\377\377\377", 4 },
		{ "\1\0", 2 },
	};

	for (size_t i = 0; i < nitems(bad); i++) {
		struct buf_reader r;
		char s[4];

		buf_reader_init(&r, bad[i].bytes, bad[i].n);
		assert_int_equal(buf_get_string(&r, s, sizeof(s)), 0);
		assert_int_equal(buf_end(&r), -EBADMSG);
	}
}

static void
test_leftover_is_an_error(void **state)
{
	struct buf_reader r;

	buf_reader_init(&r, "\1\2", 2);
	assert_int_equal(buf_get_u8(&r), 1);
	assert_int_equal(buf_end(&r), -EBADMSG);
}

static void
test_consume(void **state)
{
	struct buf b;

	buf_init(&b, 100);
	buf_puts(&b, "hello world");
	buf_consume(&b, 6);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "world", 5);
	buf_consume(&b, 5);
	assert_int_equal(b.len, 0);
	buf_clear(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_round_trip),
		cmocka_unit_test(test_limit_is_exact),
		cmocka_unit_test(test_reader_refuses),
		cmocka_unit_test(test_leftover_is_an_error),
		cmocka_unit_test(test_consume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
