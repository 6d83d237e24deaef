/* SPDX-License-Identifier: ISC */
/* What the resolver of execd-netproxy reads, writes and permits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy_dns.h"
#include "proxy_list.h"

#define TEXT(s) (s), sizeof(s) - 1
#define HEAD	"\x12\x34\x01\x00\0\1\0\0\0\0\0\0"
#define LONG31                                                                 \
	"\x1f"                                                                 \
	"0123456789012345678901234567890"
#define LONG63                                                                 \
	"\x3f"                                                                 \
	"0123456789012345678901234567890"                                      \
	"01234567890123456789012345678901"

static const struct {
	const char *data;
	size_t len;
	int code;
	const char *name; /* of DNS_OK */
	uint16_t type;
} queries[] = {
	{ TEXT(HEAD "\1A\7eXample\0\0\1\0\1"), DNS_OK, "A.eXample", DNS_A },
	{ TEXT(HEAD "\1a\0\0\x1c\0\1"), DNS_OK, "a", DNS_AAAA },
	{ TEXT(HEAD "\0\0\1\0\1"), DNS_OK, "", DNS_A },
	/* what follows, such as EDNS, does not matter */
	{ TEXT(HEAD "\1a\0\0\1\0\1\0\0\x29\4\xd0\0\0\0\0\0\0"), DNS_OK, "a",
	    DNS_A },
	{ TEXT(HEAD LONG63 LONG63 LONG63 LONG31 "\0\0\1\0\1"), DNS_OK, NULL,
	    DNS_A },
	{ TEXT(HEAD LONG63 LONG63 LONG63 LONG63 "\0\0\1\0\1"), DNS_BAD_FORMAT,
	    NULL, 0 },
	{ TEXT(HEAD "\1a\0\0\1\0\3"), DNS_UNSUPPORTED, NULL, 0 },
	/* a name that goes on elsewhere, and one that goes on in itself */
	{ TEXT(HEAD "\1a\xc0\0\0\1\0\1"), DNS_BAD_FORMAT, NULL, 0 },
	{ TEXT(HEAD "\1a\xc0\x0c\0\1\0\1"), DNS_BAD_FORMAT, NULL, 0 },
	{ TEXT(HEAD "\x40"
		    "a\0\0\1\0\1"),
	    DNS_BAD_FORMAT, NULL, 0 },
	{ TEXT(HEAD "\1a\0\0\1\0"), DNS_BAD_FORMAT, NULL, 0 },
	{ TEXT(HEAD "\5a"), DNS_BAD_FORMAT, NULL, 0 },
	{ TEXT(HEAD), DNS_BAD_FORMAT, NULL, 0 },
	{ TEXT("\x12\x34\x01\x00\0\0\0\0\0\0\0\0"), DNS_BAD_FORMAT, NULL, 0 },
	{ TEXT("\x12\x34\x01\x00\0\2\0\0\0\0\0\0\1a\0\0\1\0\1\1b\0\0\1\0\1"),
	    DNS_BAD_FORMAT, NULL, 0 },
	{ TEXT("\x12\x34\x28\x00\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"),
	    DNS_UNSUPPORTED, NULL, 0 },
	/* an answer is not answered */
	{ TEXT("\x12\x34\x81\x00\0\1\0\0\0\0\0\0\1a\0\0\1\0\1"), -EBADMSG, NULL,
	    0 },
	{ TEXT("\x12\x34\x01\x00\0\1\0\0\0\0\0"), -EBADMSG, NULL, 0 },
	{ TEXT(""), -EBADMSG, NULL, 0 },
};

static void
test_queries(void **state)
{
	for (size_t i = 0; i < nitems(queries); i++) {
		struct dns_query q;
		int code = dns_query_read(&q, queries[i].data, queries[i].len);

		if (code != queries[i].code)
			fail_msg("query %zu: %d", i, code);
		if (queries[i].name != NULL)
			assert_string_equal(q.name, queries[i].name);
		if (code == DNS_OK)
			assert_int_equal(q.type, queries[i].type);
	}
}

static void
expect_answer(const char *query, size_t query_len, enum dns_code code,
    uint32_t address, const char *want, size_t want_len)
{
	uint8_t bytes[DNS_ANSWER_MAX];
	struct dns_query q;
	size_t n;

	assert_true(dns_query_read(&q, query, query_len) >= 0);
	n = dns_answer_write(bytes, &q, code, address);
	assert_int_equal(n, want_len);
	assert_memory_equal(bytes, want, n);
}

static void
test_answers(void **state)
{
	expect_answer(TEXT(HEAD "\1A\0\0\1\0\1"), DNS_OK, 0xc6120102,
	    TEXT("\x12\x34\x81\x80\0\1\0\1\0\0\0\0\1A\0\0\1\0\1"
		 "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\1\2"));
	expect_answer(TEXT(HEAD "\1A\0\0\x1c\0\1"), DNS_OK, 0,
	    TEXT("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\1A\0\0\x1c\0\1"));
	/* recursion is said to be asked for only if it was */
	expect_answer(TEXT("\x12\x34\0\0\0\1\0\0\0\0\0\0\1A\0\0\1\0\1"),
	    DNS_NO_NAME, 0,
	    TEXT("\x12\x34\x80\x83\0\1\0\0\0\0\0\0\1A\0\0\1\0\1"));
	/* a question that could not be read is not repeated */
	expect_answer(TEXT(HEAD "\5A"), DNS_BAD_FORMAT, 0,
	    TEXT("\x12\x34\x81\x81\0\0\0\0\0\0\0\0"));
}

/* --- ports -------------------------------------------------------------- */

static const struct {
	const char *rules, *host;
	bool asks;
	const char *ports;
	enum netproxy_reason reason; /* if there are none */
} lists[] = {
	{ "", "a.example", false, "", NETPROXY_NOT_LISTED },
	{ "", "a.example", true, "22 80 443", 0 },
	{ "aa.example", "a.example", false, "80 443", 0 },
	{ "aa.example", "b.example", false, "", NETPROXY_NOT_LISTED },
	{ "a*.example", "b.a.example", false, "80 443", 0 },
	{ "aa.example:5000", "a.example", false, "5000", 0 },
	{ "aa.example:5000 ab.example", "b.example", false, "80 443", 0 },
	{ "aa.example:5000 aa.example:80", "a.example", false, "5000 80", 0 },
	{ "aa.example:*", "a.example", false, "22 80 443", 0 },
	{ "aa.example:* ab.example:22", "a.example", false, "22 80 443", 0 },
	{ "aa.example da.example", "a.example", false, "", NETPROXY_DENIED },
	/* the operator's list narrows, and adds nothing */
	{ "aa.example Aa.example:443", "a.example", false, "443", 0 },
	{ "aa.example Ab.example", "a.example", false, "",
	    NETPROXY_NOT_LISTED },
	{ "aa.example Da.example", "a.example", false, "", NETPROXY_DENIED },
	{ "aa.example Aa.example:5000", "a.example", false, "",
	    NETPROXY_PORT_CLOSED },
	/* The first ports count, up to NETPROXY_PORTS_MAX. */
	{ "aa.example:1 aa.example:2 aa.example:3 aa.example:4 aa.example:5 "
	  "aa.example:6 aa.example:7 aa.example:8",
	    "a.example", false, "6 5 4 3 2 1", 0 },
};

static void
read_rules(struct proxy_list *l, const char *words)
{
	_cleanup_free_ char *lines = xstrdup(words);

	for (char *p = lines; *p != '\0'; p++)
		if (*p == ' ')
			*p = '\n';
	proxy_list_read(l, (struct slice){ lines, strlen(lines) });
}

static void
test_ports(void **state)
{
	for (size_t i = 0; i < nitems(lists); i++) {
		struct proxy_list l = { .asks = lists[i].asks };
		uint16_t ports[NETPROXY_PORTS_MAX];
		struct host_name host;
		struct proxy_verdict v;
		char text[128] = "";
		size_t n, at = 0;

		read_rules(&l, lists[i].rules);
		assert_int_equal(
		    host_name_parse(&host,
			(struct slice){ lists[i].host, strlen(lists[i].host) }),
		    0);
		n = proxy_list_ports(&l, &host, ports, &v);
		for (size_t j = 0; j < n; j++)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
			    "%s%u", j > 0 ? " " : "", ports[j]);
		if (strcmp(text, lists[i].ports) != 0)
			fail_msg("list %zu: ports %s", i, text);
		if (n == 0)
			assert_int_equal(v.reason, lists[i].reason);
		network_rules_clear(&l.client);
		network_rules_clear(&l.ceiling);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queries),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
