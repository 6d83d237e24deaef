/* SPDX-License-Identifier: ISC */
/*
 * http: every row of doc/protocol.md section 1.2 in its order, hostile heads,
 * every cut, the exact limit, the replies and the bearer token of 1.5.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "http.h"

#define NOT_HTTP (-EBADMSG)
#define UPGRADE	 "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define VERSION	 "Sec-WebSocket-Version: 13\r\n"
#define KEY	 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define SHAKE	 UPGRADE VERSION KEY
#define GET	 "GET / HTTP/1.1\r\nHost: x\r\n"
#define READYZ	 "GET /readyz HTTP/1.1\r\nHost: x\r\n"

/* A complete head and the answer: a status or NOT_HTTP. */
static const struct row {
	const char *head;
	int status;
} rows[] = {
	/* Origin comes first, on any path, whatever its value. */
	{ GET SHAKE "Origin: http://a\r\n\r\n", 403 },
	{ GET SHAKE "Origin:\r\n\r\n", 403 },
	{ GET SHAKE "oRIGIN: null\r\n\r\n", 403 },
	{ READYZ "Origin: x\r\n\r\n", 403 },
	{ "POST /readyz HTTP/1.1\r\nHost: x\r\nOrigin: x\r\n\r\n", 403 },
	{ "GET /foo HTTP/1.1\r\nHost: x\r\nOrigin: x\r\n\r\n", 403 },
	{ "GET / HTTP/1.0\r\nOrigin: x\r\nOrigin: y\r\n\r\n", 403 },
	/* health */
	{ READYZ "\r\n", 200 },
	{ "HEAD /readyz HTTP/1.1\r\nHost: x\r\n\r\n", 200 },
	{ "GET /readyz?a=b HTTP/1.1\r\nHost: x\r\n\r\n", 200 },
	{ "GET /readyz HTTP/1.0\r\n\r\n", 200 },
	{ "GET http://h:1/readyz HTTP/1.1\r\nHost: x\r\n\r\n", 200 },
	{ "POST /readyz HTTP/1.1\r\nHost: x\r\n\r\n", 405 },
	{ "get /readyz HTTP/1.1\r\nHost: x\r\n\r\n", 405 },
	{ "OPTIONS /readyz HTTP/1.1\r\nHost: x\r\n\r\n", 405 },
	/* other paths, also for upgrades */
	{ "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
	{ "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
	{ "GET /foo HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 404 },
	{ "GET /readyz/ HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
	{ "GET /%72eadyz HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
	{ "GET // HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 404 },
	{ "GET /./ HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 404 },
	{ "GET readyz HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
	{ "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
	{ "CONNECT h:80 HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
	{ "GET a/b://h/ HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 404 },
	{ "GET ://h/ HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 404 },
	{ "GET h:/ HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 404 },
	{ "GET ?/readyz HTTP/1.1\r\nHost: x\r\n\r\n", 404 },
	/* the upgrade */
	{ "POST / HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 405 },
	{ "HEAD / HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 405 },
	{ GET "\r\n", 400 },
	{ GET "Upgrade: websocket\r\n" VERSION KEY "\r\n", 400 },
	{ GET "Connection: upgraded\r\nUpgrade: websocket\r\n" VERSION KEY
	      "\r\n",
	    400 },
	{ GET "Connection: upgrade\r\n" VERSION KEY "\r\n", 400 },
	{ GET "Connection: upgrade\r\nUpgrade: h2c\r\n" VERSION KEY "\r\n",
	    400 },
	{ GET UPGRADE KEY "\r\n", 400 },
	{ GET UPGRADE "Sec-WebSocket-Version: 8\r\n" KEY "\r\n", 400 },
	{ GET UPGRADE "Sec-WebSocket-Version: 13, 8\r\n" KEY "\r\n", 400 },
	{ GET UPGRADE "Sec-WebSocket-Version: 013\r\n" KEY "\r\n", 400 },
	{ GET UPGRADE VERSION "\r\n", 400 },
	{ "GET / HTTP/1.0\r\n" SHAKE "\r\n", 426 },
	{ "GET / HTTP/1.0\r\n\r\n", 400 },
	{ GET SHAKE "Content-Length: 5\r\n\r\n", 400 },
	{ GET SHAKE "Transfer-Encoding: chunked\r\n\r\n", 400 },
	{ GET SHAKE "\r\n", 101 },
	{ "GET /?token=x HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 101 },
	{ "GET http://h HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 101 },
	{ "GET http://h?x HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 101 },
	{ "GET ws://h:1/?a/b HTTP/1.1\r\nHost: x\r\n" SHAKE "\r\n", 101 },
	{ GET SHAKE "Content-Length: 0\r\n\r\n", 101 },
	{ GET "CONNECTION:a,\tUPGRADE\t,b\r\nUPGRADE:WebSocket\r\n" VERSION KEY
	      "\r\n",
	    101 },
	{ GET "Connection: keep-alive\r\n" SHAKE "\r\n", 101 },
	{ GET SHAKE "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
	    101 },
	{ GET SHAKE "X-Y: \xff\xfe\t \r\nEmpty:\r\n\r\n", 101 },
	/* which host: one, of a version that has it */
	{ "GET / HTTP/1.1\r\n" SHAKE "\r\n", 400 },
	{ "GET /readyz HTTP/1.1\r\n\r\n", 400 },
	{ "GET /readyz HTTP/1.1\r\nOrigin: x\r\n\r\n", 403 },
	{ "GET / HTTP/1.1\r\nHost:\r\n" SHAKE "\r\n", 101 },
	/* a key of 16 bytes */
	{ GET UPGRADE VERSION "Sec-WebSocket-Key:\r\n\r\n", 400 },
	{ GET UPGRADE VERSION "Sec-WebSocket-Key: abc\r\n\r\n", 400 },
	{ GET UPGRADE VERSION
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n\r\n",
	    400 },
	{ GET UPGRADE VERSION
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ= \r\n\r\n",
	    400 },
	{ GET UPGRADE VERSION
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZTE=\r\n\r\n",
	    400 },
	{ GET UPGRADE VERSION
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25-ZQ==\r\n\r\n",
	    400 },
	/* not HTTP */
	{ "hello\r\n\r\n", NOT_HTTP },
	{ "\r\n\r\n", NOT_HTTP },
	{ "\r\nGET / HTTP/1.1\r\n\r\n", NOT_HTTP },
	{ " GET / HTTP/1.1\r\n\r\n", NOT_HTTP },
	{ "GET  / HTTP/1.1\r\n\r\n", NOT_HTTP },
	{ "GET /  HTTP/1.1\r\n\r\n", NOT_HTTP },
	{ "GET / HTTP/1.1 \r\n\r\n", NOT_HTTP },
	{ "GET\t/ HTTP/1.1\r\n\r\n", NOT_HTTP },
	{ "G@T / HTTP/1.1\r\n\r\n", NOT_HTTP },
	{ "GET /\r\n\r\n", NOT_HTTP },
	{ "GET / HTTP/1.2\r\n\r\n", NOT_HTTP },
	{ "GET / HTTP/2.0\r\n\r\n", NOT_HTTP },
	{ "GET / HTTP/1.10\r\n\r\n", NOT_HTTP },
	{ "GET / http/1.1\r\n\r\n", NOT_HTTP },
	{ "PRI * HTTP/2.0\r\n\r\n", NOT_HTTP },
	{ "GET /\x7f HTTP/1.1\r\n\r\n", NOT_HTTP },
	{ "GET /\xc3\xa4 HTTP/1.1\r\n\r\n", NOT_HTTP },
	{ "GET /\r HTTP/1.1\r\n\r\n", NOT_HTTP },
	/* what two parsers may read differently */
	{ "GET / HTTP/1.1\nA: b\r\n\r\n", NOT_HTTP },
	{ READYZ "A: b\nOrigin: x\r\n\r\n", NOT_HTTP },
	{ READYZ "A: b\n\r\n\r\n", NOT_HTTP },
	{ READYZ "\n\r\n\r\n", NOT_HTTP },
	{ READYZ "A: b\rc\r\n\r\n", NOT_HTTP },
	{ READYZ "A: b\r\r\n\r\n", NOT_HTTP },
	{ READYZ "A: b\r\n c\r\n\r\n", NOT_HTTP },
	{ READYZ "A: b\r\n\tc\r\n\r\n", NOT_HTTP },
	{ READYZ " A: b\r\n\r\n", NOT_HTTP },
	{ READYZ "A : b\r\n\r\n", NOT_HTTP },
	{ READYZ "A\xe4: b\r\n\r\n", NOT_HTTP },
	{ READYZ ": b\r\n\r\n", NOT_HTTP },
	{ READYZ "A\r\n\r\n", NOT_HTTP },
	{ READYZ "A: \x01\r\n\r\n", NOT_HTTP },
	{ READYZ "A: \x7f\r\n\r\n", NOT_HTTP },
	{ GET "Host: x\r\n" SHAKE "\r\n", NOT_HTTP },
	{ GET SHAKE "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"
		    "\r\n",
	    NOT_HTTP },
	{ GET SHAKE KEY "\r\n", NOT_HTTP },
	{ GET SHAKE VERSION "\r\n", NOT_HTTP },
	{ READYZ "Content-Length: 5x\r\n\r\n", NOT_HTTP },
	{ READYZ "Content-Length: -1\r\n\r\n", NOT_HTTP },
	{ READYZ "Content-Length:\r\n\r\n", NOT_HTTP },
	{ READYZ "Content-Length: 1, 1\r\n\r\n", NOT_HTTP },
	{ READYZ "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", NOT_HTTP },
	{ READYZ "Transfer-Encoding: a\r\nTransfer-Encoding: b\r\n\r\n",
	    NOT_HTTP },
};

/* From memory of exactly that size. */
static ssize_t
parse(const char *data, size_t len, int *status)
{
	_cleanup_free_ char *copy = xmalloc(len);
	struct http_request r;
	ssize_t n;

	if (len > 0)
		memcpy(copy, data, len);
	n = http_parse(&r, copy, len);
	*status = n > 0 ? http_check(&r).status : (int)n;
	return n;
}

static void
test_rows(void **state)
{
	for (size_t i = 0; i < nitems(rows); i++) {
		size_t len = strlen(rows[i].head);
		int status;
		ssize_t n = parse(rows[i].head, len, &status);

		if (status != rows[i].status || (n > 0 && (size_t)n != len))
			fail_msg("%s: %d after %zd", rows[i].head, status, n);
	}
}

/* A shorter piece says "more", or what the whole says. */
static void
test_every_cut(void **state)
{
	for (size_t i = 0; i < nitems(rows); i++) {
		for (size_t cut = 0; cut < strlen(rows[i].head); cut++) {
			int status;

			parse(rows[i].head, cut, &status);
			if (status != 0 &&
			    (status != rows[i].status || status != NOT_HTTP))
				fail_msg(
				    "%s at %zu: %d", rows[i].head, cut, status);
		}
	}
}

static void
test_refused_early(void **state)
{
	static const char *const starts[] = { "\x16\x03\x01", "\n", "\r", " ",
		"G\0T", "GET / HTTP/1.1\n", "GET / HTTP/3\r\n",
		"SSH-2.0-OpenSSH_9.2\r\n", "{\"jsonrpc\"",
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" };
	int status;

	for (size_t i = 0; i < nitems(starts); i++) {
		size_t len = i == 4 ? 3 : strlen(starts[i]);

		assert_int_equal(parse(starts[i], len, &status), -EBADMSG);
	}
}

static void
test_nul_is_refused(void **state)
{
	static const char in_name[] = READYZ "A\0: b\r\n\r\n";
	static const char in_value[] = READYZ "A: b\0\r\n\r\n";
	static const char in_path[] = "GET /\0 HTTP/1.1\r\n\r\n";
	int status;

	parse(in_name, sizeof(in_name) - 1, &status);
	assert_int_equal(status, NOT_HTTP);
	parse(in_value, sizeof(in_value) - 1, &status);
	assert_int_equal(status, NOT_HTTP);
	parse(in_path, sizeof(in_path) - 1, &status);
	assert_int_equal(status, NOT_HTTP);
}

/* A client need not wait for the 101: frames may follow at once. */
static void
test_bytes_behind_the_head(void **state)
{
	static const char data[] = GET SHAKE "\r\n\x89\x80 garbage\n\r\n\r\n";
	int status;

	assert_int_equal(
	    parse(data, sizeof(data) - 1, &status), strlen(GET SHAKE "\r\n"));
	assert_int_equal(status, 101);
}

static void
test_limit_is_exact(void **state)
{
	static char data[HTTP_HEAD_MAX + 100];
	const size_t max = HTTP_HEAD_MAX, before = strlen(READYZ "A: ");
	int status;

	memset(data, 'a', sizeof(data));
	memcpy(data, READYZ "A: ", before);
	assert_int_equal(parse(data, max - 1, &status), 0);
	assert_int_equal(parse(data, max, &status), -E2BIG);
	assert_int_equal(parse(data, sizeof(data), &status), -E2BIG);
	memcpy(data + max - 4, "\r\n\r\n", 4);
	assert_int_equal(parse(data, max - 1, &status), 0);
	assert_int_equal(parse(data, max, &status), max);
	assert_int_equal(parse(data, sizeof(data), &status), max);
	memcpy(data + max - 4, "a\r\n\r\n", 5);
	assert_int_equal(parse(data, max, &status), -E2BIG);
	assert_int_equal(parse(data, max + 1, &status), -E2BIG);
}

static void
test_fields(void **state)
{
	static const char head[] = "GET http://h/a?b#c HTTP/1.0\r\n"
				   "Sec-WebSocket-Key: \t abc \t\r\n"
				   "Authorization: first \r\n\r\n";
	struct http_request r;

	assert_int_equal(
	    http_parse(&r, head, sizeof(head) - 1), sizeof(head) - 1);
	assert_int_equal(r.method, HTTP_GET);
	assert_int_equal(r.minor, 0);
	assert_true(slice_equal(r.path, SLICE("/a")));
	assert_true(slice_equal(r.key, SLICE("abc")));
	assert_true(slice_equal(r.authorization, SLICE("first")));
	assert_true(r.has_key && r.has_authorization && !r.has_body);
	assert_false(r.origin || r.connection_upgrade || r.version_13);
}

/* What goes out for a request, between the status line and the blank line
 * and behind it. */
static void
check_reply(const char *head, const char *expect)
{
	struct http_request r;
	struct http_reply reply;
	struct buf b;

	assert_true(http_parse(&r, head, strlen(head)) > 0);
	reply = http_check(&r);
	buf_init(&b, 4096);
	if (reply.status == 101)
		http_write_upgrade(&b, r.key);
	else
		http_write_reply(&b, &reply, r.method == HTTP_HEAD);
	buf_put_u8(&b, '\0');
	assert_false(b.failed);
	assert_string_equal((const char *)b.data, expect);
	buf_clear(&b);
}

#define TEXT "content-type: text/plain; charset=utf-8\r\nconnection: close\r\n"

static void
test_replies(void **state)
{
	check_reply(GET "Origin: x\r\n\r\n",
	    "HTTP/1.1 403 Forbidden\r\nconnection: close\r\n"
	    "content-length: 0\r\n\r\n");
	check_reply(READYZ "\r\n", "HTTP/1.1 200 OK\r\nconnection: close\r\n"
				   "content-length: 0\r\n\r\n");
	check_reply("PUT /readyz HTTP/1.1\r\nHost: x\r\n\r\n",
	    "HTTP/1.1 405 Method Not Allowed\r\nallow: GET,HEAD\r\n"
	    "connection: close\r\ncontent-length: 0\r\n\r\n");
	check_reply("PUT / HTTP/1.1\r\nHost: x\r\n\r\n",
	    "HTTP/1.1 405 Method Not Allowed\r\n" TEXT
	    "content-length: 28\r\n\r\nRequest method must be `GET`");
	check_reply("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
	    "HTTP/1.1 405 Method Not Allowed\r\n" TEXT
	    "content-length: 28\r\n\r\n");
	check_reply("GET / HTTP/1.0\r\n" SHAKE "\r\n",
	    "HTTP/1.1 426 Upgrade Required\r\n" TEXT
	    "content-length: 73\r\n\r\nWebSocket request couldn't be upgraded "
	    "since no upgrade state was present");
	check_reply(GET SHAKE "\r\n",
	    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n"
	    "upgrade: websocket\r\n"
	    "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
}

/* The first thing missing is the one that is named. */
static void
test_upgrade_texts(void **state)
{
#define BAD "HTTP/1.1 400 Bad Request\r\n" TEXT "content-length: "
	check_reply(GET "\r\n",
	    BAD "43\r\n\r\nConnection header did not include 'upgrade'");
	check_reply(GET "Connection: upgrade\r\n\r\n",
	    BAD "44\r\n\r\n`Upgrade` header did not include 'websocket'");
	check_reply(GET UPGRADE "\r\n",
	    BAD "51\r\n\r\n"
		"`Sec-WebSocket-Version` header did not include '13'");
	check_reply(GET UPGRADE VERSION "\r\n",
	    BAD "34\r\n\r\n`Sec-WebSocket-Key` header missing");
}

static void
test_bearer(void **state)
{
	static const struct {
		struct slice value;
		const char *token; /* NULL: invalid */
	} values[] = {
		{ { "Bearer tok", 10 }, "tok" },
		{ { "bEARER tok", 10 }, "tok" },
		{ { "Bearer   tok  ", 14 }, "tok" },
		{ { "Bearer \ttok\t", 12 }, "tok" },
		{ { "Bearer tok x", 12 }, "tok x" },
		{ { "Bearer t\tk", 10 }, "t\tk" },
		{ { "Bearer\ttok", 10 }, NULL },
		{ { "Bearer\t tok", 11 }, NULL },
		{ { "Bearer", 6 }, NULL },
		{ { "Bearer ", 7 }, NULL },
		{ { "Bearer \t ", 9 }, NULL },
		{ { "Bearertok", 9 }, NULL },
		{ { "Basic tok", 9 }, NULL },
		{ { "Bearer, tok", 11 }, NULL },
		{ { " Bearer tok", 11 }, NULL },
		{ { "Bearer t\xffk", 10 }, NULL },
		{ { "", 0 }, NULL },
		{ { NULL, 0 }, NULL },
	};

	for (size_t i = 0; i < nitems(values); i++) {
		struct slice token = { "", 0 };
		int r = http_bearer(values[i].value, &token);

		if (values[i].token == NULL) {
			assert_int_equal(r, -EBADMSG);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(token.len, strlen(values[i].token));
		assert_memory_equal(token.ptr, values[i].token, token.len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_refused_early),
		cmocka_unit_test(test_nul_is_refused),
		cmocka_unit_test(test_bytes_behind_the_head),
		cmocka_unit_test(test_limit_is_exact),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_upgrade_texts),
		cmocka_unit_test(test_bearer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
