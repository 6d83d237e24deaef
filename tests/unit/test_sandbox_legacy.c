/* SPDX-License-Identifier: ISC */
/*
 * sandbox_legacy: presets and policies, the older shapes of doc/sandbox.md
 * section A8. A row says what a shape converts to in the words of 0.169.0, and
 * both are decoded.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sandbox_text.h"

/* The preset, from memory that is gone when the result is looked at. */
static int
decode_preset(const char *text, const char *cwd, struct json_doc *doc,
    struct sandbox_context *c, char *error)
{
	struct slice s = { text, strlen(text) };
	char *copy = exact_copy(s);
	int err;

	*doc = (struct json_doc){ 0 };
	memset(c, 0x5a, sizeof(*c));
	error[0] = '\0';
	err = sandbox_preset_decode(
	    doc, (struct slice){ copy, s.len }, cwd, c, error);
	memset(copy, 'x', s.len);
	free(copy);
	return err;
}

static int
decode_policy(const char *text, const char *cwd, struct json_doc *doc,
    struct sandbox_context *c, char *error)
{
	if (json_parse(doc, text, strlen(text)) < 0)
		fail_msg("%s: %s", text, doc->error);
	memset(c, 0x5a, sizeof(*c));
	error[0] = '\0';
	return sandbox_policy_decode(doc, doc->root, cwd, c, error);
}

/* Legacy policies in /w/p. */
static const struct policy_row {
	const char *text, *context;
	bool no_preset;
} policy_rows[] = {
	{ POLICY("danger-full-access"), CONTEXT(DISABLED, PLACE), true },
	{ "{\"type\":\"danger-full-access\",\"network_access\":false}",
	    CONTEXT(DISABLED, PLACE), true },
	{ POLICY("external-sandbox"), CONTEXT(EXTERNAL("restricted"), PLACE),
	    true },
	{ "{\"type\":\"external-sandbox\",\"network_access\":\"restricted\"}",
	    CONTEXT(EXTERNAL("restricted"), PLACE), true },
	{ "{\"type\":\"external-sandbox\",\"network_access\":\"enabled\"}",
	    CONTEXT(EXTERNAL("enabled"), PLACE), true },
	{ POLICY("read-only"), CONTEXT(LISTED("restricted", READ_ALL), PLACE),
	    false },
	{ "{\"type\":\"read-only\",\"network_access\":true,\"x\":[]}",
	    CONTEXT(LISTED("enabled", READ_ALL), PLACE), false },
	{ "{\"access\":{\"type\":\"full-access\"},\"type\":\"read-only\"}",
	    CONTEXT(LISTED("restricted", READ_ALL), PLACE), false },
	{ POLICY("workspace-write"),
	    CONTEXT(LISTED("restricted", WORKSPACE), PLACE), false },
	{ WRITE("\"network_access\":true"),
	    CONTEXT(LISTED("enabled", WORKSPACE), PLACE), false },
	{ WRITE("\"exclude_slash_tmp\":true"),
	    CONTEXT(
		LISTED("restricted", READ_ALL WRITE_PROJECT WRITE_TMPDIR KEEP),
		PLACE),
	    false },
	{ WRITE("\"exclude_tmpdir_env_var\":true"),
	    CONTEXT(LISTED("restricted", READ_ALL WRITE_PROJECT WRITE_TMP KEEP),
		PLACE),
	    false },
	{ WRITE("\"exclude_tmpdir_env_var\":true,\"exclude_slash_tmp\":true,"
		"\"network_access\":false,\"writable_roots\":[],"
		"\"read_only_access\":null"),
	    CONTEXT(LISTED("restricted", READ_ALL WRITE_PROJECT KEEP), PLACE),
	    false },
	{ ROOTS("\"/a\""),
	    CONTEXT(LISTED("restricted", WORKSPACE ROOT("/a")), PLACE), false },
	{ ROOTS("\"/a\",\"/b/c\",\"/a\""),
	    CONTEXT(LISTED("restricted",
			WORKSPACE ROOT("/a") ROOT("/b/c") ROOT("/a")),
		PLACE),
	    false },
	{ ROOTS("\"/\""),
	    CONTEXT(LISTED("restricted", WORKSPACE ROOT_AS("/", "")), PLACE),
	    false },
	/* a path is no URI */
	{ ROOTS("\"//a/./b/../c/\""),
	    CONTEXT(LISTED("restricted", WORKSPACE ROOT("/a/c")), PLACE),
	    false },
	{ ROOTS("\"/a%20b?c#d\""),
	    CONTEXT(LISTED("restricted", WORKSPACE ROOT("/a%2520b%3Fc%23d")),
		PLACE),
	    false },
	{ ROOTS("\"/C:/a|b\\\\c\\td \\u00fc\""),
	    CONTEXT(LISTED("restricted",
			WORKSPACE ROOT("/C%3A/a%7Cb%5Cc%09d%20%C3%BC")),
		PLACE),
	    false },
	{ ROOTS("\"/%2e%2e/a\""),
	    CONTEXT(
		LISTED("restricted", WORKSPACE ROOT("/%252e%252e/a")), PLACE),
	    false },
};

#define NOT_A_SANDBOX                                                          \
	"DangerFullAccess and ExternalSandbox are not supported for "          \
	"sandboxing"

/* As a value and as a preset. */
static void
test_policies(void **state)
{
	for (size_t i = 0; i < nitems(policy_rows); i++) {
		const struct policy_row *row = &policy_rows[i];
		char error[ARGS_ERROR_MAX];
		struct sandbox_context c;
		struct json_doc doc;

		if (decode_policy(row->text, "/w/p", &doc, &c, error) < 0)
			fail_msg("%s: %s", row->text, error);
		check_same(&c, row->context, row->text);
		json_clear(&doc);
		if (decode_preset(row->text, "/w//x/../p/", &doc, &c, error) ==
		    0) {
			assert_false(row->no_preset);
			check_same(&c, row->context, row->text);
		} else {
			assert_true(row->no_preset);
			assert_string_equal(error, NOT_A_SANDBOX);
			check_strictest(&c);
		}
		json_clear(&doc);
	}
}

static void
test_presets(void **state)
{
	char error[ARGS_ERROR_MAX];
	struct sandbox_context c;
	struct json_doc doc;

	assert_int_equal(
	    decode_preset("read-only", "/w/p", &doc, &c, error), 0);
	check_same(
	    &c, CONTEXT(LISTED("restricted", READ_ALL), PLACE), "read-only");
	json_clear(&doc);
	assert_int_equal(
	    decode_preset("workspace-write", "/w/p", &doc, &c, error), 0);
	check_same(
	    &c, CONTEXT(LISTED("restricted", WORKSPACE), PLACE), "write");
	json_clear(&doc);
	assert_int_equal(
	    decode_preset("workspace-write", NULL, &doc, &c, error), 0);
	check_same(&c, CONTEXT(LISTED("restricted", WORKSPACE), ""), "no cwd");
	json_clear(&doc);
	assert_int_equal(
	    decode_preset("read-only", "w", &doc, &c, error), -EBADMSG);
	assert_string_equal(error, "cwd: expected an absolute path");
	check_strictest(&c);
	json_clear(&doc);
}

/* What is no preset. */
static const struct bad_row bad_rows[] = {
	{ "danger-full-access", NOT_A_SANDBOX },
	{ "external-sandbox", NOT_A_SANDBOX },
	{ " { \"type\" : \"danger-full-access\" } ", NOT_A_SANDBOX },
	{ "", "EOF while parsing a value at line 1 column 0" },
	{ "read-only ", "expected value at " },
	{ "Read-Only", "expected value at " },
	{ ":read-only", "expected value at " },
	{ POLICY("read-only") "x", "trailing characters at " },
	{ "{\"type\":\"read-only\",\"type\":\"read-only\"}",
	    "duplicate JSON object key `type` at " },
	{ "\"read-only\"",
	    WRONG("string \"read-only\"", "struct SandboxPolicy") },
	{ "null", WRONG("null", "struct SandboxPolicy") },
	{ "[]", WRONG("sequence", "struct SandboxPolicy") },
	{ "{}", "missing field `type`" },
	{ POLICY("x"), "unknown variant `x`, " TYPES },
	{ POLICY("managed"), "unknown variant `managed`, " TYPES },
	{ "{\"type\":7}", WRONG("number", "string or map") },
	/* types of members */
	{ "{\"type\":\"read-only\",\"network_access\":\"enabled\"}",
	    WRONG("string \"enabled\"", "a boolean") },
	{ "{\"type\":\"external-sandbox\",\"network_access\":true}",
	    WRONG("boolean `true`", "string or map") },
	{ "{\"type\":\"external-sandbox\",\"network_access\":\"off\"}",
	    "unknown variant `off`, expected `restricted` or `enabled`" },
	{ WRITE("\"network_access\":null"), WRONG("null", "a boolean") },
	{ WRITE("\"exclude_slash_tmp\":1"), WRONG("number", "a boolean") },
	{ WRITE("\"exclude_tmpdir_env_var\":\"\""),
	    WRONG("string \"\"", "a boolean") },
	{ WRITE("\"writable_roots\":null"), WRONG("null", "a sequence") },
	{ WRITE("\"writable_roots\":\"/a\""),
	    WRONG("string \"/a\"", "a sequence") },
	/* roots */
	{ ROOTS("7"), "writable_roots: expected strings" },
	{ ROOTS("\"\""), NOT_ABSOLUTE },
	{ ROOTS("\"a\""), NOT_ABSOLUTE },
	{ ROOTS("\"~/a\""), NOT_ABSOLUTE },
	{ ROOTS("\"/a\",\"./b\""), NOT_ABSOLUTE },
	{ ROOTS("\"file:///a\""), NOT_ABSOLUTE },
	{ ROOTS("\"/a\\u0000b\""),
	    "writable_roots: 'file:///a%00b' is invalid on 'linux'" },
	/* reading restricted, by versions that could */
	{ "{\"type\":\"read-only\",\"access\":{\"type\":\"restricted\","
	  "\"readable_roots\":[\"/a\"]}}",
	    "access: only `full-access` is supported" },
	{ WRITE("\"read_only_access\":{\"type\":\"restricted\"}"),
	    "read_only_access: only `full-access` is supported" },
};

static void
test_bad_presets(void **state)
{
	for (size_t i = 0; i < nitems(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		char error[ARGS_ERROR_MAX];
		struct sandbox_context c;
		struct json_doc doc;

		if (decode_preset(row->text, "/w/p", &doc, &c, error) !=
		    -EBADMSG)
			fail_msg("%s: no error", row->text);
		if (!error_matches(error, row->error))
			fail_msg("%s: %s", row->text, error);
		check_strictest(&c);
		json_clear(&doc);
	}
}

static void
test_root_limit(void **state)
{
	for (size_t n = SANDBOX_LEGACY_ROOTS_MAX;
	     n <= SANDBOX_LEGACY_ROOTS_MAX + 1; n++) {
		char error[ARGS_ERROR_MAX];
		struct sandbox_context c;
		struct json_doc doc;
		struct buf b;

		buf_init(&b, 1u << 20);
		buf_puts(&b, "{\"type\":\"workspace-write\","
			     "\"writable_roots\":[\"/a\"");
		for (size_t i = 1; i < n; i++)
			buf_puts(&b, ",\"/a\"");
		buf_puts(&b, "]}");
		buf_put_u8(&b, '\0');
		if (n == SANDBOX_LEGACY_ROOTS_MAX) {
			assert_int_equal(decode_policy((char *)b.data, NULL,
					     &doc, &c, error),
			    0);
			assert_in_range(c.nentries, 1, SANDBOX_LIST_MAX);
		} else {
			assert_int_equal(decode_policy((char *)b.data, NULL,
					     &doc, &c, error),
			    -EBADMSG);
			assert_string_equal(
			    error, "writable_roots: 1999 items, limit is 1998");
		}
		json_clear(&doc);
		buf_clear(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_bad_presets),
		cmocka_unit_test(test_root_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
