/* SPDX-License-Identifier: ISC */
/*
 * recent_ids: 4096 are remembered, first in first out, and repeating an id
 * does not refresh it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recent_ids.h"

static struct slice
id(char text[32], unsigned n)
{
	int len = snprintf(text, 32, "id-%u", n);

	return (struct slice){ text, (size_t)len };
}

static void
test_fifo(void **state)
{
	struct recent_ids w = { 0 };
	char text[32];

	for (unsigned n = 0; n < RECENT_IDS_MAX; n++) {
		assert_false(recent_ids_has(&w, id(text, n)));
		recent_ids_add(&w, id(text, n));
	}
	assert_true(recent_ids_has(&w, id(text, 0)));
	recent_ids_add(&w, id(text, RECENT_IDS_MAX));
	assert_false(recent_ids_has(&w, id(text, 0)));
	assert_true(recent_ids_has(&w, id(text, 1)));
	for (unsigned n = 1; n < 3 * RECENT_IDS_MAX; n += 97)
		recent_ids_add(&w, id(text, 100000 + n));
	assert_int_equal(w.count, RECENT_IDS_MAX);
	recent_ids_clear(&w);
}

static void
test_bytes_count(void **state)
{
	struct recent_ids w = { 0 };

	recent_ids_add(&w, (struct slice){ "a\0b", 3 });
	assert_true(recent_ids_has(&w, (struct slice){ "a\0b", 3 }));
	assert_false(recent_ids_has(&w, (struct slice){ "a\0c", 3 }));
	assert_false(recent_ids_has(&w, (struct slice){ "a", 1 }));
	recent_ids_clear(&w);
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
