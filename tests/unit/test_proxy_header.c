/* SPDX-License-Identifier: ISC */
/*
 * proxy_header: which headers are believed, what they say, how early the others
 * are refused, and that nothing behind a header is asked for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "admission.h"
#include "util.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4	  "\xcb\x00\x71\x07\x7f\x00\x00\x01\xc3\x50\x00\x50"
#define V6                                                                     \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"                           \
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xc3\x50\x00\x50"

#define HEADER(text)                                                           \
	{                                                                      \
		SIGNATURE text, sizeof(SIGNATURE text) - 1                     \
	}

struct bytes {
	const char *p;
	size_t n;
};

static const struct {
	struct bytes header;
	const char *from; /* "": LOCAL */
} good[] = {
	{ HEADER("\x21\x11\x00\x0c" V4), "203.0.113.7 50000" },
	{ HEADER("\x21\x21\x00\x24" V6), "2001:db8::7 50000" },
	/* what a proxy adds is skipped, whatever it is */
	{ HEADER("\x21\x11\x00\x13" V4 "\x04\x00\x01\x00\x03\xff\xff"),
	    "203.0.113.7 50000" },
	{ HEADER("\x21\x11\x00\x0d" V4 "\xee"), "203.0.113.7 50000" },
	{ HEADER("\x20\x00\x00\x00"), "" },
	{ HEADER("\x20\x11\x00\x0c" V4), "" },
	{ HEADER("\x20\xff\x00\x02xy"), "" },
};

static void
write_from(const struct proxy_header *h, char text[64])
{
	char host[INET6_ADDRSTRLEN] = "";

	if (h->local) {
		text[0] = '\0';
		return;
	}
	if (h->from.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &h->from.in.sin_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET6, &h->from.in6.sin6_addr, host, sizeof(host));
	snprintf(text, 64, "%s %u", host,
	    ntohs(h->from.any.sa_family == AF_INET ? h->from.in.sin_port
						   : h->from.in6.sin6_port));
}

static void
test_good(void **state)
{
	struct proxy_header h;
	const char *why;
	char from[64];

	for (size_t i = 0; i < nitems(good); i++) {
		const uint8_t *p = (const uint8_t *)good[i].header.p;
		size_t n = good[i].header.n;

		for (size_t cut = 0; cut < n; cut++) {
			int want = proxy_header_parse(p, cut, &h, &why);

			assert_in_range(want, 1, n - cut);
			if (cut >= 16)
				assert_int_equal(want, n - cut);
		}
		assert_int_equal(proxy_header_parse(p, n, &h, &why), 0);
		write_from(&h, from);
		assert_string_equal(from, good[i].from);
		assert_int_equal(h.local, from[0] == '\0');
	}
}

/* `at`: as soon as so many bytes have come. */
static const struct {
	struct bytes header;
	size_t at;
	const char *why;
} bad[] = {
	{ { "GET / HTTP/1.1\r\n", 16 }, 1, "not a PROXY v2 header" },
	{ { "PROXY TCP4 1.2.3.4 5", 20 }, 1, "not a PROXY v2 header" },
	{ { "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9 }, 1,
	    "not a PROXY v2 header" },
	{ { "\r\n\r\n\0\r\nQUIT\r", 12 }, 12, "not a PROXY v2 header" },
	{ HEADER("\x11\x11\x00\x0c" V4), 13, "its version is not 2" },
	{ HEADER("\x31\x11\x00\x0c" V4), 13, "its version is not 2" },
	{ HEADER("\x22\x11\x00\x0c" V4), 13,
	    "its command is neither LOCAL nor PROXY" },
	{ HEADER("\x2f\x11\x00\x0c" V4), 13,
	    "its command is neither LOCAL nor PROXY" },
	{ HEADER("\x21\x11\x02\x09" V4), 16, "it is longer than 536 bytes" },
	{ HEADER("\x20\x00\xff\xff"), 16, "it is longer than 536 bytes" },
	{ HEADER("\x21\x11\x00\x0b" V4), 16,
	    "it is too short for its addresses" },
	{ HEADER("\x21\x21\x00\x23" V6), 16,
	    "it is too short for its addresses" },
	/* AF_UNSPEC, datagrams, AF_UNIX, and what nobody has defined */
	{ HEADER("\x21\x00\x00\x00"), 16,
	    "its client has no address of TCP over IPv4 or IPv6" },
	{ HEADER("\x21\x12\x00\x0c" V4), 16,
	    "its client has no address of TCP over IPv4 or IPv6" },
	{ HEADER("\x21\x31\x00\xd8"), 16,
	    "its client has no address of TCP over IPv4 or IPv6" },
	{ HEADER("\x21\x41\x00\x0c" V4), 16,
	    "its client has no address of TCP over IPv4 or IPv6" },
};

static void
test_bad(void **state)
{
	struct proxy_header h;
	const char *why;

	for (size_t i = 0; i < nitems(bad); i++)
		for (size_t n = 0; n <= bad[i].header.n; n++) {
			int want = proxy_header_parse(
			    (const uint8_t *)bad[i].header.p, n, &h, &why);

			if (n < bad[i].at) {
				assert_true(want > 0);
				continue;
			}
			assert_int_equal(want, -EBADMSG);
			assert_string_equal(why, bad[i].why);
		}
}

static void
test_longest(void **state)
{
	static uint8_t p[PROXY_HEADER_MAX] = SIGNATURE "\x21\x11\x02\x08" V4;
	struct proxy_header h;
	const char *why;

	assert_int_equal(proxy_header_parse(p, 16, &h, &why), sizeof(p) - 16);
	assert_int_equal(proxy_header_parse(p, sizeof(p), &h, &why), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
