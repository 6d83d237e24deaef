/* SPDX-License-Identifier: ISC */
/*
 * websocket: every rule of RFC 6455 that a server's parser owes its peer. The
 * cases follow the families of the Autobahn test suite; each runs whole, cut
 * in two at every byte, and byte by byte, under several masks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../websocket_trace.h"

#define MESSAGE_MAX 1000

#define FIN	   0x80
#define TEXT	   (FIN | WEBSOCKET_TEXT)
#define BINARY	   (FIN | WEBSOCKET_BINARY)
#define END	   (FIN | WEBSOCKET_CONTINUATION)
#define CLOSE	   (FIN | WEBSOCKET_CLOSE)
#define PING	   (FIN | WEBSOCKET_PING)
#define PONG	   (FIN | WEBSOCKET_PONG)
#define BEGIN_TEXT WEBSOCKET_TEXT
#define BEGIN_BIN  WEBSOCKET_BINARY
#define MIDDLE	   WEBSOCKET_CONTINUATION

static const uint8_t masks[][4] = {
	{ 0, 0, 0, 0 },
	{ 0x37, 0xfa, 0x21, 0x3d },
	{ 0xff, 0xff, 0xff, 0xff },
	{ 0x80, 0x00, 0x01, 0x7f },
};

struct frame {
	uint8_t first;	     /* FIN, RSV, opcode */
	const char *payload; /* NULL: no further frame */
	size_t len;
};

#define F(first, payload)                                                      \
	{                                                                      \
		(first), (payload), sizeof(payload) - 1                        \
	}
#define TIMES_25(s)  s s s s s s s s s s s s s s s s s s s s s s s s s
#define TIMES_100(s) TIMES_25(s) TIMES_25(s) TIMES_25(s) TIMES_25(s)
#define TIMES_125(s) TIMES_100(s) TIMES_25(s)
#define TIMES_400(s) TIMES_100(s) TIMES_100(s) TIMES_100(s) TIMES_100(s)

/* Autobahn's standard example and two ways to spoil it. */
#define KOSME	   "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"
#define SURROGATE  "\xed\xa0\x80"
#define SHOW_KOSME "\\xce\\xba\\xe1\\xbd\\xb9\\xcf\\x83\\xce\\xbc\\xce\\xb5"

static const struct test_case {
	const char *name;
	struct frame frames[6];
	const char *expect;
} cases[] = {
	/* 1: framing */
	{ "1.1.1", { F(TEXT, "") }, "text()" },
	{ "1.1.2", { F(TEXT, "Hello") }, "text(Hello)" },
	{ "1.1.3", { F(TEXT, TIMES_125("*")) }, "text(#125:3acf29dd)" },
	{ "1.1.4", { F(TEXT, TIMES_125("*") "*") }, "text(#126:8b1f0fd5)" },
	{ "1.1.5", { F(TEXT, TIMES_125("*") "**") }, "text(#127:00e62e6d)" },
	{ "1.1.6", { F(TEXT, TIMES_125("*") "***") }, "text(#128:b15ad9c5)" },
	{ "1.2.1", { F(BINARY, "") }, "binary()" },
	{ "1.2.2", { F(BINARY, "\xfe\0\xff") }, "binary(\\xfe\\x00\\xff)" },
	{ "1.2.3", { F(BINARY, TIMES_125("\xfe")) }, "binary(#125:f046f9d1)" },
	{ "1 two", { F(TEXT, "a"), F(BINARY, "b"), F(TEXT, "") },
	    "text(a) binary(b) text()" },
	/* 2: pings and pongs */
	{ "2.1", { F(PING, "") }, "ping()" },
	{ "2.2", { F(PING, "Hello") }, "ping(Hello)" },
	{ "2.3", { F(PING, "\0\xff\xfe\xfd") }, "ping(\\x00\\xff\\xfe\\xfd)" },
	{ "2.4", { F(PING, TIMES_125("\xfe")) }, "ping(#125:f046f9d1)" },
	{ "2.5", { F(PING, TIMES_125("\xfe") "\xfe") }, "error:1002" },
	{ "2.5 pong", { F(PONG, TIMES_125("a") "a") }, "error:1002" },
	{ "2.7", { F(PONG, "") }, "pong()" },
	{ "2.8", { F(PONG, "unsolicited") }, "pong(unsolicited)" },
	{ "2.9", { F(PONG, "a"), F(PING, "b") }, "pong(a) ping(b)" },
	{ "2.10", { F(PING, "1"), F(PING, "2"), F(PING, "3"), F(PING, "4") },
	    "ping(1) ping(2) ping(3) ping(4)" },
	/* 3: reserved bits */
	{ "3.1", { F(TEXT | 0x10, "a") }, "error:1002" },
	{ "3.2", { F(TEXT, "a"), F(TEXT | 0x20, "b") }, "text(a) error:1002" },
	{ "3.3", { F(TEXT, "a"), F(TEXT | 0x30, "b"), F(PING, "") },
	    "text(a) error:1002" },
	{ "3.4", { F(TEXT | 0x40, "a") }, "error:1002" },
	{ "3.5", { F(BINARY | 0x50, "a") }, "error:1002" },
	{ "3.6", { F(PING | 0x60, "a") }, "error:1002" },
	{ "3.7", { F(CLOSE | 0x70, "") }, "error:1002" },
	{ "3 middle", { F(BEGIN_TEXT, "a"), F(END | 0x40, "b") },
	    "error:1002" },
	/* 4: reserved opcodes */
	{ "4.1.1", { F(FIN | 3, "") }, "error:1002" },
	{ "4.1.2", { F(FIN | 4, "a") }, "error:1002" },
	{ "4.1.3", { F(TEXT, "a"), F(FIN | 5, "") }, "text(a) error:1002" },
	{ "4.1.4", { F(TEXT, "a"), F(FIN | 6, "b") }, "text(a) error:1002" },
	{ "4.1.5", { F(7, "") }, "error:1002" },
	{ "4.2.1", { F(FIN | 11, "") }, "error:1002" },
	{ "4.2.2", { F(FIN | 12, "a") }, "error:1002" },
	{ "4.2.3", { F(TEXT, "a"), F(FIN | 13, "") }, "text(a) error:1002" },
	{ "4.2.4", { F(FIN | 14, "") }, "error:1002" },
	{ "4.2.5", { F(15, "") }, "error:1002" },
	/* 5: fragmentation */
	{ "5.1", { F(WEBSOCKET_PING, "a"), F(END, "b") }, "error:1002" },
	{ "5.2", { F(WEBSOCKET_PONG, "a"), F(END, "b") }, "error:1002" },
	{ "5 close", { F(WEBSOCKET_CLOSE, "") }, "error:1002" },
	{ "5.3", { F(BEGIN_TEXT, "frag1"), F(END, "frag2") },
	    "text(frag1frag2)" },
	{ "5 binary", { F(BEGIN_BIN, "\xff"), F(END, "\0") },
	    "binary(\\xff\\x00)" },
	{ "5.6", { F(BEGIN_TEXT, "a"), F(PING, "p"), F(END, "b") },
	    "ping(p) text(ab)" },
	{ "5 pong", { F(BEGIN_TEXT, "a"), F(PONG, "p"), F(END, "b") },
	    "pong(p) text(ab)" },
	{ "5 close inside", { F(BEGIN_TEXT, "a"), F(CLOSE, ""), F(END, "b") },
	    "close:1005()" },
	{ "5.9", { F(END, "a"), F(TEXT, "b") }, "error:1002" },
	{ "5.12", { F(MIDDLE, "a"), F(TEXT, "b") }, "error:1002" },
	{ "5.15", { F(BEGIN_TEXT, "a"), F(END, "b"), F(MIDDLE, "c") },
	    "text(ab) error:1002" },
	{ "5.16", { F(MIDDLE, "a"), F(BEGIN_TEXT, "b"), F(END, "c") },
	    "error:1002" },
	{ "5.17", { F(END, "a"), F(BEGIN_TEXT, "b"), F(END, "c") },
	    "error:1002" },
	{ "5.18", { F(BEGIN_TEXT, "a"), F(TEXT, "b") }, "error:1002" },
	{ "5 again", { F(BEGIN_TEXT, "a"), F(BEGIN_BIN, "b") }, "error:1002" },
	{ "5.19",
	    { F(BEGIN_TEXT, "1"), F(MIDDLE, "2"), F(PING, "p"), F(MIDDLE, "3"),
		F(PING, "q"), F(END, "4") },
	    "ping(p) ping(q) text(1234)" },
	{ "5 empty", { F(BEGIN_TEXT, ""), F(MIDDLE, ""), F(END, "") },
	    "text()" },
	{ "5 empty first", { F(BEGIN_TEXT, ""), F(MIDDLE, ""), F(END, "a") },
	    "text(a)" },
	{ "5 empty middle", { F(BEGIN_BIN, "a"), F(MIDDLE, ""), F(END, "b") },
	    "binary(ab)" },
	{ "5 empty last", { F(BEGIN_TEXT, "a"), F(MIDDLE, "b"), F(END, "") },
	    "text(ab)" },
	/* 6: UTF-8 */
	{ "6.1.2", { F(BEGIN_TEXT, ""), F(MIDDLE, KOSME), F(END, "") },
	    "text(" SHOW_KOSME ")" },
	{ "6.1.3", { F(BEGIN_TEXT, ""), F(MIDDLE, ""), F(MIDDLE, "") }, "" },
	{ "6.2.1", { F(TEXT, "Hello-\xc2\xb5@") }, "text(Hello-\\xc2\\xb5@)" },
	{ "6.2.2", { F(BEGIN_TEXT, "\xc2"), F(END, "\xb5") },
	    "text(\\xc2\\xb5)" },
	{ "6 ping inside",
	    { F(BEGIN_TEXT, "\xf0"), F(MIDDLE, "\x9f"), F(PING, "\xff"),
		F(MIDDLE, "\x98"), F(END, "\x80") },
	    "ping(\\xff) text(\\xf0\\x9f\\x98\\x80)" },
	{ "6.3.1", { F(TEXT, KOSME SURROGATE "edited") }, "error:1007" },
	{ "6.3.2", { F(BEGIN_TEXT, KOSME), F(MIDDLE, "\xed"), F(END, "\xa0") },
	    "error:1007" },
	{ "6.4.1", { F(BEGIN_TEXT, "a"), F(MIDDLE, "\xf4\x90"), F(PING, "") },
	    "error:1007" },
	{ "6.6.1", { F(TEXT, "\xce") }, "error:1007" },
	{ "6.6.4", { F(TEXT, "\xce\xba\xe1\xbd") }, "error:1007" },
	{ "6 truncated", { F(BEGIN_TEXT, "\xe1"), F(END, "\xbd") },
	    "error:1007" },
	{ "6 truncated, empty end", { F(BEGIN_TEXT, "\xe1"), F(END, "") },
	    "error:1007" },
	{ "6.10.2", { F(TEXT, "\xf7\xbf\xbf\xbf") }, "error:1007" },
	{ "6.12.1", { F(TEXT, "\x80") }, "error:1007" },
	{ "6.14.1", { F(TEXT, "\xc0 \xc1 ") }, "error:1007" },
	{ "6.18.1", { F(TEXT, "\xc0\xaf") }, "error:1007" },
	{ "6.18.3", { F(TEXT, "\xf0\x80\x80\xaf") }, "error:1007" },
	{ "6.20.2", { F(TEXT, "\xed\xad\xbf") }, "error:1007" },
	{ "6.22.1", { F(TEXT, "\xef\xbf\xbe") }, "text(\\xef\\xbf\\xbe)" },
	{ "6.23.7", { F(TEXT, "\xf4\x8f\xbf\xbf") },
	    "text(\\xf4\\x8f\\xbf\\xbf)" },
	{ "6 NUL", { F(TEXT, "\0") }, "text(\\x00)" },
	{ "6 new message", { F(TEXT, "\xc2"), F(TEXT, "\xb5") }, "error:1007" },
	{ "6 binary", { F(BEGIN_BIN, "\xc2"), F(END, "\xc0") },
	    "binary(\\xc2\\xc0)" },
	{ "6 binary, text", { F(BINARY, "\xc2"), F(TEXT, "a") },
	    "binary(\\xc2) text(a)" },
	/* 7: closing */
	{ "7.1.1", { F(TEXT, "a"), F(CLOSE, "\x03\xe8") },
	    "text(a) close:1000()" },
	{ "7.1.2", { F(CLOSE, ""), F(CLOSE, "") }, "close:1005()" },
	{ "7.1.3", { F(CLOSE, "\x03\xe8"), F(PING, "") }, "close:1000()" },
	{ "7.1.4", { F(CLOSE, "\x03\xe8"), F(TEXT, "") }, "close:1000()" },
	{ "7 garbage", { F(CLOSE, "\x03\xe8"), F(0x7f, "a") }, "close:1000()" },
	{ "7.1.5", { F(BEGIN_TEXT, "a"), F(CLOSE, "\x03\xe8"), F(END, "b") },
	    "close:1000()" },
	{ "7.3.2", { F(CLOSE, "\x03") }, "error:1002" },
	{ "7 stale byte", { F(PING, "\x03\xe8"), F(CLOSE, "\x03") },
	    "ping(\\x03\\xe8) error:1002" },
	{ "7.3.4", { F(CLOSE, "\x03\xe8Hello") }, "close:1000(Hello)" },
	{ "7.3.5",
	    { F(CLOSE, "\x03\xe8" TIMES_100("*") "***********************") },
	    "close:1000(#123:d083a28d)" },
	{ "7.3.6",
	    { F(CLOSE, "\x03\xe8" TIMES_100("*") "************************") },
	    "error:1002" },
	{ "7.5.1", { F(CLOSE, "\x03\xe8" KOSME SURROGATE) }, "error:1007" },
	{ "7.5 truncated", { F(CLOSE, "\x03\xe8\xc2") }, "error:1007" },
	{ "7.9.1", { F(CLOSE, "\0\0") }, "error:1002" },
	{ "7.9.4", { F(CLOSE, "\x03\xed") }, "error:1002" },
	{ "7.9.5",
	    { F(CLOSE, "\x03\xee"
		       "abnormal") },
	    "error:1002" },
	{ "7.13.1", { F(CLOSE, "\x13\x88") }, "error:1002" },
	{ "7.13.2", { F(CLOSE, "\xff\xff") }, "error:1002" },
	/* 9: the limit (here 1000 bytes) */
	{ "9 frame+1",
	    { F(BINARY, TIMES_400("a") TIMES_400("a") TIMES_100("a")
			    TIMES_100("a") "a") },
	    "error:1009" },
	{ "9 message",
	    { F(BEGIN_TEXT, TIMES_400("a")), F(MIDDLE, TIMES_400("a")),
		F(PING, TIMES_125("p")),
		F(END, TIMES_100("a") TIMES_100("a")) },
	    "ping(#125:995e1f9f) text(#1000:1dd9658d)" },
	{ "9 message+1",
	    { F(BEGIN_TEXT, TIMES_400("a")), F(MIDDLE, TIMES_400("a")),
		F(MIDDLE, TIMES_100("a") TIMES_100("a")), F(END, "a") },
	    "error:1009" },
	{ "9 per message",
	    { F(BINARY, TIMES_400("a")), F(BINARY, TIMES_400("a")),
		F(BINARY, TIMES_400("a")) },
	    "binary(#400:02fe3395) binary(#400:02fe3395) "
	    "binary(#400:02fe3395)" },
};

/* Bytes as they are, for headers that no honest encoder makes. */
static const struct raw_case {
	const char *name;
	const char *bytes;
	size_t len;
	size_t consumed; /* when the error shows */
	const char *expect;
} raw_cases[] = {
#define RAW(name, bytes, consumed, expect)                                     \
	{                                                                      \
		name, bytes, sizeof(bytes) - 1, consumed, expect               \
	}
	RAW("unmasked", "\x81\x05Hello", 2, "error:1002"),
	RAW("unmasked empty", "\x81\x00", 2, "error:1002"),
	RAW("unmasked ping", "\x89\x00", 2, "error:1002"),
	RAW("reserved bit", "\xc1", 1, "error:1002"),
	RAW("reserved opcode", "\x83", 1, "error:1002"),
	RAW("fragmented ping", "\x09", 1, "error:1002"),
	RAW("continuation", "\x80", 1, "error:1002"),
	RAW("long ping", "\x89\xfe", 2, "error:1002"),
	RAW("very long ping", "\x89\xff", 2, "error:1002"),
	RAW("long close", "\x88\xfe", 2, "error:1002"),
	RAW("125 in 16 bits", "\x82\xfe\0\x7d\0\0\0\0", 8, "error:1002"),
	RAW("0 in 16 bits", "\x82\xfe\0\0\0\0\0\0", 8, "error:1002"),
	RAW("65535 in 64 bits", "\x82\xff\0\0\0\0\0\0\xff\xff\0\0\0\0", 14,
	    "error:1002"),
	RAW("0 in 64 bits", "\x82\xff\0\0\0\0\0\0\0\0\0\0\0\0", 14,
	    "error:1002"),
	RAW("top bit", "\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0", 14, "error:1002"),
	RAW("all bits", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14,
	    "error:1002"),
	RAW("2^63-1", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14,
	    "error:1009"),
	RAW("HTTP", "GET / HTTP/1.1\r\n", 1, "error:1002"),
};

static void
put_frame(struct buf *b, uint8_t first, const uint8_t mask[4],
    const void *payload, size_t len)
{
	uint8_t header[WEBSOCKET_HEADER_MAX];
	size_t n = websocket_put_header(header, WEBSOCKET_TEXT, len);

	header[0] = first;
	header[1] |= 0x80;
	buf_put(b, header, n);
	buf_put(b, mask, 4);
	for (size_t i = 0; i < len; i++)
		buf_put_u8(b, ((const uint8_t *)payload)[i] ^ mask[i % 4]);
}

static void
expect_trace(
    struct trace *t, const char *name, const char *how, const char *expect)
{
	const char *got = trace_string(t);

	if (strcmp(got, expect) != 0)
		fail_msg(
		    "%s, %s: \"%s\", expected \"%s\"", name, how, got, expect);
	trace_clear(t);
}

/* In pieces of `step` bytes, 0 for the whole. */
static void
check_steps(
    const char *name, const struct buf *b, size_t step, const char *expect)
{
	struct trace t;

	if (step == 0 || step > b->len)
		step = b->len;
	trace_init(&t, MESSAGE_MAX);
	for (size_t i = 0; i < b->len; i += step)
		trace_feed(
		    &t, b->data + i, b->len - i < step ? b->len - i : step);
	expect_trace(&t, name, step == b->len ? "whole" : "steps", expect);
}

static void
check_cut(const char *name, const struct buf *b, size_t cut, const char *expect)
{
	struct trace t;
	char how[32];

	snprintf(how, sizeof(how), "cut at %zu", cut);
	trace_init(&t, MESSAGE_MAX);
	trace_feed(&t, b->data, cut);
	trace_feed(&t, b->data + cut, b->len - cut);
	expect_trace(&t, name, how, expect);
}

static void
check_every_way(const char *name, const struct buf *b, const char *expect)
{
	check_steps(name, b, 0, expect);
	for (size_t step = 1; step < 9; step++)
		check_steps(name, b, step, expect);
	for (size_t cut = 0; cut <= b->len; cut++)
		check_cut(name, b, cut, expect);
}

static void
test_cases(void **state)
{
	for (size_t i = 0; i < nitems(cases) * nitems(masks); i++) {
		const struct test_case *c = &cases[i / nitems(masks)];
		struct buf b;

		buf_init(&b, 1 << 16);
		for (size_t j = 0;
		     j < nitems(c->frames) && c->frames[j].payload; j++)
			put_frame(&b, c->frames[j].first,
			    masks[i % nitems(masks)], c->frames[j].payload,
			    c->frames[j].len);
		check_every_way(c->name, &b, c->expect);
		buf_clear(&b);
	}
}

/* The error shows at its byte, not later: nothing waits for the rest. */
static void
test_raw_headers(void **state)
{
	for (size_t i = 0; i < nitems(raw_cases); i++) {
		const struct raw_case *c = &raw_cases[i];
		struct trace t;
		struct buf b;

		buf_init(&b, 1 << 16);
		buf_put(&b, c->bytes, c->len);
		check_every_way(c->name, &b, c->expect);
		trace_init(&t, MESSAGE_MAX);
		trace_feed(&t, b.data, c->consumed - 1);
		assert_false(t.over);
		trace_feed(&t, b.data + c->consumed - 1, 1);
		assert_true(t.over);
		trace_clear(&t);
		buf_clear(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_raw_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
