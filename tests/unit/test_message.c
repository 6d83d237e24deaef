/* SPDX-License-Identifier: ISC */
/*
 * message: members wherever they stand, and what is no object refused.
 */
#include "base.h"
#include "message.h"

#include <setjmp.h>

#include <cmocka.h>

static void
scan(struct message *m, const char *text)
{
	assert_int_equal(message_scan(m, text, strlen(text)), 0);
}

static void
assert_slice(struct slice s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.ptr, text, s.len);
}

static void
test_members(void **state)
{
	struct message m;

	scan(&m,
	    " { \"params\" : {\"x\":[1,{\"chunk\":\"no\"},\"]\"],\"chunk\":"
	    "\"QUI=\",\"processId\":\"a\\\"b\\\\\"} , \"method\":\"process/"
	    "output\"}");
	assert_true(message_is(&m, "process/output"));
	assert_slice(m.chunk, "QUI=");
	assert_slice(m.process_id, "a\\\"b\\\\");
	assert_int_equal(m.id, -1);
	assert_false(m.is_error);
	scan(&m, "{\"id\":7,\"result\":{\"status\":\"accepted\"}}");
	assert_int_equal(m.id, 7);
	assert_slice(m.status, "accepted");
	scan(&m, "{\"params\":{\"exitCode\":137,\"seq\":2},\"method\":\"e\"}");
	assert_int_equal(m.exit_code, 137);
	scan(&m, "{\"error\":{\"code\":-1,\"message\":\"no\"},\"id\":-3}");
	assert_true(m.is_error);
	assert_slice(m.error, "no");
	assert_int_equal(m.id, -3);
	scan(&m, "{}");
}

static void
test_no_object(void **state)
{
	static const char *const texts[] = { "", "[]", "{", "{\"a\"",
		"{\"a\":", "{\"a\":\"x", "{\"a\":\"x\\\"}",
		"{\"a\":[1,{\"b\":2}", "{1:2}", "{\"id\":1,}",
		"{\"params\":{\"chunk\":\"" };
	struct message m;

	for (size_t i = 0; i < nitems(texts); i++)
		assert_int_equal(
		    message_scan(&m, texts[i], strlen(texts[i])), -EBADMSG);
}

static void
test_decoded_len(void **state)
{
	assert_int_equal(message_decoded_len(SLICE("")), 0);
	assert_int_equal(message_decoded_len(SLICE("QQ==")), 1);
	assert_int_equal(message_decoded_len(SLICE("QUI=")), 2);
	assert_int_equal(message_decoded_len(SLICE("QUJDQUJD")), 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_no_object),
		cmocka_unit_test(test_decoded_len),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
