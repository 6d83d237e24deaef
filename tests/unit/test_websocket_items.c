/* SPDX-License-Identifier: ISC */
/*
 * websocket: what the items promise (flags, lengths, close codes), payloads
 * of every size and alignment, the real limits, and what the server writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../websocket_trace.h"

static const uint8_t mask[4] = { 0x37, 0xfa, 0x21, 0x3d };

/* A client frame whose header says `claimed` and which carries len bytes. */
static void
put_frame(struct buf *b, uint8_t first, uint64_t claimed, const void *payload,
    size_t len)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	size_t n = websocket_put_header(header, WEBSOCKET_TEXT, claimed);

	header[0] = first;
	header[1] |= 0x80;
	buf_put(b, header, n);
	buf_put(b, mask, sizeof(mask));
	for (size_t i = 0; i < len; i++)
		buf_put_u8(
		    b, ((const uint8_t *)payload)[i] ^ mask[i % sizeof(mask)]);
}

static void
fill(uint8_t *p, size_t n)
{
	uint32_t x = (uint32_t)n + 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = (uint8_t)(x >> 24) & 0x7f;
	}
}

static void
check_length(size_t len, size_t step)
{
	_cleanup_free_ uint8_t *payload = xmalloc(len);
	struct trace t;
	struct buf b;

	fill(payload, len);
	buf_init(&b, 1 << 20);
	put_frame(&b, 0x81, len, payload, len);
	trace_init(&t, WEBSOCKET_MESSAGE_MAX);
	for (size_t i = 0; i < b.len; i += step)
		trace_feed(&t, b.data + i, b.len - i < step ? b.len - i : step);
	assert_int_equal(t.message.len, len);
	if (len > 0)
		assert_memory_equal(t.message.data, payload, len);
	assert_int_equal(strncmp(trace_string(&t), "text(", 5), 0);
	trace_clear(&t);
	buf_clear(&b);
}

static void
test_lengths(void **state)
{
	static const size_t lengths[] = { 0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 65,
		124, 125, 126, 127, 128, 255, 256, 65534, 65535, 65536, 65537 };
	static const size_t steps[] = { 1, 2, 3, 5, 7, 8, 15, 31, 32, 33, 37,
		997, 4096, 1 << 20 };

	for (size_t i = 0; i < nitems(lengths); i++)
		for (size_t j = 0; j < nitems(steps); j++)
			check_length(lengths[i], steps[j]);
}

/* Unmasking takes wide steps; no alignment or length may show. */
static void
test_alignments(void **state)
{
	uint8_t payload[110], space[200];

	fill(payload, sizeof(payload));
	for (size_t i = 0; i < 40 * sizeof(payload); i++) {
		size_t offset = i % 40, len = i / 40;
		struct websocket_parser p;
		struct websocket_item item;
		struct buf b;

		buf_init(&b, 1 << 10);
		put_frame(&b, 0x82, len, payload, len);
		memset(space, 0xee, sizeof(space));
		memcpy(space + offset, b.data, b.len);
		websocket_parser_init(&p, 200);
		assert_int_equal(
		    websocket_parse(&p, space + offset, b.len, &item), b.len);
		assert_int_equal(item.len, len);
		assert_memory_equal(item.payload, payload, len);
		assert_int_equal(space[offset + b.len], 0xee);
		buf_clear(&b);
	}
}

static void
next(struct websocket_parser *p, struct buf *b, struct websocket_item *item)
{
	size_t n = websocket_parse(p, b->data, b->len, item);

	buf_consume(b, n);
}

static void
test_flags_of_one_frame(void **state)
{
	struct websocket_parser p;
	struct websocket_item item;
	struct buf b;

	buf_init(&b, 1 << 10);
	websocket_parser_init(&p, 100);
	put_frame(&b, 0x81, 5, "abcde", 5);
	assert_int_equal(websocket_parse(&p, b.data, 8, &item), 8);
	assert_int_equal(item.event, WEBSOCKET_EV_DATA);
	assert_int_equal(item.len, 2);
	assert_memory_equal(item.payload, "ab", 2);
	assert_true(item.first && !item.last && !item.fragmented);
	assert_false(item.binary);
	assert_int_equal(item.message_len, 5);
	buf_consume(&b, 8);
	next(&p, &b, &item);
	assert_memory_equal(item.payload, "cde", 3);
	assert_true(!item.first && item.last && !item.fragmented);
	next(&p, &b, &item);
	assert_int_equal(item.event, WEBSOCKET_EV_NEED_MORE);
	buf_clear(&b);
}

static void
test_flags_of_fragments(void **state)
{
	struct websocket_parser p;
	struct websocket_item item;
	struct buf b;

	buf_init(&b, 1 << 10);
	websocket_parser_init(&p, 100);
	put_frame(&b, 0x02, 1, "a", 1);
	put_frame(&b, 0x00, 0, "", 0);
	put_frame(&b, 0x80, 1, "b", 1);
	next(&p, &b, &item);
	assert_true(item.first && !item.last && item.fragmented && item.binary);
	assert_int_equal(item.message_len, 0);
	next(&p, &b, &item); /* the empty one is passed over */
	assert_true(!item.first && item.last && item.fragmented && item.binary);
	assert_memory_equal(item.payload, "b", 1);
	assert_int_equal(b.len, 0);
	buf_clear(&b);
}

/* Bad text ends the connection before the rest of its frame is there. */
static void
test_text_fails_fast(void **state)
{
	struct websocket_parser p;
	struct websocket_item item;
	struct buf b;

	buf_init(&b, 1 << 10);
	websocket_parser_init(&p, 100);
	put_frame(&b, 0x01, 50, "a\xed\xa0", 3);
	assert_int_equal(
	    websocket_parse(&p, b.data, b.len - 1, &item), b.len - 1);
	assert_int_equal(item.event, WEBSOCKET_EV_DATA);
	websocket_parse(&p, b.data + b.len - 1, 1, &item);
	assert_int_equal(item.event, WEBSOCKET_EV_ERROR);
	assert_int_equal(item.close_code, WEBSOCKET_CLOSE_BAD_DATA);
	buf_clear(&b);
}

static uint16_t
first_frame_error(uint64_t claimed)
{
	struct websocket_parser p;
	struct websocket_item item;
	struct buf b;

	buf_init(&b, 1 << 10);
	websocket_parser_init(&p, WEBSOCKET_MESSAGE_MAX);
	put_frame(&b, 0x82, claimed, "", 0);
	next(&p, &b, &item);
	buf_clear(&b);
	return item.event == WEBSOCKET_EV_ERROR ? item.close_code : 0;
}

/* By its header alone, before anybody sends or stores a byte of it. */
static void
test_frame_limit(void **state)
{
	assert_int_equal(first_frame_error(WEBSOCKET_MESSAGE_MAX), 0);
	assert_int_equal(first_frame_error(WEBSOCKET_MESSAGE_MAX + 1), 1009);
	assert_int_equal(first_frame_error(1ull << 32), 1009);
	assert_int_equal(first_frame_error(INT64_MAX), 1009);
	assert_int_equal(first_frame_error(UINT64_MAX), 1002);
}

#define PART_BYTES (WEBSOCKET_MESSAGE_MAX / 4)

static void
test_message_limit(void **state)
{
	_cleanup_free_ uint8_t *payload = xcalloc(1, PART_BYTES);
	struct websocket_parser p;
	struct websocket_item item;
	struct buf b;

	buf_init(&b, 1 << 10);
	websocket_parser_init(&p, WEBSOCKET_MESSAGE_MAX);
	for (int i = 0; i < 4; i++) {
		put_frame(&b, i ? 0x00 : 0x02, PART_BYTES, "", 0);
		next(&p, &b, &item);
		assert_int_equal(item.event, WEBSOCKET_EV_NEED_MORE);
		assert_int_equal(
		    websocket_parse(&p, payload, PART_BYTES, &item),
		    PART_BYTES);
		assert_int_equal(item.event, WEBSOCKET_EV_DATA);
	}
	put_frame(&b, 0x80, 1, "", 0);
	next(&p, &b, &item);
	assert_int_equal(item.close_code, 1009);
	buf_clear(&b);
}

/* The headers of a message of len bytes, one after the other. */
static void
check_fragments(uint64_t len, uint64_t expected_frames)
{
	uint64_t at = 0, frames = 0, payload;
	uint8_t header[WEBSOCKET_HEADER_MAX];

	do {
		websocket_put_fragment(header, len, at, &payload);
		assert_int_equal(header[0] & 0x0f,
		    at == 0 ? WEBSOCKET_TEXT : WEBSOCKET_CONTINUATION);
		at += payload;
		frames++;
		assert_int_equal(header[0] >> 7, at == len);
		assert_true(payload > 0 || len == 0);
	} while (at < len);
	assert_int_equal(at, len);
	assert_int_equal(frames, expected_frames);
}

static void
test_fragments(void **state)
{
	check_fragments(0, 1);
	check_fragments(1, 1);
	check_fragments(WEBSOCKET_WHOLE_MAX, 1);
	check_fragments(WEBSOCKET_WHOLE_MAX + 1, 4);
	check_fragments(4 * WEBSOCKET_FRAGMENT_MAX, 4);
	check_fragments(4 * WEBSOCKET_FRAGMENT_MAX + 1, 5);
	check_fragments((1ull << 32) - 1, 1024);
}

static void
test_error_is_final(void **state)
{
	struct websocket_parser p;
	struct websocket_item item;
	uint8_t bad[] = { 0xff }, good[] = { 0x89, 0x80, 0, 0, 0, 0 };

	websocket_parser_init(&p, 100);
	websocket_parse(&p, bad, sizeof(bad), &item);
	assert_int_equal(item.event, WEBSOCKET_EV_ERROR);
	assert_int_equal(
	    websocket_parse(&p, good, sizeof(good), &item), sizeof(good));
	assert_int_equal(item.event, WEBSOCKET_EV_ERROR);
	assert_int_equal(item.close_code, WEBSOCKET_CLOSE_PROTOCOL);
	assert_non_null(item.error);
}

static void
test_nothing_after_close(void **state)
{
	struct websocket_parser p;
	struct websocket_item item;
	struct buf b;

	buf_init(&b, 1 << 10);
	websocket_parser_init(&p, 100);
	put_frame(&b, 0x88, 5,
	    "\x03\xe8"
	    "bye",
	    5);
	put_frame(&b, 0x89, 1, "x", 1);
	next(&p, &b, &item);
	assert_int_equal(item.event, WEBSOCKET_EV_CLOSE);
	assert_int_equal(item.close_code, 1000);
	assert_memory_equal(item.payload,
	    "\x03\xe8"
	    "bye",
	    5);
	assert_int_equal(b.len, 7);
	next(&p, &b, &item);
	assert_int_equal(item.event, WEBSOCKET_EV_NEED_MORE);
	assert_int_equal(b.len, 0);
	buf_clear(&b);
}

static void
test_close_codes(void **state)
{
	for (uint32_t code = 0; code <= UINT16_MAX; code++) {
		bool valid = (code >= 1000 && code < 1015 && code != 1004 &&
				 code != 1005 && code != 1006) ||
			     (code >= 3000 && code <= 4999);

		assert_int_equal(
		    websocket_close_code_valid((uint16_t)code), valid);
	}
}

static void
test_put_header(void **state)
{
	static const struct {
		uint64_t len;
		const char *bytes;
		size_t n;
	} headers[] = {
		{ 0, "\x81\0", 2 },
		{ 125, "\x81\x7d", 2 },
		{ 126, "\x81\x7e\0\x7e", 4 },
		{ 65535, "\x81\x7e\xff\xff", 4 },
		{ 65536, "\x81\x7f\0\0\0\0\0\1\0\0", 10 },
		{ 683ull << 20, "\x81\x7f\0\0\0\0\x2a\xb0\0\0", 10 },
		{ 0x0102030405060708, "\x81\x7f\1\2\3\4\5\6\7\x8", 10 },
	};
	uint8_t h[WEBSOCKET_HEADER_MAX];

	for (size_t i = 0; i < nitems(headers); i++) {
		assert_int_equal(
		    websocket_put_header(h, WEBSOCKET_TEXT, headers[i].len),
		    headers[i].n);
		assert_memory_equal(h, headers[i].bytes, headers[i].n);
	}
	websocket_put_header(h, WEBSOCKET_PONG, 0);
	assert_int_equal(h[0], 0x8a);
}

/* RFC 6455 section 1.3, and what the reference server says to odd keys. */
static void
test_accept(void **state)
{
	char accept[WEBSOCKET_ACCEPT_LEN + 1];

	websocket_accept("dGhlIHNhbXBsZSBub25jZQ==", 24, accept);
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	websocket_accept("abc", 3, accept);
	assert_string_equal(accept, "zwKd5BnoWxQ6GxTxxSmBSHGHX9M=");
	websocket_accept("", 0, accept);
	assert_string_equal(accept, "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w=");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_alignments),
		cmocka_unit_test(test_flags_of_one_frame),
		cmocka_unit_test(test_flags_of_fragments),
		cmocka_unit_test(test_text_fails_fast),
		cmocka_unit_test(test_frame_limit),
		cmocka_unit_test(test_message_limit),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_error_is_final),
		cmocka_unit_test(test_nothing_after_close),
		cmocka_unit_test(test_close_codes),
		cmocka_unit_test(test_put_header),
		cmocka_unit_test(test_accept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
