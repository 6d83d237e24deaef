/* SPDX-License-Identifier: ISC */
/*
 * upgrade: the request, and what may answer it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "upgrade.h"

#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static void
test_request(void **state)
{
	struct endpoint e;
	const char *why, *key;
	char accept[WEBSOCKET_ACCEPT_LEN + 1];
	char expected[WEBSOCKET_ACCEPT_LEN + 1];
	struct buf b;

	assert_int_equal(endpoint_parse(&e, "ws://[::1]:7/p?q", &why), 0);
	buf_init(&b, 4096);
	assert_int_equal(upgrade_request(&b, &e, "secret", "n=v", accept), 0);
	buf_put_u8(&b, '\0');
	assert_non_null(
	    strstr((char *)b.data, "GET /p?q HTTP/1.1\r\nHost: [::1]:7\r\n"));
	assert_non_null(
	    strstr((char *)b.data, "\r\nAuthorization: Bearer secret\r\n"));
	assert_non_null(strstr((char *)b.data, "\r\nCookie: n=v\r\n\r\n"));
	assert_null(strstr((char *)b.data, "Origin"));
	key = strstr((char *)b.data, "Sec-WebSocket-Key: ");
	assert_non_null(key);
	websocket_accept(key + 19, 24, expected);
	assert_string_equal(accept, expected);
	buf_clear(&b);
	endpoint_clear(&e);
}

static const struct answer {
	const char *text;
	ssize_t result; /* 0: incomplete; 1: its whole length; or -errno */
	int status;
} answers[] = {
	{ "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	  "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	    1, 101 },
	{ "HTTP/1.1 101 x\r\nsec-websocket-ACCEPT:" ACCEPT " \t\r\n\r\n", 1,
	    101 },
	{ "HTTP/1.0 101\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n", 1, 101 },
	{ "HTTP/1.1 101 x\r\n\r\n", -EPROTO, 0 },
	{ "HTTP/1.1 101 x\r\nSec-WebSocket-Accept: no\r\n\r\n", -EPROTO, 0 },
	{ "HTTP/1.1 101 x\r\nX: Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	    -EPROTO, 0 },
	{ "HTTP/1.1 401 Unauthorized\r\n\r\n", 1, 401 },
	{ "HTTP/1.1 503\r\n\r\n", 1, 503 },
	{ "HTTP/1.1 x01 y\r\n\r\n", -EPROTO, 0 },
	{ "HTTP/1.1\r\n\r\n", -EPROTO, 0 },
	{ "SSH-2.0", -EPROTO, 0 },
	{ "\x15\x03\x01", -EPROTO, 0 },
	{ "HTTP/2", -EPROTO, 0 },
	{ "", 0, 0 },
	{ "HTT", 0, 0 },
	{ "HTTP/1.1 200 OK\r\nX: y\r\n", 0, 0 },
};

static void
test_answers(void **state)
{
	for (size_t i = 0; i < nitems(answers); i++) {
		const struct answer *a = &answers[i];
		size_t len = strlen(a->text);
		ssize_t expected = a->result == 1 ? (ssize_t)len : a->result;
		int status = 0;
		const char *why;
		ssize_t got =
		    upgrade_answer(a->text, len, ACCEPT, &status, &why);

		if (got != expected)
			fail_msg("%s: %zd, not %zd", a->text, got, expected);
		if (got > 0)
			assert_int_equal(status, a->status);
	}
}

/* However it is cut: incomplete, until it is whole. */
static void
test_pieces(void **state)
{
	const char *text = answers[0].text;
	int status;
	const char *why;

	for (size_t n = 0; n < strlen(text); n++)
		assert_int_equal(
		    upgrade_answer(text, n, ACCEPT, &status, &why), 0);
}

static const struct {
	const char *headers, *cookie; /* NULL: none */
} cookies[] = {
	{ "Set-Cookie: execd=a; path=/; HttpOnly\r\n", "execd=a" },
	{ "set-cookie:\texecd=a\r\n", "execd=a" },
	{ "Set-Cookie: execd=a ;Secure\r\n", "execd=a" },
	{ "Set-Cookie: execd=\"a\"\r\n", "execd=\"a\"" },
	{ "Set-Cookie: execd=\r\n", "execd=" },
	{ "Set-Cookie: a=b=c\r\n", "a=b=c" },
	{ "Set-Cookie: one=1\r\nSet-Cookie: two=2\r\n", "one=1" },
	{ "Set-Cookie: no\r\nSet-Cookie: two=2\r\n", "two=2" },
	{ "Set-Cookie: =a\r\n", NULL },
	{ "Set-Cookie: execd\r\n", NULL },
	{ "Set-Cookie: ; execd=a\r\n", NULL },
	{ "Set-Cookie: exe cd=a\r\n", NULL },
	{ "Set-Cookie: execd=a b\r\n", NULL },
	{ "Set-Cookie: execd=a\n\r\n", NULL },
	{ "Set-Cookie: execd=\"\r\n", NULL },
	{ "Set-Cookie: execd=a\x01\r\n", NULL },
	{ "Set-Cookie: execd=\xc3\xa4\r\n", NULL },
	{ "X-Set-Cookie: execd=a\r\n", NULL },
	{ "", NULL },
};

static void
test_cookies(void **state)
{
	for (size_t i = 0; i < nitems(cookies); i++) {
		char cookie[UPGRADE_COOKIE_MAX] = "", text[512];
		int n = snprintf(text, sizeof(text), "HTTP/1.1 101 x\r\n%s\r\n",
		    cookies[i].headers);
		bool found = upgrade_cookie(text, (size_t)n, cookie);

		if (found != (cookies[i].cookie != NULL))
			fail_msg("%s: %s", text, cookie);
		if (found)
			assert_string_equal(cookie, cookies[i].cookie);
	}
}

static void
test_longest_cookie(void **state)
{
	char cookie[UPGRADE_COOKIE_MAX] = "", pair[UPGRADE_COOKIE_MAX + 1];

	memset(pair, 'x', sizeof(pair));
	pair[1] = '=';
	pair[UPGRADE_COOKIE_MAX] = '\0';
	upgrade_keep_cookie(cookie, pair);
	assert_string_equal(cookie, "");
	pair[UPGRADE_COOKIE_MAX - 1] = '\0';
	upgrade_keep_cookie(cookie, pair);
	assert_string_equal(cookie, pair);
	upgrade_keep_cookie(cookie, "a\r\nX: y");
	assert_string_equal(cookie, "");
}

static void
test_has_header(void **state)
{
	static const char text[] = "HTTP/1.1 503 x\r\nretry-after: 1\r\n\r\n";

	assert_true(upgrade_has_header(text, strlen(text), "Retry-After"));
	assert_false(upgrade_has_header(text, strlen(text), "After"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_cookies),
		cmocka_unit_test(test_longest_cookie),
		cmocka_unit_test(test_has_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
