/* SPDX-License-Identifier: ISC */
/* network_rules: which patterns there are, what they match, and who wins. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "network_rules.h"

static struct slice
text(const char *s)
{
	return (struct slice){ s, strlen(s) };
}

/* Reads "+allowed -denied ?reviewed ...". */
static void
read_list(struct network_rules *r, const char *list)
{
	char error[NETWORK_RULE_ERROR_MAX];
	_cleanup_free_ char *copy = xstrdup(list);
	char *save = NULL;

	*r = (struct network_rules){ 0 };
	for (char *word = strtok_r(copy, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save)) {
		enum network_effect effect = *word == '+'   ? NETWORK_ALLOW
					     : *word == '-' ? NETWORK_DENY
							    : NETWORK_REVIEW;

		assert_int_equal(
		    network_rules_add(r, effect, text(word + 1), error), 0);
	}
}

static const struct {
	const char *list, *host;
	uint16_t port;
	enum network_way way;
	enum network_answer answer;
	const char *rule; /* NULL: none decided */
} judged[] = {
	{ "", "a.example", 80, NETWORK_HTTP, NETWORK_NOT_LISTED, NULL },
	{ "+a.example", "A.Example.", 80, NETWORK_HTTP, NETWORK_ALLOWED,
	    "a.example" },
	{ "+a.example", "b.a.example", 80, NETWORK_HTTP, NETWORK_NOT_LISTED,
	    NULL },
	{ "+*.a.example", "a.example", 80, NETWORK_HTTP, NETWORK_NOT_LISTED,
	    NULL },
	{ "+*.a.example", "c.b.a.example", 80, NETWORK_HTTP, NETWORK_ALLOWED,
	    "*.a.example" },
	{ "+*.a.example", "ba.example", 80, NETWORK_HTTP, NETWORK_NOT_LISTED,
	    NULL },
	{ "+**.a.example", "a.example", 80, NETWORK_HTTP, NETWORK_ALLOWED,
	    "**.a.example" },
	{ "+**.a.example", "b.a.example", 80, NETWORK_HTTP, NETWORK_ALLOWED,
	    "**.a.example" },
	{ "+* -a.example", "a.example", 80, NETWORK_HTTP, NETWORK_DENIED,
	    "a.example" },
	{ "+* -a.example:81", "a.example", 80, NETWORK_HTTP, NETWORK_ALLOWED,
	    "*" },
	{ "+*", "127.0.0.1", 80, NETWORK_HTTP, NETWORK_NOT_LISTED, NULL },
	{ "+*", "1.1.1.1", 80, NETWORK_HTTP, NETWORK_ALLOWED, "*" },
	{ "+*.0.0.x", "127.0.0.1", 80, NETWORK_HTTP, NETWORK_NOT_LISTED, NULL },
	{ "+1.1.1.1", "::ffff:1.1.1.1", 80, NETWORK_HTTP, NETWORK_ALLOWED,
	    "1.1.1.1" },
	{ "+a", "a", 8080, NETWORK_HTTP, NETWORK_ALLOWED, "a" },
	{ "+a", "a", 8080, NETWORK_TUNNEL, NETWORK_PORT_CLOSED, "a" },
	{ "+a", "a", 443, NETWORK_TUNNEL, NETWORK_ALLOWED, "a" },
	{ "+a", "a", 80, NETWORK_TUNNEL, NETWORK_ALLOWED, "a" },
	{ "+a:8080", "a", 8080, NETWORK_TUNNEL, NETWORK_ALLOWED, "a:8080" },
	{ "+a:8080", "a", 443, NETWORK_TUNNEL, NETWORK_PORT_CLOSED, "a:8080" },
	{ "+a:8080", "a", 80, NETWORK_HTTP, NETWORK_PORT_CLOSED, "a:8080" },
	{ "+a:8080 +a", "a", 443, NETWORK_TUNNEL, NETWORK_ALLOWED, "a" },
	{ "+*:22", "a", 22, NETWORK_TUNNEL, NETWORK_ALLOWED, "*:22" },
	{ "+*:*", "a", 22, NETWORK_TUNNEL, NETWORK_ALLOWED, "*:*" },
	{ "+a:*", "a", 8080, NETWORK_HTTP, NETWORK_ALLOWED, "a:*" },
	{ "+*:*", "10.0.0.1", 22, NETWORK_TUNNEL, NETWORK_NOT_LISTED, NULL },
	{ "+[::1]:*", "::1", 22, NETWORK_TUNNEL, NETWORK_ALLOWED, "[::1]:*" },
	{ "+* -a:*", "a", 22, NETWORK_HTTP, NETWORK_DENIED, "a:*" },
	{ "+[::1]:80", "::1", 80, NETWORK_HTTP, NETWORK_ALLOWED, "[::1]:80" },
	{ "?a +a", "a", 80, NETWORK_HTTP, NETWORK_REVIEWED, "a" },
	{ "+a ?a", "a", 80, NETWORK_HTTP, NETWORK_REVIEWED, "a" },
	{ "-a ?a", "a", 80, NETWORK_HTTP, NETWORK_DENIED, "a" },
};

static void
hosts_are_judged(void **state)
{
	char shown[NETWORK_RULE_TEXT_MAX];

	for (size_t i = 0; i < nitems(judged); i++) {
		const struct network_rule *rule;
		struct network_rules r;
		struct host_name host;

		read_list(&r, judged[i].list);
		assert_int_equal(
		    host_name_parse(&host, text(judged[i].host)), 0);
		assert_int_equal(network_rules_judge(&r, &host, judged[i].port,
				     judged[i].way, &rule),
		    judged[i].answer);
		assert_int_equal(rule == NULL, judged[i].rule == NULL);
		if (rule != NULL) {
			network_rule_format(rule, shown);
			assert_string_equal(shown, judged[i].rule);
		}
		network_rules_clear(&r);
	}
}

static const struct {
	const char *list, *host, *address;
	bool local, permitted;
} permitted[] = {
	{ "+a", "a", "1.1.1.1", false, true },
	{ "+a", "a", "127.0.0.1", false, false },
	{ "+a", "a", "::1", false, false },
	{ "+a", "a", "169.254.169.254", false, false },
	{ "+a", "a", "10.0.0.1", true, true },
	{ "+a +10.0.0.1", "a", "10.0.0.1", false, true },
	{ "+a -10.0.0.1", "a", "10.0.0.1", false, false },
	{ "+a +10.0.0.1", "a", "10.0.0.2", false, false },
	{ "+localhost", "localhost", "127.0.0.1", false, true },
	{ "+localhost", "localhost", "::1", false, true },
	{ "+localhost", "localhost", "10.0.0.1", false, false },
	{ "+localhost +a", "a", "127.0.0.1", false, false },
	{ "+**.localhost", "a.localhost", "127.0.0.1", false, false },
};

static void
private_addresses_must_be_named(void **state)
{
	for (size_t i = 0; i < nitems(permitted); i++) {
		struct host_name host, address;
		struct network_rules r;

		read_list(&r, permitted[i].list);
		r.allow_local = permitted[i].local;
		assert_int_equal(
		    host_name_parse(&host, text(permitted[i].host)), 0);
		assert_int_equal(
		    host_name_parse(&address, text(permitted[i].address)), 0);
		assert_int_equal(
		    network_rules_permit(&r, &host, &address.address),
		    permitted[i].permitted);
		network_rules_clear(&r);
	}
}

/* The forms of an address of IPv4 that lead to it, too. */
static void
a_denied_address_is_denied_in_each_form(void **state)
{
	static const char *const forms[] = { "203.0.113.9",
		"::ffff:203.0.113.9", "64:ff9b::203.0.113.9",
		"64:ff9b:1::203.0.113.9", "2002:cb00:7109::1",
		"::203.0.113.9" };
	struct network_rules r;
	struct host_name a;

	read_list(&r, "+* -203.0.113.9:80 -2001:db8::1");
	for (size_t i = 0; i < nitems(forms); i++) {
		const struct network_rule *rule;

		assert_int_equal(host_name_parse(&a, text(forms[i])), 0);
		assert_non_null(network_rules_denial(&r, &a.address, 80));
		assert_null(network_rules_denial(&r, &a.address, 81));
		assert_int_equal(
		    network_rules_judge(&r, &a, 80, NETWORK_HTTP, &rule),
		    NETWORK_DENIED);
	}
	assert_int_equal(host_name_parse(&a, text("2001:db8::1")), 0);
	assert_non_null(network_rules_denial(&r, &a.address, 81));
	assert_int_equal(host_name_parse(&a, text("2001:db8::2")), 0);
	assert_null(network_rules_denial(&r, &a.address, 80));
	network_rules_clear(&r);
}

static void
bad_patterns_are_refused(void **state)
{
	static const char *const bad[] = { "", "a b", "*a", "a.*", "*.",
		"***.a", "*.*.a", "*.1.2.3.4", "**.[::1]", "a:", "a:0",
		"a:65536", "a:1:2", "[::1]:", "http://a", "a/b", "a@b", ":80" };
	char error[NETWORK_RULE_ERROR_MAX];
	struct network_rules r = { 0 };

	for (size_t i = 0; i < nitems(bad); i++) {
		assert_int_equal(
		    network_rules_add(&r, NETWORK_ALLOW, text(bad[i]), error),
		    -EINVAL);
		assert_non_null(strstr(error, bad[i]));
	}
	assert_int_equal(
	    network_rules_add(&r, NETWORK_DENY, text("*"), error), -EINVAL);
	assert_int_equal(network_rules_add(&r, NETWORK_ALLOW,
			     text("b\xc3\xbc"
				  "cher"),
			     error),
	    -EILSEQ);
	assert_int_equal(r.count, 0);
}

static void
a_list_has_a_limit(void **state)
{
	char error[NETWORK_RULE_ERROR_MAX], name[16];
	struct network_rules r = { 0 };

	for (int i = 0; i < NETWORK_RULES_MAX; i++) {
		snprintf(name, sizeof(name), "h%d", i);
		assert_int_equal(
		    network_rules_add(&r, NETWORK_ALLOW, text(name), error), 0);
	}
	assert_int_equal(
	    network_rules_add(&r, NETWORK_ALLOW, text("a"), error), -E2BIG);
	assert_non_null(strstr(error, "1000"));
	network_rules_clear(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_judged),
		cmocka_unit_test(private_addresses_must_be_named),
		cmocka_unit_test(a_denied_address_is_denied_in_each_form),
		cmocka_unit_test(bad_patterns_are_refused),
		cmocka_unit_test(a_list_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
