/* SPDX-License-Identifier: ISC */
/*
 * url: what a client connects to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "url.h"
#include "util.h"

static const struct good {
	const char *url;
	enum endpoint_kind kind;
	const char *host, *port, *path, *rest; /* file or command */
	bool local;
} good[] = {
	{ "ws://h", ENDPOINT_WS, "h", "80", "/", NULL, false },
	{ "WS://h", ENDPOINT_WS, "h", "80", "/", NULL, false },
	{ "wss://h", ENDPOINT_WSS, "h", "443", "/", NULL, false },
	{ "ws://127.0.0.1:8766", ENDPOINT_WS, "127.0.0.1", "8766", "/", NULL,
	    true },
	{ "ws://[::1]:8766/", ENDPOINT_WS, "::1", "8766", "/", NULL, true },
	{ "wss://[2001:db8::1]", ENDPOINT_WSS, "2001:db8::1", "443", "/", NULL,
	    false },
	{ "wss://h:1/a/b?c=d", ENDPOINT_WSS, "h", "1", "/a/b?c=d", NULL,
	    false },
	{ "ws://h?q", ENDPOINT_WS, "h", "80", "/?q", NULL, false },
	{ "ws://localhost:65535", ENDPOINT_WS, "localhost", "65535", "/", NULL,
	    true },
	{ "unix:/run/execd.sock", ENDPOINT_UNIX, NULL, NULL, "/",
	    "/run/execd.sock", true },
	{ "unix:///run/a b", ENDPOINT_UNIX, NULL, NULL, "/", "/run/a b", true },
	{ "stdio:ssh host execd", ENDPOINT_STDIO, NULL, NULL, NULL,
	    "ssh host execd", true },
	{ "ask:rent --mem 1G", ENDPOINT_ASK, NULL, NULL, NULL, "rent --mem 1G",
	    true },
};

static const char *const bad[] = { "", "h", "http://h", "ws:/h", "ws://",
	"ws://:1", "ws://h:", "ws://h:0", "ws://h:65536", "ws://h:1x",
	"ws://h:-1", "ws://h:99999999999999999999", "ws://[::1", "ws://[::1]x",
	"ws://[]", "ws://u@h", "ws://u:p@h", "ws://h/#f", "ws://h h",
	"ws://h/\r", "ws://h/\n", "ws://h\t", "ws://h/\x7f", "unix:", "unix://",
	"stdio:", "stdio: \t", "ask:", "ask: " };

static void
assert_text(const char *got, const char *expected)
{
	if (expected == NULL)
		assert_null(got);
	else
		assert_string_equal(got, expected);
}

static void
test_good(void **state)
{
	for (size_t i = 0; i < nitems(good); i++) {
		const struct good *g = &good[i];
		struct endpoint e;
		const char *why;

		assert_int_equal(endpoint_parse(&e, g->url, &why), 0);
		assert_int_equal(e.kind, g->kind);
		assert_text(e.host, g->host);
		assert_text(e.port, g->port);
		assert_text(e.path, g->path);
		assert_text(e.file ? e.file : e.command, g->rest);
		assert_true(endpoint_is_local(&e) == g->local);
		endpoint_clear(&e);
	}
}

static void
test_bad(void **state)
{
	for (size_t i = 0; i < nitems(bad); i++) {
		struct endpoint e;
		const char *why = NULL;

		if (endpoint_parse(&e, bad[i], &why) == 0)
			fail_msg("`%s' was taken", bad[i]);
		assert_non_null(why);
		endpoint_clear(&e);
	}
}

static void
test_length(void **state)
{
	char url[URL_MAX + 2];
	struct endpoint e;
	const char *why;

	memset(url, 'x', sizeof(url));
	memcpy(url, "unix:", 5);
	url[URL_MAX + 1] = '\0';
	assert_int_not_equal(endpoint_parse(&e, url, &why), 0);
	endpoint_clear(&e);
	url[URL_MAX] = '\0';
	assert_int_equal(endpoint_parse(&e, url, &why), 0);
	endpoint_clear(&e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
