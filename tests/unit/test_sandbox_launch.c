/* SPDX-License-Identifier: ISC */
/*
 * sandbox_legacy: launch configurations (doc/sandbox.md section A8). A row says
 * what one converts to in the words of 0.169.0, and both are decoded.
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

/* A launch configuration of /w/p. */
#define LAUNCH(mode, members)                                                  \
	"{\"mode\":\"" mode "\",\"sandboxPolicyCwd\":\"/w/p\"" members "}"
#define POLICIES(fs, net)                                                      \
	",\"fileSystemPolicy\":" fs ",\"networkPolicy\":\"" net "\""
#define KIND(kind)	       "{\"kind\":\"" kind "\"}"
#define FILES(entries)	       "{\"kind\":\"restricted\",\"entries\":[" entries "]}"
#define FREE		       KIND("unrestricted")
#define OUTSIDE		       KIND("external-sandbox")
#define WRITE_ALL	       SPECIAL("root", "write")
#define NETWORK(mode, entries) LAUNCH(mode, POLICIES(FILES(entries), "enabled"))
#define NOT_NEEDED	       CONTEXT(DISABLED, "")
#define NEEDED(entries)	       CONTEXT(LISTED("enabled", entries), PLACE)
#define NONE		       SANDBOX_MODE_NONE
#define WANTED		       SANDBOX_MODE_WANTED
#define REQUIRED	       SANDBOX_MODE_REQUIRED

static const struct launch_row {
	const char *text, *context;
	enum sandbox_mode mode;
	bool managed_network;
} launch_rows[] = {
	/* disabled */
	{ "{\"mode\":\"disabled\"}", NOT_NEEDED, NONE, false },
	{ LAUNCH("disabled", POLICIES(FILES(READ_ALL), "restricted")),
	    NOT_NEEDED, NONE, false },
	{ LAUNCH("disabled", ",\"fileSystemPolicy\":null,"
			     "\"networkPolicy\":null"),
	    NOT_NEEDED, NONE, false },
	{ LAUNCH("disabled", ",\"enforceManagedNetwork\":true"), NOT_NEEDED,
	    NONE, true },
	/* require, whatever it is */
	{ LAUNCH("require", POLICIES(FILES(READ_ALL), "restricted")),
	    CONTEXT(LISTED("restricted", READ_ALL), PLACE), REQUIRED, false },
	{ LAUNCH("require", POLICIES(FREE, "enabled")),
	    CONTEXT(MANAGED("enabled", UNRESTRICTED), PLACE), REQUIRED, false },
	{ LAUNCH("require", POLICIES(OUTSIDE, "enabled")),
	    CONTEXT(EXTERNAL("enabled"), PLACE), REQUIRED, false },
	{ LAUNCH(
	      "require", POLICIES(OUTSIDE,
			     "restricted") ",\"enforceManagedNetwork\":true"),
	    CONTEXT(EXTERNAL("restricted"), PLACE), REQUIRED, true },
	/* auto: managed network */
	{ LAUNCH("auto",
	      POLICIES(OUTSIDE, "enabled") ",\"enforceManagedNetwork\":true"),
	    CONTEXT(EXTERNAL("enabled"), PLACE), WANTED, true },
	{ LAUNCH("auto",
	      POLICIES(FREE, "enabled") ",\"enforceManagedNetwork\":false"),
	    NOT_NEEDED, NONE, false },
	/* auto: network restricted */
	{ LAUNCH("auto", POLICIES(FILES(""), "restricted")),
	    CONTEXT(LISTED("restricted", ""), PLACE), WANTED, false },
	{ LAUNCH("auto", POLICIES(FILES(WRITE_ALL), "restricted")),
	    CONTEXT(LISTED("restricted", WRITE_ALL), PLACE), WANTED, false },
	{ LAUNCH("auto", POLICIES(FREE, "restricted")),
	    CONTEXT(MANAGED("restricted", UNRESTRICTED), PLACE), WANTED,
	    false },
	{ LAUNCH("auto", POLICIES(OUTSIDE, "restricted")), NOT_NEEDED, NONE,
	    false },
	/* auto: network enabled, and what full disk write is */
	{ LAUNCH("auto", POLICIES(OUTSIDE, "enabled")), NOT_NEEDED, NONE,
	    false },
	{ LAUNCH("auto", POLICIES(KIND("restricted"), "enabled")), NEEDED(""),
	    WANTED, false },
	{ NETWORK("auto", READ_ALL), NEEDED(READ_ALL), WANTED, false },
	{ NETWORK("auto", WRITE_ALL), NOT_NEEDED, NONE, false },
	{ NETWORK("auto", READ_ALL "," WRITE_ALL), NOT_NEEDED, NONE, false },
	{ NETWORK("auto", WRITE_ALL "," SPECIAL("minimal", "read") "," SPECIAL(
			      "unknown", "deny") "," SPECIAL("tmpdir",
			      "write") "," ENTRY(GLOB("*"), "read")),
	    NOT_NEEDED, NONE, false },
	{ NETWORK("auto", WRITE_ALL "," SPECIAL("root", "none")),
	    NEEDED(WRITE_ALL "," SPECIAL("root", "deny")), WANTED, false },
	{ NETWORK("auto", WRITE_ALL "," ENTRY(GLOB("*"), "deny")),
	    NEEDED(WRITE_ALL "," ENTRY(GLOB("*"), "deny")), WANTED, false },
	{ NETWORK("auto", WRITE_ALL "," SPECIAL("project_roots", "read")),
	    NEEDED(WRITE_ALL "," SPECIAL("project_roots", "read")), WANTED,
	    false },
	{ NETWORK("auto", WRITE_ALL "," ENTRY(PATH("/a"), "read")),
	    NEEDED(WRITE_ALL "," ENTRY(PATH("file:///a"), "read")), WANTED,
	    false },
	{ NETWORK("auto", ENTRY(PATH("/"), "write")),
	    NEEDED(ENTRY(PATH("file:///"), "write")), WANTED, false },
	/* entries name plain paths or URIs */
	{ NETWORK("auto", ENTRY(PATH("/a b/../c%20"), "write") "," ENTRY(
			      PATH("file:///a%20b"), "deny")),
	    NEEDED(ENTRY(PATH("file:///c%2520"), "write") "," ENTRY(
		PATH("file:///a%20b"), "deny")),
	    WANTED, false },
	{ LAUNCH("auto", POLICIES("{\"kind\":\"restricted\",\"entries\":[],"
				  "\"glob_scan_max_depth\":3}",
			     "enabled")),
	    CONTEXT(MANAGED("enabled", "{\"type\":\"restricted\","
				       "\"entries\":[],"
				       "\"glob_scan_max_depth\":3}"),
		PLACE),
	    WANTED, false },
	/* the shadow does not count, nor does what is ignored */
	{ LAUNCH("auto",
	      POLICIES(FILES(READ_ALL), "restricted") ",\"policy\":" POLICY(
		  "danger-full-access") ","
					"\"windowsSandboxLevel\":\"elevated\","
					"\"windowsSandboxPrivateDesktop\":true,"
					"\"useLegacyLandlock\":true,\"x\":1"),
	    CONTEXT(LISTED("restricted", READ_ALL), PLACE), WANTED, false },
	{ LAUNCH("auto",
	      POLICIES(FREE, "enabled") ",\"policy\":" POLICY("read-only")),
	    NOT_NEEDED, NONE, false },
	/* the caller's cwd, when there is none */
	{ "{\"mode\":\"require\"" POLICIES(FREE, "enabled") "}",
	    CONTEXT(MANAGED("enabled", UNRESTRICTED),
		",\"cwd\":\"file:///c\",\"workspaceRoots\":[\"file:///c\"]"),
	    REQUIRED, false },
	{ "{\"mode\":\"require\",\"sandboxPolicyCwd\":null" POLICIES(
	      FREE, "enabled") "}",
	    CONTEXT(MANAGED("enabled", UNRESTRICTED),
		",\"cwd\":\"file:///c\",\"workspaceRoots\":[\"file:///c\"]"),
	    REQUIRED, false },
};

static int
decode_launch(const char *text, struct json_doc *doc, struct sandbox_context *c,
    struct sandbox_launch *launch, char *error)
{
	if (json_parse(doc, text, strlen(text)) < 0)
		fail_msg("%s: %s", text, doc->error);
	memset(c, 0x5a, sizeof(*c));
	memset(launch, 0x5a, sizeof(*launch));
	error[0] = '\0';
	return sandbox_launch_decode(doc, doc->root, "/c", c, launch, error);
}

static void
test_launch(void **state)
{
	for (size_t i = 0; i < nitems(launch_rows); i++) {
		const struct launch_row *row = &launch_rows[i];
		char error[ARGS_ERROR_MAX];
		struct sandbox_launch launch;
		struct sandbox_context c;
		struct json_doc doc;

		if (decode_launch(row->text, &doc, &c, &launch, error) < 0)
			fail_msg("%s: %s", row->text, error);
		check_same(&c, row->context, row->text);
		if (launch.mode != row->mode)
			fail_msg("%s: mode %d", row->text, (int)launch.mode);
		assert_int_equal(
		    launch.enforce_managed_network, row->managed_network);
		assert_true(sandbox_is_launch_config(doc.root));
		json_clear(&doc);
	}
}

static const struct bad_row bad_launch_rows[] = {
	{ "7", WRONG("number", "struct SandboxLaunchConfig") },
	{ "{}", "missing field `mode`" },
	{ "{\"mode\":\"off\"}",
	    "unknown variant `off`, expected one of `disabled`, `auto`, "
	    "`require`" },
	{ "{\"mode\":null}", WRONG("null", "string or map") },
	{ "{\"mode\":\"auto\"}", "missing field `fileSystemPolicy`" },
	{ "{\"mode\":\"auto\",\"policy\":" POLICY("read-only") "}",
	    "missing field `fileSystemPolicy`" },
	{ "{\"mode\":\"require\",\"fileSystemPolicy\":" FREE "}",
	    "missing field `networkPolicy`" },
	{ LAUNCH("auto", POLICIES("null", "enabled")), "invalid type: null, " },
	{ LAUNCH("auto", POLICIES("{}", "enabled")), "missing field `kind`" },
	{ LAUNCH("auto", POLICIES(KIND("x"), "enabled")),
	    "unknown variant `x`, expected one of `restricted`, "
	    "`unrestricted`, `external-sandbox`" },
	{ LAUNCH("auto", POLICIES(FREE, "x")),
	    "unknown variant `x`, expected `restricted` or `enabled`" },
	{ LAUNCH("auto", POLICIES(FILES("7"), "enabled")),
	    WRONG("number", "struct FileSystemSandboxEntry") },
	{ LAUNCH("auto", POLICIES(FILES(SPECIAL("root", "x")), "enabled")),
	    "unknown variant `x`, expected " },
	{ LAUNCH("auto", POLICIES(FILES(ENTRY(PATH("a"), "read")), "enabled")),
	    "invalid URI: relative URL without a base" },
	{ LAUNCH("auto", POLICIES("{\"kind\":\"restricted\","
				  "\"glob_scan_max_depth\":0}",
			     "enabled")),
	    "invalid value: integer `0`, expected a nonzero usize" },
	{ LAUNCH("auto", POLICIES(FREE, "enabled") ",\"policy\":{}"),
	    "missing field `type`" },
	{ LAUNCH("auto", POLICIES(FREE, "enabled") ",\"policy\":" POLICY("x")),
	    "unknown variant `x`, " TYPES },
	{ LAUNCH("disabled", ",\"networkPolicy\":\"x\""),
	    "unknown variant `x`, expected `restricted` or `enabled`" },
	{ LAUNCH("disabled", ",\"fileSystemPolicy\":{}"),
	    "missing field `kind`" },
	{ LAUNCH("disabled", ",\"enforceManagedNetwork\":null"),
	    WRONG("null", "a boolean") },
	{ LAUNCH("disabled", ",\"windowsSandboxLevel\":\"x\""),
	    "unknown variant `x`, expected one of `disabled`, "
	    "`restricted-token`, `elevated`, `mxc`" },
	{ LAUNCH("disabled", ",\"useLegacyLandlock\":1"),
	    WRONG("number", "a boolean") },
	{ "{\"mode\":\"disabled\",\"sandboxPolicyCwd\":\"w\"}",
	    "sandboxPolicyCwd: expected an absolute path" },
	{ "{\"mode\":\"disabled\",\"sandboxPolicyCwd\":\"file:///w\"}",
	    "sandboxPolicyCwd: expected an absolute path" },
};

static void
test_bad_launch(void **state)
{
	for (size_t i = 0; i < nitems(bad_launch_rows); i++) {
		const struct bad_row *row = &bad_launch_rows[i];
		char error[ARGS_ERROR_MAX];
		struct sandbox_launch launch;
		struct sandbox_context c;
		struct json_doc doc;

		if (decode_launch(row->text, &doc, &c, &launch, error) !=
		    -EBADMSG)
			fail_msg("%s: no error", row->text);
		if (!error_matches(error, row->error))
			fail_msg("%s: %s", row->text, error);
		check_strictest(&c);
		assert_int_equal(launch.mode, SANDBOX_MODE_REQUIRED);
		json_clear(&doc);
	}
}

/* Which shape it is. */
static const struct shape_row {
	const char *text;
	bool launch;
} shape_rows[] = {
	{ "{\"mode\":\"auto\"}", true },
	{ "{\"mode\":null}", true },
	{ "{\"mode\":\"auto\",\"permissions\":null}", false },
	{ CONTEXT(DISABLED, ",\"mode\":\"disabled\""), false },
	{ "{}", false },
	{ POLICY("read-only"), false },
	{ "\"mode\"", false },
	{ "[{\"mode\":\"auto\"}]", false },
};

static void
test_shape(void **state)
{
	for (size_t i = 0; i < nitems(shape_rows); i++) {
		const char *text = shape_rows[i].text;
		struct json_doc doc;

		assert_int_equal(json_parse(&doc, text, strlen(text)), 0);
		if (sandbox_is_launch_config(doc.root) != shape_rows[i].launch)
			fail_msg("%s", text);
		json_clear(&doc);
	}
	assert_false(sandbox_is_launch_config(NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch),
		cmocka_unit_test(test_bad_launch),
		cmocka_unit_test(test_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
