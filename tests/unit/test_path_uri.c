/* SPDX-License-Identifier: ISC */
/*
 * path_uri: doc/protocol.md section 9, both directions.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "json_text.h"
#include "path_uri.h"

#define TEXT(literal)                                                          \
	{                                                                      \
		literal, sizeof(literal) - 1                                   \
	}
#define RELATIVE     "invalid URI: relative URL without a base"
#define DOMAIN	     "invalid URI: invalid international domain name"
#define QUERY	     "query parameters are not allowed in path URIs"
#define FRAGMENT     "fragments are not allowed in path URIs"
#define SCHEME(name) "unsupported path URI scheme `" name "`"
#define FOREIGN	     ((const char *)-1)

/* A URI and its path, or FOREIGN. */
static const struct good_row {
	struct slice uri;
	const char *path;
} good_rows[] = {
	/* forms */
	{ TEXT("file:///a/b"), "/a/b" },
	{ TEXT("file:/a/b"), "/a/b" },
	{ TEXT("file:a/b"), "/a/b" },
	{ TEXT("FILE:///a"), "/a" },
	{ TEXT("FiLe:a"), "/a" },
	{ TEXT("file:"), "/" },
	{ TEXT("file:/"), "/" },
	{ TEXT("file://"), "/" },
	{ TEXT("file:///"), "/" },
	{ TEXT("file:////"), "/" },
	{ TEXT("file:\\\\\\a\\b"), "/a/b" },
	{ TEXT("file:\\a/b\\c"), "/a/b/c" },
	{ TEXT("file:/\\/a"), "/a" },
	{ TEXT("file://localhost/a/b"), "/a/b" },
	{ TEXT("file://LocalHost/a"), "/a" },
	{ TEXT("file://localhost"), "/" },
	{ TEXT("file:\\\\localhost\\a"), "/a" },
	/* blanks around, tabs and newlines anywhere */
	{ TEXT("  file:///a  "), "/a" },
	{ TEXT("\x01\x1f file:///a\x02\x1f\n"), "/a" },
	{ TEXT("\0file:///a\0"), "/a" },
	{ TEXT("file:///a\0/../b"), "/b" },
	{ TEXT("fi\tle:\n//\r/a\t/b\n"), "/a/b" },
	{ TEXT("file:///a/.\t./b"), "/b" },
	{ TEXT("file:///a%2\n0b"), "/a b" },
	{ TEXT("file:///a b"), "/a b" },
	{ TEXT("file:///a /b"), "/a /b" },
	/* dot segments */
	{ TEXT("file:///a/../b"), "/b" },
	{ TEXT("file:///a/./b/."), "/a/b" },
	{ TEXT("file:///a/b/.."), "/a" },
	{ TEXT("file:///.."), "/" },
	{ TEXT("file:///../../etc"), "/etc" },
	{ TEXT("file:///a/../../../b"), "/b" },
	{ TEXT("file:../a"), "/a" },
	{ TEXT("file:///a/%2e/b"), "/a/b" },
	{ TEXT("file:///a/b/%2E%2e/c"), "/a/c" },
	{ TEXT("file:///a/b/.%2e/c"), "/a/c" },
	{ TEXT("file:///a/b/%2e./c"), "/a/c" },
	{ TEXT("file:///a\\..\\b"), "/b" },
	{ TEXT("file:///a/.../b"), "/a/.../b" },
	{ TEXT("file:///a/..b/.c/d../e."), "/a/..b/.c/d../e." },
	{ TEXT("file:///%2e%2e%2e"), "/..." },
	{ TEXT("file:///a/%252e%252e/b"), "/a/%2e%2e/b" },
	{ TEXT("file:///a/. ./b"), "/a/. ./b" },
	/* slashes */
	{ TEXT("file:///a//b///c"), "/a/b/c" },
	{ TEXT("file:///a/"), "/a" },
	{ TEXT("file:///a///"), "/a" },
	{ TEXT("file:////a"), "/a" },
	{ TEXT("file:///a%2fb"), "/a/b" },
	/* /etc for the system: quirk Q14 */
	{ TEXT("file:///tmp/..%2fetc"), "/etc" },
	{ TEXT("file:///a/%2f/../b"), "/a/b" },
	{ TEXT("file:///a%2f%2fb%2f"), "/a/b" },
	{ TEXT("file:///%2f"), "/" },
	{ TEXT("file:///a%5cb"), "/a\\b" },
	/* escapes: once, to bytes */
	{ TEXT("file:///a%20b"), "/a b" },
	{ TEXT("file:///%C3%BC%c3%bc"), "/\xc3\xbc\xc3\xbc" },
	{ TEXT("file:///\xc3\xbc"), "/\xc3\xbc" },
	{ TEXT("file:///%ff%FE"), "/\xff\xfe" },
	{ TEXT("file:///%2541"), "/%41" },
	{ TEXT("file:///%zz"), "/%zz" },
	{ TEXT("file:///%"), "/%" },
	{ TEXT("file:///%4"), "/%4" },
	{ TEXT("file:///%4g"), "/%4g" },
	{ TEXT("file:///%g1"), "/%g1" },
	{ TEXT("file:///%%41"), "/%A" },
	{ TEXT("file:///%4%31"), "/%41" },
	{ TEXT("file:///a%3fb%23c"), "/a?b#c" },
	{ TEXT("file:///%0a%01%7f"), "/\n\x01\x7f" },
	{ TEXT("file:///a:b@c|d"), "/a:b@c|d" },
	{ TEXT("file:///a/C:/x"), "/a/C:/x" },
	{ TEXT("file:///CC:/x"), "/CC:/x" },
	{ TEXT("file:///C"), "/C" },
	{ TEXT("file:///C:x"), "/C:x" },
	{ TEXT("file:///1:/x"), "/1:/x" },
	{ TEXT("file:///~/x"), "/~/x" },
	/* no path of this machine */
	{ TEXT("file://host/x"), FOREIGN },
	{ TEXT("file://host"), FOREIGN },
	{ TEXT("file://127.0.0.1/x"), FOREIGN },
	{ TEXT("file://localhost.example/x"), FOREIGN },
	{ TEXT("file://localhos/x"), FOREIGN },
	{ TEXT("file:\\\\host\\x"), FOREIGN },
	{ TEXT("file:///C:/x"), FOREIGN },
	{ TEXT("file:///c:"), FOREIGN },
	{ TEXT("file:///z|/x"), FOREIGN },
	{ TEXT("file://C:/x"), FOREIGN },
	{ TEXT("file:C:/x"), FOREIGN },
	{ TEXT("file:/C:\\x"), FOREIGN },
	{ TEXT("file:///C:/../x"), FOREIGN },
	/* ".." ends at the decoded slash, not at the segment */
	{ TEXT("file:///a%2fb/.."), "/" },
	{ TEXT("file:///a/b%2fc/../d"), "/a/d" },
	/* WHATWG: ".." takes the empty segment */
	{ TEXT("file:///a//.."), "/a" },
	{ TEXT("file:///a//../b"), "/a/b" },
	/* WHATWG: the drive is found when the path is empty again */
	{ TEXT("file:///a/../C:/x"), FOREIGN },
	/* WHATWG: a host is decoded, and may be an address of version 6 */
	{ TEXT("file://%6cocalhost/a"), "/a" },
	{ TEXT("file://[::1]/x"), FOREIGN },
};

static void
check_good(const struct good_row *row, size_t i)
{
	char *copy = exact_copy(row->uri), error[512] = "";
	const struct slice uri = { copy, row->uri.len };
	bool foreign = row->path == FOREIGN;
	struct path_uri out;
	struct json_doc doc;

	assert_int_equal(json_parse(&doc, "{}", 2), 0);
	if (path_uri_parse(&out, &doc, uri, error, sizeof(error)) != 0)
		fail_msg("row %zu, %s: %s", i, row->uri.ptr, error);
	if (out.foreign != foreign || (out.path == NULL) != foreign)
		fail_msg(
		    "row %zu, %s: foreign %d", i, row->uri.ptr, out.foreign);
	if (!foreign && strcmp(out.path, row->path) != 0)
		fail_msg("row %zu, %s: %s, not %s", i, row->uri.ptr, out.path,
		    row->path);
	json_clear(&doc);
	free(copy);
}

static void
test_paths(void **state)
{
	for (size_t i = 0; i < nitems(good_rows); i++)
		check_good(&good_rows[i], i);
}

static const struct bad_row {
	struct slice uri;
	const char *error;
} bad_rows[] = {
	/* no URI */
	{ TEXT(""), RELATIVE },
	{ TEXT("   "), RELATIVE },
	{ TEXT("/etc"), RELATIVE },
	{ TEXT("x"), RELATIVE },
	{ TEXT("~/x"), RELATIVE },
	{ TEXT("./x"), RELATIVE },
	{ TEXT("file"), RELATIVE },
	{ TEXT("file/a:b"), RELATIVE },
	{ TEXT("//host/x"), RELATIVE },
	{ TEXT("\\a"), RELATIVE },
	{ TEXT(":a"), RELATIVE },
	{ TEXT("1file:///a"), RELATIVE },
	{ TEXT("-file:///a"), RELATIVE },
	{ TEXT("fi le:///a"), RELATIVE },
	{ TEXT("f\xc3\xbcle:///a"), RELATIVE },
	{ TEXT("?file:///a"), RELATIVE },
	/* other schemes */
	{ TEXT("http://x"), SCHEME("http") },
	{ TEXT("HTTPS://x/y?z#a"), SCHEME("https") },
	{ TEXT("C:\\x"), SCHEME("c") },
	{ TEXT("c:"), SCHEME("c") },
	{ TEXT("files:///a"), SCHEME("files") },
	{ TEXT("fil:///a"), SCHEME("fil") },
	{ TEXT("a+b-c.d1:x"), SCHEME("a+b-c.d1") },
	{ TEXT(" vscode-remote://a/b"), SCHEME("vscode-remote") },
	/* query and fragment */
	{ TEXT("file:///a?b"), QUERY },
	{ TEXT("file:///a?"), QUERY },
	{ TEXT("file:?"), QUERY },
	{ TEXT("file:///a#b"), FRAGMENT },
	{ TEXT("file:///a#"), FRAGMENT },
	{ TEXT("file:///a?b#c"), QUERY },
	{ TEXT("file:///C:/x?y"), QUERY },
	{ TEXT("file://host/x#y"), FRAGMENT },
	/* credentials, ports */
	{ TEXT("file://u@h/x"), DOMAIN },
	{ TEXT("file://u:p@h/x"), DOMAIN },
	{ TEXT("file://u@/x"), DOMAIN },
	{ TEXT("file://h:80/x"), DOMAIN },
	{ TEXT("file://localhost:80/x"), DOMAIN },
	{ TEXT("file://localhost:/x"), DOMAIN },
	{ TEXT("file://u@localhost/x"), DOMAIN },
	{ TEXT("file://a b/x"), DOMAIN },
	{ TEXT("file://a<b/x"), DOMAIN },
	/* NUL */
	{ TEXT("file:///x%00"), "'file:///x%00' is invalid on 'linux'" },
	{ TEXT("file:///%00"), "'file:///%00' is invalid on 'linux'" },
	{ TEXT("file:///a/%00/b"), "'file:///a/%00/b' is invalid on 'linux'" },
	{ TEXT("file:///a\0b"), "" },
	{ TEXT("file:///\0/b"), "" },
	/* as WHATWG serialises it, like all of section 9's messages */
	{ TEXT("file:x%00"), "'file:///x%00' is invalid on 'linux'" },
	{ TEXT("FILE:\\x%00"), "'file:///x%00' is invalid on 'linux'" },
	{ TEXT("file://localhost/x%00"),
	    "'file:///x%00' is invalid on 'linux'" },
	{ TEXT("fi\0le:///a"), RELATIVE },
	{ TEXT("file:///a\0?b"), QUERY },
	{ TEXT("file://a\0b/x"), DOMAIN },
	{ TEXT("file://a[b/x"), DOMAIN },
	{ TEXT("file://a\x01/x"), DOMAIN },
};

static void
test_refused(void **state)
{
	for (size_t i = 0; i < nitems(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		char *copy = exact_copy(row->uri), error[512] = "";
		const struct slice uri = { copy, row->uri.len };
		struct path_uri out;
		struct json_doc doc;
		int r;

		assert_int_equal(json_parse(&doc, "{}", 2), 0);
		r = path_uri_parse(&out, &doc, uri, error, sizeof(error));
		if (r != -EBADMSG || !error_matches(error, row->error))
			fail_msg(
			    "row %zu, %s: %d, %s", i, row->uri.ptr, r, error);
		json_clear(&doc);
		free(copy);
	}
}

/* What an error about a foreign URI shows. */
static void
test_shown_uri(void **state)
{
	static const struct {
		const char *uri, *shown;
	} rows[] = {
		{ "file://host/x", "file://host/x" },
		{ "file:///C:/x", "file:///C:/x" },
		{ " file://host/x\n", "file://host/x" },
		{ "FILE://host/x", "file://host/x" },
		{ "fi\tle://ho\nst/x", "file://host/x" },
		{ "file://HOST/x", "file://host/x" },
		{ "file:\\\\host\\x", "file://host/x" },
		{ "file://host/a/../x", "file://host/x" },
		{ "file:C:/x", "file:///C:/x" },
		{ "file:///C|/x", "file:///C:/x" },
	};

	for (size_t i = 0; i < nitems(rows); i++) {
		const struct slice uri = { rows[i].uri, strlen(rows[i].uri) };
		struct path_uri out;
		struct json_doc doc;
		char error[512];

		assert_int_equal(json_parse(&doc, "{}", 2), 0);
		assert_int_equal(
		    path_uri_parse(&out, &doc, uri, error, sizeof(error)), 0);
		assert_true(out.foreign);
		if (out.uri.len != strlen(rows[i].shown) ||
		    memcmp(out.uri.ptr, rows[i].shown, out.uri.len) != 0)
			fail_msg("row %zu: %.*s, not %s", i, (int)out.uri.len,
			    out.uri.ptr, rows[i].shown);
		json_clear(&doc);
	}
}

/* A path and its URI in a result. */
static const struct write_row {
	const char *path, *uri;
} write_rows[] = {
	{ "/", "file:///" },
	{ "/a", "file:///a" },
	{ "/a/b.c/D-e_f~9", "file:///a/b.c/D-e_f~9" },
	{ "/a b", "file:///a%20b" },
	{ "/\"", "file:///%22" },
	{ "/#", "file:///%23" },
	{ "/%", "file:///%25" },
	{ "/%41", "file:///%2541" },
	{ "/<>", "file:///%3C%3E" },
	{ "/?", "file:///%3F" },
	{ "/`", "file:///%60" },
	{ "/{}", "file:///%7B%7D" },
	{ "/\\", "file:///%5C" },
	{ "/\x01\t\n\x1f\x7f", "file:///%01%09%0A%1F%7F" },
	{ "/\xc3\xbc", "file:///%C3%BC" },
	{ "/\xff\x80", "file:///%FF%80" },
	{ "/[]|^~&=+,;:@!$'()*", "file:///[]|^~&=+,;:@!$'()*" },
	{ "/.../.a", "file:///.../.a" },
	/* a name like a drive, lest it be read as one */
	{ "/c:", "file:///c%3A" },
	{ "/C:/x", "file:///C%3A/x" },
	{ "/c|/x", "file:///c%7C/x" },
	{ "/c:x/d:", "file:///c:x/d:" },
};

static void
test_written(void **state)
{
	for (size_t i = 0; i < nitems(write_rows); i++) {
		const struct write_row *row = &write_rows[i];
		char quoted[128];
		struct json_writer w;
		struct buf b;

		buf_init(&b, 1024);
		path_uri_write(&b, row->path);
		snprintf(quoted, sizeof(quoted), "%s[\"%s\",\"%s\"]", row->uri,
		    row->uri, row->uri);
		json_writer_init(&w, &b);
		json_begin(&w, '[');
		json_path(&w, row->path);
		json_path(&w, row->path);
		json_end(&w, ']');
		buf_put_u8(&b, '\0');
		if (strcmp((char *)b.data, quoted) != 0)
			fail_msg(
			    "row %zu: %s, not %s", i, (char *)b.data, quoted);
		buf_clear(&b);
	}
}

/* Every byte that a name may hold, there and back. */
static void
test_round_trip(void **state)
{
	for (unsigned c = 1; c < 256; c++) {
		const char path[] = { '/', 'a', (char)c, 'b', '/', 'x', (char)c,
			'y', '\0' };
		const char *expect = c == '/' ? "/a/b/x/y" : path;
		struct path_uri out;
		struct json_doc doc;
		char error[512];
		struct slice uri;
		struct buf b;

		buf_init(&b, 1024);
		path_uri_write(&b, path);
		uri = (struct slice){ (const char *)b.data, b.len };
		assert_int_equal(json_parse(&doc, "{}", 2), 0);
		assert_int_equal(
		    path_uri_parse(&out, &doc, uri, error, sizeof(error)), 0);
		if (out.foreign || strcmp(out.path, expect) != 0)
			fail_msg("byte %u: %s", c, out.path);
		json_clear(&doc);
		buf_clear(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_shown_uri),
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
