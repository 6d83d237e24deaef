/* SPDX-License-Identifier: ISC */
/*
 * sandbox_context: the parse errors of doc/sandbox.md section A9, the limits of
 * its lists, and the cwd that no command may have.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sandbox_context_text.h"

#define WRONG(kind, expected) "invalid type: " kind ", expected " expected
#define STRUCT(kind, name)    WRONG(kind, "struct " name)
#define VARIANT(got)	      "unknown variant `" got "`, expected "
#define RELATIVE	      "invalid URI: relative URL without a base"
#define ROOTS(value)	      MEMBERS("\"workspaceRoots\":" value)
#define POLICY(value)	      MEMBERS("\"policyContext\":" value)
#define PERMISSIONS(value)    CONTEXT(value, "")
#define DEPTH(value)	      CONTEXT(LISTED("", ",\"glob_scan_max_depth\":" value), "")
#define NOT_ZERO	      "invalid value: integer `0`, expected a nonzero usize"
#define KINDS                                                                  \
	"one of `root`, `minimal`, `current_working_directory`, "              \
	"`project_roots`, `tmpdir`, `slash_tmp`, `unknown`"
#define LEVELS	 "one of `disabled`, `restricted-token`, `elevated`, `mxc`"
#define ACCESSES "one of `read`, `write`, `deny`, `none`"

static const struct bad_row {
	const char *text, *error;
} bad_rows[] = {
	/* the whole */
	{ "{}", "missing field `permissions`" },
	{ "{" LEVEL "}", "missing field `permissions`" },
	{ "{\"permissions\":null," LEVEL "}", "invalid type: null, " },
	{ "\"read-only\"",
	    STRUCT("string \"read-only\"", "WireFileSystemSandboxContext") },
	{ "[]", STRUCT("sequence", "WireFileSystemSandboxContext") },
	/* the level */
	{ "{\"permissions\":" DISABLED "}",
	    "missing field `windowsSandboxLevel`" },
	{ "{\"permissions\":" DISABLED ",\"windowsSandboxLevel\":\"none\"}",
	    VARIANT("none") LEVELS },
	{ "{\"permissions\":" DISABLED ",\"windowsSandboxLevel\":\"Disabled\"}",
	    VARIANT("Disabled") LEVELS },
	{ "{\"permissions\":" DISABLED ",\"windowsSandboxLevel\":null}",
	    "invalid type: null, " },
	{ "{\"permissions\":" DISABLED ",\"windows_sandbox_level\":\"mxc\"}",
	    "missing field `windowsSandboxLevel`" },
	/* the profile: older forms among them */
	{ PERMISSIONS("{}"), "missing field `type`" },
	{ PERMISSIONS("{\"network\":{\"enabled\":true},"
		      "\"file_system\":{\"read\":[\"/\"],\"write\":[]}}"),
	    "missing field `type`" },
	{ PERMISSIONS("\"disabled\""),
	    STRUCT("string \"disabled\"", "PermissionProfile") },
	{ PERMISSIONS("{\"type\":\"read-only\"}"),
	    VARIANT("read-only") "one of `managed`, `disabled`, `external`" },
	{ PERMISSIONS("{\"type\":\"danger-full-access\"}"),
	    VARIANT("danger-full-access") "one of `managed`, `disabled`, "
					  "`external`" },
	{ PERMISSIONS("{\"type\":1}"), WRONG("number", "string or map") },
	/* its network */
	{ PERMISSIONS("{\"type\":\"external\"}"), "missing field `network`" },
	{ PERMISSIONS("{\"type\":\"managed\","
		      "\"file_system\":{\"type\":\"unrestricted\"}}"),
	    "missing field `network`" },
	{ PERMISSIONS("{\"type\":\"external\",\"network\":\"off\"}"),
	    VARIANT("off") "`restricted` or `enabled`" },
	{ PERMISSIONS("{\"type\":\"managed\",\"network\":\"off\"}"),
	    VARIANT("off") "`restricted` or `enabled`" },
	{ PERMISSIONS("{\"type\":\"external\",\"network\":true}"),
	    WRONG("boolean `true`", "string or map") },
	{ PERMISSIONS("{\"type\":\"external\",\"network\":null}"),
	    "invalid type: null, " },
	/* its files */
	{ PERMISSIONS("{\"type\":\"managed\",\"network\":\"enabled\"}"),
	    "missing field `file_system`" },
	{ PERMISSIONS(MANAGED("{}")), "missing field `type`" },
	{ PERMISSIONS(MANAGED("null")), "invalid type: null, " },
	{ PERMISSIONS(MANAGED("{\"type\":\"full\"}")),
	    VARIANT("full") "`restricted` or `unrestricted`" },
	{ PERMISSIONS(MANAGED("{\"type\":\"restricted\"}")),
	    "missing field `entries`" },
	{ PERMISSIONS(MANAGED("{\"type\":\"restricted\",\"entries\":null}")),
	    WRONG("null", "a sequence") },
	{ PERMISSIONS(MANAGED("{\"type\":\"restricted\",\"entries\":{}}")),
	    WRONG("map", "a sequence") },
	{ DEPTH("0"), NOT_ZERO },
	{ DEPTH("-1"), "invalid number" },
	{ DEPTH("1.5"), "invalid number" },
	{ DEPTH("18446744073709551616"), "invalid number" },
	{ DEPTH("\"1\""), "invalid type: string \"1\", " },
	/* an entry */
	{ ENTRIES("7"), STRUCT("number", "FileSystemSandboxEntry") },
	{ ENTRIES("{\"access\":\"read\"}"), "missing field `path`" },
	{ ENTRIES("{\"path\":" SPECIAL("root") "}"), "missing field `access`" },
	{ ENTRIES(ENTRY(SPECIAL("root"), "exec")), VARIANT("exec") ACCESSES },
	{ ENTRIES(ENTRY(SPECIAL("root"), "Read")), VARIANT("Read") ACCESSES },
	{ ENTRIES(
	      ENTRY(SPECIAL("root"), "read") "," ENTRY(SPECIAL("root"), "")),
	    VARIANT("") ACCESSES },
	{ ENTRIES("{\"path\":" SPECIAL(
	      "root") ",\"access\":\"read\","
		      "\"missing_path_behavior\":\"create\"}"),
	    VARIANT("create") "`skip`" },
	{ ENTRIES(
	      "{\"path\":" SPECIAL("root") ",\"access\":\"read\","
					   "\"missing_path_behavior\":true}"),
	    "invalid type: boolean `true`, " },
	/* its path */
	{ ENTRIES(ENTRY("\"/tmp\"", "read")),
	    STRUCT("string \"/tmp\"", "FileSystemPath") },
	{ ENTRIES(ENTRY("{}", "read")), "missing field `type`" },
	{ ENTRIES(ENTRY("{\"type\":\"dir\"}", "read")),
	    VARIANT("dir") "one of `path`, `glob_pattern`, `special`" },
	{ ENTRIES(ENTRY("{\"type\":\"path\"}", "read")),
	    "missing field `path`" },
	{ ENTRIES(ENTRY(PATH("/tmp"), "write")), RELATIVE },
	{ ENTRIES(ENTRY(PATH("a/b"), "write")), RELATIVE },
	{ ENTRIES(ENTRY(PATH(""), "write")), RELATIVE },
	{ ENTRIES(ENTRY(PATH("~/x"), "write")), RELATIVE },
	{ ENTRIES(ENTRY(PATH("http://h/x"), "write")),
	    "unsupported path URI scheme `http`" },
	{ ENTRIES(ENTRY(PATH("file:///a%00b"), "write")),
	    "'file:///a%00b' is invalid on 'linux'" },
	{ ENTRIES(ENTRY("{\"type\":\"glob_pattern\"}", "deny")),
	    "missing field `pattern`" },
	{ ENTRIES(ENTRY("{\"type\":\"glob_pattern\",\"pattern\":1}", "deny")),
	    WRONG("number", "a string") },
	{ ENTRIES(ENTRY(GLOB("a\\u0000b"), "deny")),
	    "nul byte found in provided data" },
	{ ENTRIES(ENTRY("{\"type\":\"special\"}", "read")),
	    "missing field `value`" },
	{ ENTRIES(ENTRY("{\"type\":\"special\",\"value\":\"root\"}", "read")),
	    STRUCT("string \"root\"", "FileSystemSpecialPath") },
	{ ENTRIES(ENTRY("{\"type\":\"special\",\"value\":{}}", "read")),
	    "missing field `kind`" },
	{ ENTRIES(ENTRY(SPECIAL("nowhere"), "read")),
	    VARIANT("nowhere") KINDS },
	{ ENTRIES(ENTRY(SPECIAL(":root"), "read")), VARIANT(":root") KINDS },
	{ ENTRIES(ENTRY(SUBPATH("project_roots", "7"), "read")),
	    WRONG("number", "a string") },
	{ ENTRIES(ENTRY(SUBPATH("project_roots", "\".git\\u0000x\""), "read")),
	    "nul byte found in provided data" },
	/* places */
	{ MEMBERS("\"cwd\":\"/tmp\""), RELATIVE },
	{ MEMBERS("\"cwd\":\"\""), RELATIVE },
	{ MEMBERS("\"cwd\":\"http://h/x\""),
	    "unsupported path URI scheme `http`" },
	{ MEMBERS("\"cwd\":7"), WRONG("number", "a string") },
	{ MEMBERS("\"userHomeDir\":\"~\""), RELATIVE },
	{ ROOTS("null"), WRONG("null", "a sequence") },
	{ ROOTS("\"file:///a\""), WRONG("string \"file:///a\"", "a sequence") },
	{ ROOTS("[\"file:///a\",\"b\"]"), RELATIVE },
	{ ROOTS("[null]"), WRONG("null", "a string") },
	{ POLICY("[]"), "invalid type: sequence, expected struct " },
	{ POLICY("{\"cwd\":\"/a\"}"), RELATIVE },
	{ POLICY("{\"workspaceRoots\":null}"), WRONG("null", "a sequence") },
	{ POLICY("{\"workspaceRoots\":[\"/a\"]}"), RELATIVE },
	/* a replaced value is checked all the same */
	{ MEMBERS("\"cwd\":\"/a\",\"policyContext\":{\"cwd\":\"file:///a\"}"),
	    RELATIVE },
	{ MEMBERS("\"workspaceRoots\":[\"/a\"],\"policyContext\":{}"),
	    RELATIVE },
	{ MEMBERS("\"temporaryDirectories\":[\"/tmp\"]"), RELATIVE },
	{ MEMBERS("\"temporaryDirectories\":[7]"),
	    WRONG("number", "a string") },
	{ MEMBERS("\"temporaryDirectories\":\"file:///tmp\""),
	    WRONG("string \"file:///tmp\"", "a sequence") },
	/* without effect, not without rules */
	{ MEMBERS("\"sandboxOverride\":\"x\""),
	    VARIANT("x") "one of `noOverride`, "
			 "`escalatedSandboxWithRestrictions`, "
			 "`bypassSandboxFirstAttempt`" },
	{ MEMBERS("\"sandboxOverride\":true"),
	    WRONG("boolean `true`", "string or map") },
	{ MEMBERS("\"windowsSandboxProxySettingsMode\":\"x\""),
	    VARIANT("x") "`reconcile` or `preserve`" },
	{ MEMBERS("\"useLegacyLandlock\":null"), WRONG("null", "a boolean") },
	{ MEMBERS("\"useLegacyLandlock\":\"true\""),
	    WRONG("string \"true\"", "a boolean") },
};

static void
test_bad(void **state)
{
	static const struct sandbox_context strictest;

	for (size_t i = 0; i < nitems(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		struct sandbox_context c;
		struct json_doc doc;
		struct args a;
		char *copy;

		if (decode(row->text, &doc, &copy, &a, &c) != -EBADMSG)
			fail_msg("%s: no error", row->text);
		if (!error_matches(a.error, row->error))
			fail_msg("%s: %s", row->text, a.error);
		assert_memory_equal(&c, &strictest, sizeof(c));
		json_clear(&doc);
		free(copy);
	}
}

/* before, n times item, after. */
static char *
repeat(const char *before, const char *item, size_t n, const char *after)
{
	size_t size = strlen(item) + 1;
	char *text = xmalloc(strlen(before) + n * size + strlen(after) + 1);
	char *to = text + sprintf(text, "%s", before);

	for (size_t i = 0; i < n; i++)
		to += sprintf(to, "%s%s", i > 0 ? "," : "", item);
	strcpy(to, after);
	return text;
}

static const struct limit_row {
	const char *before, *item, *after, *name;
} limit_rows[] = {
	{ "{" LEVEL ",\"permissions\":{\"type\":\"managed\","
	  "\"network\":\"restricted\",\"file_system\":{\"type\":\"restricted\","
	  "\"entries\":[",
	    ENTRY(SPECIAL("root"), "read"), "]}}}", "entries" },
	{ "{" LEVEL ",\"permissions\":" DISABLED ",\"workspaceRoots\":[",
	    "\"file:a\"", "]}", "workspaceRoots" },
	{ "{" LEVEL ",\"permissions\":" DISABLED ","
	  "\"policyContext\":{\"workspaceRoots\":[",
	    "\"file:a\"", "]}}", "workspaceRoots" },
	{ "{" LEVEL ",\"permissions\":" DISABLED ",\"temporaryDirectories\":[",
	    "\"file:a\"", "]}", "temporaryDirectories" },
};

static void
test_limits(void **state)
{
	for (size_t i = 0; i < 2 * nitems(limit_rows); i++) {
		const struct limit_row *row = &limit_rows[i / 2];
		size_t n = SANDBOX_LIST_MAX + i % 2;
		char *text = repeat(row->before, row->item, n, row->after);
		struct sandbox_context c;
		struct json_doc doc;
		struct args a;
		char *copy, expect[80];
		int err = decode(text, &doc, &copy, &a, &c);

		snprintf(expect, sizeof(expect), "%s: %zu items, limit is %d",
		    row->name, n, SANDBOX_LIST_MAX);
		assert_int_equal(err, i % 2 ? -EBADMSG : 0);
		assert_string_equal(a.error, i % 2 ? expect : "");
		json_clear(&doc);
		free(copy);
		free(text);
	}
}

#define FOREIGN(uri)                                                           \
	"failed to prepare process sandbox: invalid sandbox policy cwd: '" uri \
	"' is invalid on 'linux'"

/* The policy cwd of a command; "" is no error. */
static const struct bad_row cwd_rows[] = {
	{ MEMBERS("\"cwd\":\"file:///C:/x\""),
	    FOREIGN("file:///C:/x") "; path-map can map it" },
	{ MEMBERS("\"cwd\":\"file://host/x\""), FOREIGN("file://host/x") },
	{ POLICY("{\"cwd\":\"file://host/x\"}"), FOREIGN("file://host/x") },
	{ MEMBERS("\"cwd\":\"file://host/x\","
		  "\"policyContext\":{\"cwd\":\"file:///a\"}"),
	    "" },
	{ MEMBERS("\"cwd\":\"file:///x\""), "" },
	{ CONTEXT(DISABLED, ""), "" },
};

static void
test_cwd(void **state)
{
	for (size_t i = 0; i < nitems(cwd_rows); i++) {
		const struct bad_row *row = &cwd_rows[i];
		char *copy, error[ARGS_ERROR_MAX] = "";
		struct sandbox_context c;
		struct json_doc doc;
		struct args a;

		assert_int_equal(decode(row->text, &doc, &copy, &a, &c), 0);
		assert_int_equal(sandbox_context_check_cwd(&c, error),
		    row->error[0] ? -EBADMSG : 0);
		assert_string_equal(error, row->error);
		json_clear(&doc);
		free(copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_cwd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
