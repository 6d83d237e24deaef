/*
 * write_ids: 4096 are remembered, first in first out, and repeating an id
 * does not refresh it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "write_ids.h"

static struct slice
id(char text[32], unsigned n)
{
	int len = snprintf(text, 32, "id-%u", n);

	return (struct slice){ text, (size_t)len };
}

static void
test_fifo(void **state)
{
	struct write_ids w = { 0 };
	char text[32];

	for (unsigned n = 0; n < WRITE_IDS_MAX; n++) {
		assert_false(write_ids_has(&w, id(text, n)));
		write_ids_add(&w, id(text, n));
	}
	assert_true(write_ids_has(&w, id(text, 0)));
	write_ids_add(&w, id(text, WRITE_IDS_MAX));
	assert_false(write_ids_has(&w, id(text, 0)));
	assert_true(write_ids_has(&w, id(text, 1)));
	for (unsigned n = 1; n < 3 * WRITE_IDS_MAX; n += 97)
		write_ids_add(&w, id(text, 100000 + n));
	assert_int_equal(w.count, WRITE_IDS_MAX);
	write_ids_clear(&w);
}

static void
test_bytes_count(void **state)
{
	struct write_ids w = { 0 };

	write_ids_add(&w, (struct slice){ "a\0b", 3 });
	assert_true(write_ids_has(&w, (struct slice){ "a\0b", 3 }));
	assert_false(write_ids_has(&w, (struct slice){ "a\0c", 3 }));
	assert_false(write_ids_has(&w, (struct slice){ "a", 1 }));
	write_ids_clear(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_bytes_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
