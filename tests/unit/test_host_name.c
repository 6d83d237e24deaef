/* SPDX-License-Identifier: ISC */
/*
 * host_name, address_class: one form for each host, and which addresses are
 * public.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host_name.h"

static struct slice
text(const char *s)
{
	return (struct slice){ s, strlen(s) };
}

static void
hosts_have_one_form(void **state)
{
	static const struct {
		const char *given, *form;
		bool address;
	} rows[] = {
		{ "Example.COM", "example.com", false },
		{ "example.com.", "example.com", false },
		{ "a_b-c.example", "a_b-c.example", false },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example", false },
		{ "1.2.3.4", "1.2.3.4", true },
		{ "[::1]", "::1", true },
		{ "::1", "::1", true },
		{ "::ffff:127.0.0.1", "127.0.0.1", true },
		{ "[::FFFF:7f00:1]", "127.0.0.1", true },
		{ "2001:DB8::0:1", "2001:db8::1", true },
		{ "1e.2e", "1e.2e", false },
	};
	struct host_name h;

	for (size_t i = 0; i < nitems(rows); i++) {
		assert_int_equal(host_name_parse(&h, text(rows[i].given)), 0);
		assert_string_equal(h.text, rows[i].form);
		assert_int_equal(h.is_address, rows[i].address);
	}
}

static void
other_forms_are_refused(void **state)
{
	static const char *const bad[] = {
		"", ".", "..", "a..b", ".a", "a b", "a/b", "a@b", "a:b",
		"127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "010.0.0.1",
		"0177.0.0.1", "1.2.3.4.5", "1.2.3.256", "::1%lo", "fe80::1%1",
		"[::1", "::1]", "[1.2.3.4]", "[]", "a\x7f", "*", "*.a", "a.123",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	};
	struct host_name h;

	for (size_t i = 0; i < nitems(bad); i++)
		assert_int_equal(host_name_parse(&h, text(bad[i])), -EINVAL);
	assert_int_equal(host_name_parse(&h, text("b\xc3\xbc"
						  "cher.example")),
	    -EILSEQ);
	assert_int_equal(
	    host_name_parse(&h, (struct slice){ "a\0b", 3 }), -EINVAL);
}

static void
ports_are_split_off(void **state)
{
	static const struct {
		const char *text, *host, *port;
		unsigned number;
	} rows[] = {
		{ "a:1", "a", "1", 1 },
		{ "a", "a", "", 0 },
		{ "a:", "a", "", 0 },
		{ "::1", "::1", "", 0 },
		{ "[::1]", "[::1]", "", 0 },
		{ "[::1]:65535", "[::1]", "65535", 65535 },
		{ "a:65536", "a", "65536", 0 },
		{ "a:0", "a", "0", 0 },
		{ "a:+1", "a", "+1", 0 },
		{ "a:000001", "a", "000001", 0 },
		{ ":80", ":80", "", 0 },
		{ "", "", "", 0 },
	};
	struct slice host, port;

	for (size_t i = 0; i < nitems(rows); i++) {
		host_port_split(text(rows[i].text), &host, &port);
		assert_true(slice_equal(host, text(rows[i].host)));
		assert_true(slice_equal(port, text(rows[i].port)));
		assert_int_equal(host_port_parse(port), rows[i].number);
	}
}

static void
public_addresses(void **state)
{
	static const struct {
		const char *address;
		bool is_public;
	} rows[] = {
		{ "1.1.1.1", true },
		{ "172.15.255.255", true },
		{ "172.16.0.0", false },
		{ "172.31.255.255", false },
		{ "172.32.0.0", true },
		{ "0.0.0.0", false },
		{ "10.1.2.3", false },
		{ "100.64.0.1", false },
		{ "100.128.0.1", true },
		{ "127.0.0.1", false },
		{ "127.255.255.254", false },
		{ "169.254.169.254", false },
		{ "192.168.0.1", false },
		{ "192.0.0.8", false },
		{ "198.18.0.1", false },
		{ "224.0.0.1", false },
		{ "240.0.0.1", false },
		{ "255.255.255.255", false },
		{ "2606:4700::1111", true },
		{ "::", false },
		{ "::1", false },
		{ "::127.0.0.1", false },
		{ "::ffff:0:127.0.0.1", false },
		{ "fe80::1", false },
		{ "febf::1", false },
		{ "fec0::1", false },
		{ "fc00::1", false },
		{ "fdff::1", false },
		{ "ff02::1", false },
		{ "64:ff9b::1.1.1.1", true },
		{ "64:ff9b::127.0.0.1", false },
		{ "64:ff9b:1::10.0.0.1", false },
		{ "2002:7f00:1::", false },
		{ "2002:101:101::", true },
		{ "2001:0:1:2:3:4:80ff:fffe", false },
		{ "2001:0:1:2:3:4:fefe:fefe", true },
		{ "2001:2::1", false },
	};
	struct host_name h;

	for (size_t i = 0; i < nitems(rows); i++) {
		assert_int_equal(host_name_parse(&h, text(rows[i].address)), 0);
		assert_int_equal(
		    address_is_public(&h.address), rows[i].is_public);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_have_one_form),
		cmocka_unit_test(other_forms_are_refused),
		cmocka_unit_test(ports_are_split_off),
		cmocka_unit_test(public_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
