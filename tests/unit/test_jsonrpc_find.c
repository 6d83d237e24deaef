/* SPDX-License-Identifier: ISC */
/*
 * jsonrpc_find: where the long string of a request begins, or nothing when
 * there is any doubt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jsonrpc.h"
#include "util.h"

/* The string begins at the ^, which is not part of the text. */
static const char *const found[] = {
	"{\"method\":\"m\",\"params\":{\"k\":\"^",
	"{\"id\":1,\"method\":\"m\",\"params\":{\"k\":\"^AAAA\"}}",
	" {\t\"method\" :\r\n\"m\" , \"params\" : { \"k\" : \"^",
	"{\"method\":\"m\",\"x\":[{\"params\":\"]}\\\"\"},[1,2e3]],"
	"\"params\":{\"p\":\"\\\\\",\"q\":{\"k\":\"no\"},\"k\":\"^",
	"{\"id\":\"\\u0061\",\"a\":null,\"b\":-1.5,\"c\":[],\"method\":\"m\","
	"\"params\":{\"k\":\"^\"",
};

static const char *const not_found[] = {
	"",
	"{",
	"[]",
	"{\"method\":\"m\",\"params\":{\"k\":",
	"{\"method\":\"m\",\"params\":{\"k\":1",
	"{\"method\":\"m\",\"params\":{}",
	"{\"method\":\"m\",\"params\":[\"k\",\"",
	"{\"method\":\"m\",\"params\":{\"q\":{\"k\":\"",
	"{\"method\":\"m\",\"params\":{\"p\":\"\\\"k\\\":\\\"",
	"{\"method\":\"n\",\"params\":{\"k\":\"",
	"{\"method\":1,\"params\":{\"k\":\"",
	"{\"meth\\u006fd\":\"m\",\"params\":{\"k\":\"",
	"{\"method\":\"\\u006d\",\"params\":{\"k\":\"",
	"{\"params\":{\"k\":\"AA\"},\"method\":\"m\"}",
	"{\"x\":{\"method\":\"m\"},\"params\":{\"k\":\"",
	"{\"method\":\"m\",,\"params\":{\"k\":\"",
	"{\"method\":\"m\"}{\"params\":{\"k\":\"",
	"{\"method\":\"m\",\"x\":\"\\",
	"{\"method\":\"m\",\"x\":\"\\\\",
};

/* In a block of its own size, so that a sanitizer sees a step too far. */
static size_t
find(const char *text, size_t len)
{
	char *copy = xmalloc(len + 1);
	size_t at;

	copy = realloc(copy, len > 0 ? len : 1);
	memcpy(copy, text, len);
	at = rpc_find_string(copy, len, "m", "k");
	free(copy);
	return at;
}

static void
test_found(void **state)
{
	for (size_t i = 0; i < nitems(found); i++) {
		char text[256];
		size_t at = strcspn(found[i], "^");

		memcpy(text, found[i], at);
		strcpy(text + at, found[i] + at + 1);
		assert_int_equal(find(text, strlen(text)), at);
		/* Nothing of it may be missing. */
		for (size_t n = 0; n < at; n++)
			assert_int_equal(find(text, n), 0);
	}
}

static void
test_not_found(void **state)
{
	for (size_t i = 0; i < nitems(not_found); i++)
		for (size_t n = 0; n <= strlen(not_found[i]); n++)
			assert_int_equal(find(not_found[i], n), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
