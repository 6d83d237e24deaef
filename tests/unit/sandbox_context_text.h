/* SPDX-License-Identifier: ISC */
/*
 * For the tests of sandbox contexts: their parts as text, and decoding as a
 * request does it.
 */
#pragma once

#include "json_text.h"
#include "sandbox_context.h"

/* A context of permissions and further members. */
#define LEVEL "\"windowsSandboxLevel\":\"disabled\""
#define CONTEXT(permissions, members)                                          \
	"{\"permissions\":" permissions "," LEVEL members "}"

#define DISABLED "{\"type\":\"disabled\"}"
#define MANAGED(fs)                                                            \
	"{\"type\":\"managed\",\"network\":\"restricted\",\"file_system\":" fs \
	"}"
#define LISTED(entries, members)                                               \
	MANAGED(                                                               \
	    "{\"type\":\"restricted\",\"entries\":[" entries "]" members "}")
#define ENTRY(path, access) "{\"path\":" path ",\"access\":\"" access "\"}"
#define PATH(uri)	    "{\"type\":\"path\",\"path\":\"" uri "\"}"
#define GLOB(pattern)	    "{\"type\":\"glob_pattern\",\"pattern\":\"" pattern "\"}"
#define SPECIAL(kind)	    "{\"type\":\"special\",\"value\":{\"kind\":\"" kind "\"}}"
#define SUBPATH(kind, sub)                                                     \
	"{\"type\":\"special\",\"value\":{\"kind\":\"" kind                    \
	"\",\"subpath\":" sub "}}"
#define ENTRIES(entries) CONTEXT(LISTED(entries, ""), "")
#define MEMBERS(members) CONTEXT(DISABLED, "," members)
#define EMPTY		 LISTED("", "")

/* As a request does it; end with json_clear() and free(). */
static inline int
decode(const char *text, struct json_doc *doc, char **copy, struct args *a,
    struct sandbox_context *c)
{
	struct slice s = { text, strlen(text) };

	*copy = exact_copy(s);
	if (json_parse(doc, *copy, s.len) < 0)
		fail_msg("%s: %s", text, doc->error);
	*a = (struct args){ .doc = doc };
	/* What is not set must be seen. */
	memset(c, 0x5a, sizeof(*c));
	sandbox_context_decode(a, doc->root, c);
	return args_end(a);
}
