/*
 * sandbox_legacy: the older shapes of SANDBOX.md section A8. A row says what
 * a shape converts to in the words of 0.169.0, and both are decoded.
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
#include "sandbox_legacy.h"

/* What is expected, as a context. */
#define CONTEXT(permissions, members)                                          \
	"{\"permissions\":" permissions                                        \
	",\"windowsSandboxLevel\":\"disabled\"" members "}"
#define PLACE	      ",\"cwd\":\"file:///w/p\",\"workspaceRoots\":[\"file:///w/p\"]"
#define DISABLED      "{\"type\":\"disabled\"}"
#define EXTERNAL(net) "{\"type\":\"external\",\"network\":\"" net "\"}"
#define MANAGED(net, fs)                                                       \
	"{\"type\":\"managed\",\"network\":\"" net "\",\"file_system\":" fs "}"
#define UNRESTRICTED "{\"type\":\"unrestricted\"}"
#define LISTED(net, entries)                                                   \
	MANAGED(net, "{\"type\":\"restricted\",\"entries\":[" entries "]}")

#define ENTRY(path, access) "{\"path\":" path ",\"access\":\"" access "\"}"
#define PATH(text)	    "{\"type\":\"path\",\"path\":\"" text "\"}"
#define GLOB(text)	    "{\"type\":\"glob_pattern\",\"pattern\":\"" text "\"}"
#define SPECIAL(kind, access)                                                  \
	ENTRY("{\"type\":\"special\",\"value\":{\"kind\":\"" kind "\"}}",      \
	    access)
#define PROTECTED(name)                                                        \
	"," ENTRY("{\"type\":\"special\",\"value\":{"                          \
		  "\"kind\":\"project_roots\",\"subpath\":\"" name "\"}}",     \
	    "read")
#define READ_ALL      SPECIAL("root", "read")
#define WRITE_PROJECT "," SPECIAL("project_roots", "write")
#define WRITE_TMP     "," SPECIAL("slash_tmp", "write")
#define WRITE_TMPDIR  "," SPECIAL("tmpdir", "write")
#define KEEP                                                                   \
	PROTECTED(".git")                                                      \
	PROTECTED(".agents") PROTECTED(".codex") PROTECTED(".aws")
#define WORKSPACE	  READ_ALL WRITE_PROJECT WRITE_TMP WRITE_TMPDIR KEEP
#define BELOW(path, name) "," ENTRY(PATH("file://" path "/" name), "read")
#define ROOT_AS(uri, path)                                                     \
	"," ENTRY(PATH("file://" uri), "write") BELOW(path, ".git")            \
	    BELOW(path, ".agents") BELOW(path, ".codex") BELOW(path, ".aws")
#define ROOT(path) ROOT_AS(path, path)

#define POLICY(type)  "{\"type\":\"" type "\"}"
#define WRITE(member) "{\"type\":\"workspace-write\"," member "}"
#define ROOTS(paths)  WRITE("\"writable_roots\":[" paths "]")

static bool
same_path(const struct path_uri *a, const struct path_uri *b)
{
	return a->foreign == b->foreign &&
	       (a->foreign || strcmp(a->path, b->path) == 0);
}

static bool
same_entry(const struct sandbox_entry *a, const struct sandbox_entry *b)
{
	return a->access == b->access && a->kind == b->kind &&
	       (a->kind != SANDBOX_SPECIAL || a->special == b->special) &&
	       (a->kind != SANDBOX_PATH || same_path(&a->path, &b->path)) &&
	       slice_equal(a->text, b->text);
}

static bool
same(const struct sandbox_context *a, const struct sandbox_context *b)
{
	if (a->type != b->type || a->network_enabled != b->network_enabled ||
	    a->files_unrestricted != b->files_unrestricted ||
	    a->unrestricted != b->unrestricted || a->nentries != b->nentries ||
	    a->glob_scan_max_depth != b->glob_scan_max_depth ||
	    a->has_cwd != b->has_cwd || a->nroots != b->nroots ||
	    a->has_home != b->has_home)
		return false;
	for (size_t i = 0; i < a->nentries; i++)
		if (!same_entry(&a->entries[i], &b->entries[i]))
			return false;
	for (size_t i = 0; i < a->nroots; i++)
		if (!same_path(&a->roots[i], &b->roots[i]))
			return false;
	return !a->has_cwd || same_path(&a->cwd, &b->cwd);
}

/* Fails unless c is the context of that text. */
static void
check(const struct sandbox_context *c, const char *expect, const char *text)
{
	struct sandbox_context wanted;
	struct json_doc doc;
	struct args a;

	if (json_parse(&doc, expect, strlen(expect)) < 0)
		fail_msg("%s: %s", expect, doc.error);
	a = (struct args){ .doc = &doc };
	sandbox_context_decode(&a, doc.root, &wanted);
	if (args_end(&a) < 0)
		fail_msg("%s: %s", expect, a.error);
	if (!same(c, &wanted))
		fail_msg("%s is not %s", text, expect);
	json_clear(&doc);
}

static void
check_strictest(const struct sandbox_context *c)
{
	static const struct sandbox_context strictest;

	assert_memory_equal(c, &strictest, sizeof(strictest));
}

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
		check(&c, row->context, row->text);
		json_clear(&doc);
		if (decode_preset(row->text, "/w//x/../p/", &doc, &c, error) ==
		    0) {
			assert_false(row->no_preset);
			check(&c, row->context, row->text);
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
	check(&c, CONTEXT(LISTED("restricted", READ_ALL), PLACE), "read-only");
	json_clear(&doc);
	assert_int_equal(
	    decode_preset("workspace-write", "/w/p", &doc, &c, error), 0);
	check(&c, CONTEXT(LISTED("restricted", WORKSPACE), PLACE), "write");
	json_clear(&doc);
	assert_int_equal(
	    decode_preset("workspace-write", NULL, &doc, &c, error), 0);
	check(&c, CONTEXT(LISTED("restricted", WORKSPACE), ""), "no cwd");
	json_clear(&doc);
	assert_int_equal(
	    decode_preset("read-only", "w", &doc, &c, error), -EBADMSG);
	assert_string_equal(error, "cwd: expected an absolute path");
	check_strictest(&c);
	json_clear(&doc);
}

#define WRONG(kind, expected) "invalid type: " kind ", expected " expected
#define NOT_ABSOLUTE	      "writable_roots: expected an absolute path"
#define TYPES                                                                  \
	"expected one of `danger-full-access`, `read-only`, "                  \
	"`external-sandbox`, `workspace-write`"

/* What is no preset. */
static const struct bad_row {
	const char *text, *error;
} bad_rows[] = {
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
		check(&c, row->context, row->text);
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
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_bad_presets),
		cmocka_unit_test(test_root_limit),
		cmocka_unit_test(test_launch),
		cmocka_unit_test(test_bad_launch),
		cmocka_unit_test(test_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
