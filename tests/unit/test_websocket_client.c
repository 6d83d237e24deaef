/* SPDX-License-Identifier: ISC */
/*
 * websocket, the client's side: a server's frames are unmasked, and what a
 * client masks a server's parser reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../websocket_trace.h"

#define FRAME_MAX   70000
#define MESSAGE_MAX 140000

#define B(literal) (const uint8_t *)(literal), sizeof(literal) - 1

static const struct test_case {
	const char *name;
	const uint8_t *bytes;
	size_t len;
	const char *expect;
} cases[] = {
	{ "text", B("\x81\x05Hello"), "text(Hello)" },
	{ "empty", B("\x81\x00"), "text()" },
	{ "two",
	    B("\x81\x01"
	      "a"
	      "\x82\x01\xff"),
	    "text(a) binary(\\xff)" },
	{ "fragments around a ping",
	    B("\x01\x02he"
	      "\x89\x01p"
	      "\x80\x01y"),
	    "ping(p) text(hey)" },
	{ "pong", B("\x8a\x00"), "pong()" },
	{ "close", B("\x88\x02\x03\xe8"), "close:1000()" },
	{ "close with a reason", B("\x88\x06\x03\xf3 bye"),
	    "close:1011( bye)" },
	{ "close of nothing", B("\x88\x00"), "close:1005()" },
	{ "masked", B("\x81\x81\x01\x02\x03\x04\x60"), "error:1002" },
	{ "masked ping", B("\x89\x80"), "error:1002" },
	{ "not UTF-8", B("\x81\x01\xff"), "error:1007" },
	{ "reserved bit", B("\xc1\x00"), "error:1002" },
	{ "bad length", B("\x81\x7e\x00\x05"), "error:1002" },
	{ "too long", B("\x81\x7f\x00\x00\x00\x00\x00\x03\x00\x00"),
	    "error:1009" },
	{ "long control", B("\x89\x7e"), "error:1002" },
};

static void
client_trace_init(struct trace *t)
{
	trace_init(t, MESSAGE_MAX);
	websocket_parser_init_client(&t->parser, MESSAGE_MAX);
}

static void
check(const struct test_case *c, const char *expect, const uint8_t *bytes,
    size_t len, size_t cut)
{
	struct trace t;

	client_trace_init(&t);
	trace_feed(&t, bytes, cut);
	trace_feed(&t, bytes + cut, len - cut);
	if (strcmp(trace_string(&t), expect) != 0)
		fail_msg("%s, cut at %zu: got %s, not %s", c->name, cut,
		    trace_string(&t), expect);
	trace_clear(&t);
}

static void
test_server_frames(void **state)
{
	for (size_t i = 0; i < nitems(cases); i++)
		for (size_t cut = 0; cut <= cases[i].len; cut++)
			check(&cases[i], cases[i].expect, cases[i].bytes,
			    cases[i].len, cut);
}

static void
test_long_server_frames(void **state)
{
	static const size_t sizes[] = { 125, 126, 65535, 65536, FRAME_MAX };
	static uint8_t bytes[WEBSOCKET_HEADER_MAX + FRAME_MAX];

	for (size_t i = 0; i < nitems(sizes); i++) {
		size_t n =
		    websocket_put_header(bytes, WEBSOCKET_TEXT, sizes[i]);
		struct trace t;

		memset(bytes + n, 'x', sizes[i]);
		client_trace_init(&t);
		trace_feed(&t, bytes, n + sizes[i]);
		assert_int_equal(t.message.len, sizes[i]);
		assert_memory_equal(t.message.data, bytes + n, sizes[i]);
		assert_false(t.over);
		trace_clear(&t);
	}
}

/* What a client sends, a server reads, whatever the length and the mask. */
static void
test_masked_frames(void **state)
{
	static const size_t sizes[] = { 0, 1, 31, 32, 33, 125, 126, 65535,
		65536 };
	static const uint8_t mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
	static uint8_t frame[WEBSOCKET_MASKED_MAX + 65536];
	static uint8_t plain[65536];

	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)('a' + i % 26);
	for (size_t i = 0; i < nitems(sizes); i++) {
		size_t n = websocket_put_masked_header(
		    frame, WEBSOCKET_TEXT, sizes[i], mask);
		struct trace t;

		memcpy(frame + n, plain, sizes[i]);
		websocket_mask(frame + n, sizes[i], mask, 0);
		if (sizes[i] > 0)
			assert_memory_not_equal(frame + n, plain, sizes[i]);
		trace_init(&t, MESSAGE_MAX);
		trace_feed(&t, frame, n + sizes[i]);
		assert_false(t.over || t.open);
		assert_int_equal(t.message.len, sizes[i]);
		if (sizes[i] > 0)
			assert_memory_equal(t.message.data, plain, sizes[i]);
		trace_clear(&t);
	}
}

/* Masking in pieces is masking at once. */
static void
test_mask_in_pieces(void **state)
{
	static const uint8_t mask[4] = { 1, 2, 3, 4 };
	uint8_t whole[100] = { 0 }, pieces[100] = { 0 };

	websocket_mask(whole, sizeof(whole), mask, 0);
	for (size_t at = 0, n; at < sizeof(pieces); at += n) {
		n = at % 7 + 1;
		if (n > sizeof(pieces) - at)
			n = sizeof(pieces) - at;
		websocket_mask(pieces + at, n, mask, at);
	}
	assert_memory_equal(whole, pieces, sizeof(whole));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server_frames),
		cmocka_unit_test(test_long_server_frames),
		cmocka_unit_test(test_masked_frames),
		cmocka_unit_test(test_mask_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
