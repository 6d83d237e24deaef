/* SPDX-License-Identifier: ISC */
/*
 * network_list: a client's list of hosts as execd-netproxy gets it, and what is
 * refused; proxy_environment: the variables that lead to it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "environment.h"
#include "network_list.h"

#define PROXY(members) "{\"proxy\":{\"enabled\":true" members "}}"

static int
read_text(const char *json, bool own, struct network_list *l, char *error)
{
	struct network_params p = { 0 };
	struct json_doc doc;
	struct args a;
	int err = json_parse(&doc, json, strlen(json));

	assert_int_equal(err, 0);
	a = (struct args){ .doc = &doc, .object = doc.root };
	if (own)
		network_params_decode_own(&a, doc.root, &p);
	else
		network_params_decode_proxy(&a, doc.root, &p);
	assert_int_equal(args_end(&a), 0);
	err = network_list_read(l, &p, error);
	json_clear(&doc);
	return err;
}

static const struct row {
	bool own;
	const char *json, *text; /* or the error, after "!" */
} rows[] = {
	{ true, "{}", "0000\n" },
	{ true, "{\"allow\":[\"a.example\",\"*.b.example:8443\"]}",
	    "0000\naa.example\na*.b.example:8443\n" },
	{ true, "{\"deny\":[\"a\"],\"allow\":[\"*\"]}", "0000\na*\nda\n" },
	{ false, PROXY(""), "0000\n" },
	{ false, PROXY(",\"domains\":{\"a\":\"deny\",\"b\":\"allow\"}"),
	    "0000\nda\nab\n" },
	{ false,
	    PROXY(",\"mode\":\"limited\",\"allowLocalBinding\":true,"
		  "\"reviewDomains\":[\"c\"]"),
	    "0110\nrc\n" },
	{ false, "{\"policyDecisionTimeoutMs\":1,\"proxy\":{\"enabled\":true}}",
	    "0001\n" },
	/* converted by execd-netproxy */
	{ true, "{\"allow\":[\"b\xc3\xbc.example\"]}",
	    "0000\nab\xc3\xbc.example\n" },
	{ false, "{\"proxy\":{}}",
	    "!invalid network proxy config: executor-local network proxy "
	    "launch requires an enabled proxy" },
	{ false, PROXY(",\"domains\":{\"a/b\":\"allow\"}"),
	    "!invalid network proxy config: unsupported domain pattern "
	    "syntax: a/b" },
	{ false, PROXY(",\"domains\":{\"*\":\"deny\"}"),
	    "!invalid network proxy config: * denies everything: name hosts, "
	    "or *.example.com or **.example.com" },
	{ true, "{\"allow\":[\"\"]}",
	    "!network: unsupported domain pattern syntax: " },
	/* A second line would count as a rule of the operator. */
	{ true, "{\"allow\":[\"b\xc3\xbc\\nA*\"]}",
	    "!network: a pattern has one line and no NUL" },
	{ true, "{\"allow\":[\"a\\nA*\"]}",
	    "!network: unsupported domain pattern syntax: a\nA*" },
	{ true, "{\"allow\":[\"b\xc3\xbc\\u0000\"]}",
	    "!network: a pattern has one line and no NUL" },
};

static void
test_lists(void **state)
{
	char error[ARGS_ERROR_MAX] = "";
	struct network_list l;

	for (size_t i = 0; i < nitems(rows); i++) {
		const struct row *r = &rows[i];
		int err = read_text(r->json, r->own, &l, error);

		if (r->text[0] == '!') {
			assert_int_equal(err, -EINVAL);
			assert_string_equal(error, r->text + 1);
			assert_null(l.text);
		} else {
			assert_int_equal(err, 0);
			assert_string_equal(l.text, r->text);
			assert_ptr_equal(l.rules.ptr, l.text + 5);
			assert_int_equal(l.rules.len, strlen(l.text + 5));
		}
		network_list_clear(&l);
	}
}

static void
test_limits(void **state)
{
	char error[ARGS_ERROR_MAX];
	struct network_list l;
	struct buf b;

	buf_init(&b, 1u << 20);
	buf_puts(&b, "{\"allow\":[\"x\"");
	for (int i = 0; i < 300; i++)
		buf_printf(&b, ",\"%0200d.example\"", i);
	buf_puts(&b, "]}");
	buf_put_u8(&b, '\0');
	assert_int_equal(read_text((char *)b.data, true, &l, error), -EINVAL);
	assert_non_null(strstr(error, "unsupported domain pattern"));
	buf_clear(&b);
	buf_puts(&b, "{\"allow\":[\"x\"");
	for (int i = 0; i < 300; i++)
		buf_printf(&b, ",\"%060d.%060d.%060d.example\"", i, i, i);
	buf_puts(&b, "]}");
	buf_put_u8(&b, '\0');
	assert_int_equal(read_text((char *)b.data, true, &l, error), -EINVAL);
	assert_string_equal(
	    error, "network: the patterns of a list have at most 48 KiB");
	buf_clear(&b);
	buf_puts(&b, "{\"allow\":[\"x\"");
	for (int i = 0; i < 1000; i++)
		buf_puts(&b, ",\"x\"");
	buf_puts(&b, "]}");
	buf_put_u8(&b, '\0');
	assert_int_equal(read_text((char *)b.data, true, &l, error), -EINVAL);
	assert_string_equal(
	    error, "network: a list of hosts has at most 1000 patterns");
	buf_clear(&b);
}

/* A command's own server is behind no proxy; a host's loopback that somebody
 * listed is. */
static void
test_own_loopback(void **state)
{
	static const struct {
		const char *json;
		bool own;
		const char *text;
	} lists[] = {
		{ "{\"allow\":[\"a.example\",\"*.localhost.example\"]}", true,
		    "localhost,127.0.0.1,::1" },
		{ "{\"allow\":[\"*:*\"],\"deny\":[\"localhost\"]}", true,
		    "localhost,127.0.0.1,::1" },
		{ "{\"allow\":[]}", true, "localhost,127.0.0.1,::1" },
		{ "{\"allow\":[\"a.example\",\"LocalHost:80\"]}", true, "" },
		{ "{\"allow\":[\"127.0.0.2:80\"]}", true, "" },
		{ "{\"allow\":[\"[::1]:80\"]}", true, "" },
		{ PROXY(",\"allowLocalBinding\":true"), false,
		    "localhost,127.0.0.1,::1,"
		    "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16" },
	};
	char error[ARGS_ERROR_MAX] = "";
	struct network_list l;

	for (size_t i = 0; i < nitems(lists); i++) {
		assert_int_equal(
		    read_text(lists[i].json, lists[i].own, &l, error), 0);
		assert_string_equal(
		    network_list_not_through(&l), lists[i].text);
		network_list_clear(&l);
	}
}

static const char *
value_of(char *const *envp, const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name);

	for (; *envp != NULL; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=') {
			assert_null(found);
			found = *envp + n + 1;
		}
	return found;
}

static void
test_variables(void **state)
{
	char *before[] = { (char *)(uintptr_t) "PATH=/bin",
		(char *)(uintptr_t) "http_proxy=http://elsewhere",
		(char *)(uintptr_t) "HTTP_PROXY_X=1",
		(char *)(uintptr_t) "NO_PROXY=*", NULL };
	struct proxy_environment proxy = {
		.port = 1234, .socks = true, .not_through = ""
	};
	char **e = proxy_environment(before, &proxy);
	size_t n = 0;

	while (e[n] != NULL)
		n++;
	assert_int_equal(n, 2 + 33);
	assert_string_equal(value_of(e, "PATH"), "/bin");
	assert_string_equal(value_of(e, "HTTP_PROXY_X"), "1");
	assert_string_equal(value_of(e, "http_proxy"), "http://127.0.0.1:1234");
	assert_string_equal(value_of(e, "PIP_PROXY"), "http://127.0.0.1:1234");
	assert_string_equal(
	    value_of(e, "ALL_PROXY"), "socks5h://127.0.0.1:1234");
	assert_string_equal(value_of(e, "NO_PROXY"), "");
	assert_string_equal(value_of(e, "NODE_USE_ENV_PROXY"), "1");
	free(e);
	proxy.socks = false;
	proxy.not_through = "localhost,10.0.0.0/8";
	e = proxy_environment(before, &proxy);
	assert_string_equal(value_of(e, "ftp_proxy"), "http://127.0.0.1:1234");
	assert_string_equal(
	    value_of(e, "npm_config_noproxy"), "localhost,10.0.0.0/8");
	free(e);
}

/* The operator's addresses are open to a policy with a network, and not his
 * alone: every public one is. */
static void
test_everything(void **state)
{
	struct network_list l;

	network_list_everything(&l, "");
	assert_string_equal(l.text, "0000\na*:*\n");
	assert_true(slice_equal(l.rules, SLICE("a*:*\n")));
	network_list_clear(&l);
	network_list_everything(&l, "10.0.0.1\n*.example:22");
	assert_true(
	    slice_equal(l.rules, SLICE("a*:*\na10.0.0.1\na*.example:22\n")));
	assert_false(l.asks || l.limited || l.allow_local);
	assert_true(l.socks);
	network_list_clear(&l);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_own_loopback),
		cmocka_unit_test(test_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
