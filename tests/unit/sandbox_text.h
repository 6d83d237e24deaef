/* SPDX-License-Identifier: ISC */
/*
 * For the tests of the older sandbox shapes: contexts in the words of 0.169.0,
 * and what is compared with them.
 */
#pragma once

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

#define WRONG(kind, expected) "invalid type: " kind ", expected " expected
#define NOT_ABSOLUTE	      "writable_roots: expected an absolute path"
#define TYPES                                                                  \
	"expected one of `danger-full-access`, `read-only`, "                  \
	"`external-sandbox`, `workspace-write`"

/* What is refused, and how the message begins. */
struct bad_row {
	const char *text, *error;
};

static inline bool
same_path(const struct path_uri *a, const struct path_uri *b)
{
	return a->foreign == b->foreign &&
	       (a->foreign || strcmp(a->path, b->path) == 0);
}

static inline bool
same_entry(const struct sandbox_entry *a, const struct sandbox_entry *b)
{
	return a->access == b->access && a->kind == b->kind &&
	       (a->kind != SANDBOX_SPECIAL || a->special == b->special) &&
	       (a->kind != SANDBOX_PATH || same_path(&a->path, &b->path)) &&
	       slice_equal(a->text, b->text);
}

static inline bool
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
static inline void
check_same(
    const struct sandbox_context *c, const char *expect, const char *text)
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

static inline void
check_strictest(const struct sandbox_context *c)
{
	static const struct sandbox_context strictest;

	assert_memory_equal(c, &strictest, sizeof(strictest));
}
