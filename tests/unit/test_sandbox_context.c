/* SPDX-License-Identifier: ISC */
/*
 * sandbox_context: doc/sandbox.md sections A3 to A7, member by member.
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

static void
show_path(struct buf *b, const struct path_uri *p)
{
	if (p->foreign) {
		buf_puts(b, "!");
		buf_put(b, p->uri.ptr, p->uri.len);
	} else {
		buf_puts(b, p->path);
	}
}

static void
show_entry(struct buf *b, const struct sandbox_entry *e)
{
	static const char *const accesses[] = { " r=", " w=", " d=" };
	static const char *const specials[] = { ":root", ":minimal", ":cwd",
		":project_roots", ":tmpdir", ":slash_tmp", ":unknown" };

	buf_puts(b, accesses[e->access]);
	if (e->kind == SANDBOX_PATH)
		show_path(b, &e->path);
	if (e->kind == SANDBOX_SPECIAL)
		buf_puts(b, specials[e->special]);
	if (e->kind == SANDBOX_GLOB)
		buf_puts(b, "glob:");
	else if (e->text.len > 0)
		buf_puts(b, "/");
	buf_put(b, e->text.ptr, e->text.len);
}

/* TYPE, "net", "free" (no entry restricts files), "none" (nothing to enforce),
 * the entries, the depth, the places. NUL-terminated; the caller clears b. */
static const char *
show(struct buf *b, const struct sandbox_context *c)
{
	static const char *const types[] = { "managed", "disabled",
		"external" };
	char depth[32];

	buf_init(b, 1u << 20);
	buf_puts(b, types[c->type]);
	buf_puts(b, c->network_enabled ? " net" : "");
	buf_puts(b, c->files_unrestricted ? " free" : "");
	buf_puts(b, c->unrestricted ? " none" : "");
	for (size_t i = 0; i < c->nentries; i++)
		show_entry(b, &c->entries[i]);
	snprintf(depth, sizeof(depth), " depth=%llu",
	    (unsigned long long)c->glob_scan_max_depth);
	buf_puts(b, c->glob_scan_max_depth ? depth : "");
	if (c->has_cwd) {
		buf_puts(b, " cwd=");
		show_path(b, &c->cwd);
	}
	for (size_t i = 0; i < c->nroots; i++) {
		buf_puts(b, " root=");
		show_path(b, &c->roots[i]);
	}
	if (c->has_home) {
		buf_puts(b, " home=");
		show_path(b, &c->home);
	}
	buf_put_u8(b, '\0');
	return (const char *)b->data;
}

#define WORKSPACE                                                              \
	ENTRY(SPECIAL("root"), "read")                                         \
	"," ENTRY(SPECIAL("project_roots"), "write") "," ENTRY(                \
	    SPECIAL("slash_tmp"), "write") "," ENTRY(SPECIAL("tmpdir"),        \
	    "write") ","                                                       \
		     "{\"path\":" SUBPATH("project_roots",                     \
			 "\".git\"") ","                                       \
				     "\"access\":\"read\",\"missing_path_behavior\":\"skip\"}"

static const struct good_row {
	const char *text, *shown;
} good_rows[] = {
	/* profiles */
	{ CONTEXT(DISABLED, ""), "disabled net free none" },
	{ CONTEXT("{\"type\":\"disabled\",\"network\":\"restricted\"}", ""),
	    "disabled net free none" },
	{ CONTEXT("{\"type\":\"external\",\"network\":\"enabled\"}", ""),
	    "external net free none" },
	{ CONTEXT("{\"type\":\"external\",\"network\":\"restricted\"}", ""),
	    "external free" },
	{ CONTEXT(MANAGED("{\"type\":\"unrestricted\"}"), ""), "managed free" },
	{ CONTEXT("{\"type\":\"managed\",\"network\":\"enabled\","
		  "\"file_system\":{\"type\":\"unrestricted\"}}",
	      ""),
	    "managed net free none" },
	{ CONTEXT("{\"type\":\"managed\",\"network\":\"enabled\","
		  "\"file_system\":{\"type\":\"restricted\",\"entries\":[]}}",
	      ""),
	    "managed net" },
	{ CONTEXT(MANAGED("{\"type\":\"unrestricted\",\"entries\":7}"), ""),
	    "managed free" },
	{ CONTEXT(EMPTY, ""), "managed" },
	/* the client's own example */
	{ CONTEXT(LISTED(WORKSPACE, ""),
	      ",\"cwd\":\"file:///work/p\","
	      "\"workspaceRoots\":[\"file:///work/p\"]"),
	    "managed r=:root w=:project_roots w=:slash_tmp w=:tmpdir "
	    "r=:project_roots/.git cwd=/work/p root=/work/p" },
	/* entries */
	{ ENTRIES(ENTRY(PATH("file:///a%20b/../c/"), "read")), "managed r=/c" },
	{ ENTRIES(ENTRY(PATH("file:///a"), "write") "," ENTRY(
	      PATH("file:///a/b"), "deny")),
	    "managed w=/a d=/a/b" },
	{ ENTRIES(ENTRY(PATH("file:///a"), "none")), "managed d=/a" },
	{ ENTRIES(ENTRY(PATH("file:///a"), "read") "," ENTRY(
	      PATH("file:///a"), "read")),
	    "managed r=/a r=/a" },
	{ ENTRIES(ENTRY(PATH("file://host/a"), "read")),
	    "managed r=!file://host/a" },
	{ ENTRIES(ENTRY(PATH("file:///C:/a"), "write")),
	    "managed w=!file:///C:/a" },
	{ ENTRIES(ENTRY(GLOB("**/*.env"), "deny")), "managed d=glob:**/*.env" },
	{ ENTRIES(ENTRY(GLOB("~/x"), "read") "," ENTRY(
	      GLOB("codex-project-roots://a"), "write")),
	    "managed r=glob:~/x w=glob:codex-project-roots://a" },
	{ ENTRIES(ENTRY(GLOB(""), "deny")), "managed d=glob:" },
	{ ENTRIES(ENTRY(SPECIAL("root"), "write")), "managed w=:root" },
	{ ENTRIES(ENTRY(SPECIAL("minimal"), "read")), "managed r=:minimal" },
	{ ENTRIES(ENTRY(SPECIAL("current_working_directory"), "write")),
	    "managed w=:cwd" },
	{ ENTRIES(ENTRY(SPECIAL("tmpdir"), "write")), "managed w=:tmpdir" },
	{ ENTRIES(ENTRY(SPECIAL("slash_tmp"), "deny")),
	    "managed d=:slash_tmp" },
	{ ENTRIES(ENTRY(SUBPATH("project_roots", "\"../a\""), "write")),
	    "managed w=:project_roots/../a" },
	{ ENTRIES(ENTRY(SUBPATH("project_roots", "null"), "write")),
	    "managed w=:project_roots" },
	{ ENTRIES(ENTRY("{\"type\":\"special\",\"value\":{\"kind\":\"unknown\","
			"\"path\":\":new\",\"subpath\":\"s\"}}",
	      "write")),
	    "managed w=:unknown/s" },
	{ ENTRIES("{\"access\":\"read\",\"path\":" PATH(
	      "file:///a") ","
			   "\"missing_path_behavior\":null,\"x\":1}"),
	    "managed r=/a" },
	/* depth of patterns */
	{ CONTEXT(LISTED("", ",\"glob_scan_max_depth\":1"), ""),
	    "managed depth=1" },
	{ CONTEXT(
	      LISTED("", ",\"glob_scan_max_depth\":18446744073709551615"), ""),
	    "managed depth=18446744073709551615" },
	{ CONTEXT(LISTED("", ",\"glob_scan_max_depth\":null"), ""), "managed" },
	/* places, the outer ones */
	{ MEMBERS("\"cwd\":\"file:///a\""), "disabled net free none cwd=/a" },
	{ MEMBERS("\"cwd\":null,\"userHomeDir\":null"),
	    "disabled net free none" },
	{ MEMBERS("\"cwd\":\"file://host/a\""),
	    "disabled net free none cwd=!file://host/a" },
	{ MEMBERS("\"workspaceRoots\":[]"), "disabled net free none" },
	{ MEMBERS("\"workspaceRoots\":[\"file:///a\",\"file:///b/\"]"),
	    "disabled net free none root=/a root=/b" },
	{ MEMBERS("\"userHomeDir\":\"file:///home/u\""),
	    "disabled net free none home=/home/u" },
	/* and those of policyContext: which wins */
	{ MEMBERS("\"cwd\":\"file:///a\",\"workspaceRoots\":[\"file:///a\"],"
		  "\"policyContext\":null"),
	    "disabled net free none cwd=/a root=/a" },
	{ MEMBERS("\"cwd\":\"file:///a\",\"workspaceRoots\":[\"file:///a\"],"
		  "\"policyContext\":{}"),
	    "disabled net free none cwd=/a" },
	{ MEMBERS("\"workspaceRoots\":[\"file:///a\"],"
		  "\"policyContext\":{\"workspaceRoots\":[]}"),
	    "disabled net free none" },
	{ MEMBERS("\"cwd\":\"file:///a\",\"workspaceRoots\":[\"file:///a\"],"
		  "\"policyContext\":{\"cwd\":\"file:///b\","
		  "\"workspaceRoots\":[\"file:///c\",\"file:///d\"]}"),
	    "disabled net free none cwd=/b root=/c root=/d" },
	{ MEMBERS("\"policyContext\":{\"cwd\":null,"
		  "\"workspaceRoots\":[\"file:///c\"]},\"cwd\":\"file:///a\""),
	    "disabled net free none cwd=/a root=/c" },
	{ MEMBERS("\"policyContext\":{\"cwd\":\"file:///b\"},"
		  "\"cwd\":\"file://host/a\""),
	    "disabled net free none cwd=/b" },
	/* checked, without effect */
	{ MEMBERS("\"sandboxOverride\":\"noOverride\""),
	    "disabled net free none" },
	{ CONTEXT(EMPTY,
	      ",\"sandboxOverride\":\"escalatedSandboxWithRestrictions\""),
	    "managed" },
	{ CONTEXT(EMPTY, ",\"sandboxOverride\":\"bypassSandboxFirstAttempt\""),
	    "managed" },
	{ CONTEXT(EMPTY, ",\"windowsSandboxProxySettingsMode\":\"reconcile\""),
	    "managed" },
	{ CONTEXT(EMPTY, ",\"windowsSandboxProxySettingsMode\":\"preserve\""),
	    "managed" },
	{ CONTEXT(EMPTY,
	      ",\"sandboxOverride\":null,\"temporaryDirectories\":null,"
	      "\"windowsSandboxProxySettingsMode\":null"),
	    "managed" },
	{ CONTEXT(EMPTY, ",\"useLegacyLandlock\":true"), "managed" },
	{ CONTEXT(EMPTY, ",\"useLegacyLandlock\":false"), "managed" },
	{ CONTEXT(EMPTY, ",\"temporaryDirectories\":[]"), "managed" },
	{ CONTEXT(EMPTY,
	      ",\"temporaryDirectories\":[\"file:///t\",\"file://h/t\"]"),
	    "managed" },
	{ "{\"permissions\":" EMPTY ","
	  "\"windowsSandboxLevel\":\"restricted-token\"}",
	    "managed" },
	{ "{\"permissions\":" EMPTY ",\"windowsSandboxLevel\":\"elevated\"}",
	    "managed" },
	{ "{\"permissions\":" EMPTY ",\"windowsSandboxLevel\":\"mxc\"}",
	    "managed" },
	/* unknown, also what only looks like a member */
	{ CONTEXT(EMPTY,
	      ",\"windowsSandboxPrivateDesktop\":7,\"sandbox_requested\":1,"
	      "\"mode\":\"disabled\",\"workspace_roots\":[7],\"x\":{}"),
	    "managed" },
};

static void
test_good(void **state)
{
	for (size_t i = 0; i < nitems(good_rows); i++) {
		const struct good_row *row = &good_rows[i];
		struct sandbox_context c;
		struct json_doc doc;
		struct args a;
		struct buf b;
		char *copy;

		if (decode(row->text, &doc, &copy, &a, &c) < 0)
			fail_msg("%s: %s", row->text, a.error);
		if (strcmp(show(&b, &c), row->shown) != 0)
			fail_msg("%s:\n%s", row->text, b.data);
		buf_clear(&b);
		json_clear(&doc);
		free(copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
