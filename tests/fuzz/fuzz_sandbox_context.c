/* SPDX-License-Identifier: ISC */
/*
 * sandbox_context: a context that decodes is complete and asks for no more
 * than its text says. The input is the JSON of a context.
 */
#include "sandbox_entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* 0, or -EBADMSG with a->error checked. */
static int
decode(struct args *a, struct json_doc *doc, struct sandbox_context *c)
{
	*a = (struct args){ .doc = doc };
	memset(c, 0xa5, sizeof(*c));
	sandbox_context_decode(a, doc->root, c);
	if (args_end(a) < 0) {
		check_error(a->error, sizeof(a->error));
		assert(c->type == SANDBOX_MANAGED && c->nentries == 0);
		assert(!c->files_unrestricted && !c->network_enabled);
	}
	return args_end(a);
}

/* Only a profile that says so lifts a restriction. */
static void
check_profile(const struct json_value *root, const struct sandbox_context *c)
{
	const struct json_value *p = json_get(root, "permissions");
	const struct json_value *fs = json_get(p, "file_system");
	bool managed = json_is(json_get(p, "type"), "managed");
	bool disabled = json_is(json_get(p, "type"), "disabled");

	assert(managed == (c->type == SANDBOX_MANAGED));
	assert(disabled == (c->type == SANDBOX_DISABLED));
	assert(c->files_unrestricted ==
	       (!managed || json_is(json_get(fs, "type"), "unrestricted")));
	assert(c->network_enabled ==
	       (disabled || json_is(json_get(p, "network"), "enabled")));
	assert(
	    c->unrestricted == (c->files_unrestricted && c->network_enabled));
	assert(c->files_unrestricted
		   ? c->nentries == 0
		   : c->nentries == json_get(fs, "entries")->count);
}

/* Which of them a command may not have is said in full. */
static void
check_cwd(const struct sandbox_context *c)
{
	char error[ARGS_ERROR_MAX];

	memset(error, 'x', sizeof(error));
	if (sandbox_context_check_cwd(c, error) < 0)
		check_error(error, sizeof(error));
	else
		assert(!c->has_cwd || c->cwd.path != NULL);
}

static void
check_context(const struct json_value *root, const struct sandbox_context *c)
{
	check_profile(root, c);
	assert(c->nentries <= SANDBOX_LIST_MAX);
	assert(c->nroots <= SANDBOX_LIST_MAX);
	for (size_t i = 0; i < c->nentries; i++)
		check_entry(&c->entries[i]);
	for (size_t i = 0; i < c->nroots; i++)
		check_path(&c->roots[i]);
	if (c->has_cwd)
		check_path(&c->cwd);
	if (c->has_home)
		check_path(&c->home);
	check_cwd(c);
}

/* Written out, it decodes to the same answer. */
static void
check_again(const struct json_value *root, const struct args *a,
    const struct sandbox_context *c)
{
	struct sandbox_context again;
	struct args in;
	struct json_doc doc;
	struct buf b;

	json_tree_text(&b, root);
	assert(json_parse(&doc, (const char *)b.data, b.len) == 0);
	assert(decode(&in, &doc, &again) == args_end(a));
	assert(strcmp(in.error, a->error) == 0);
	assert(again.nentries == c->nentries && again.nroots == c->nroots);
	assert(again.unrestricted == c->unrestricted);
	json_clear(&doc);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sandbox_context c;
	struct json_doc doc;
	struct args a;

	if (json_parse(&doc, (const char *)data, len) == 0) {
		if (decode(&a, &doc, &c) == 0)
			check_context(doc.root, &c);
		check_again(doc.root, &a, &c);
	}
	json_clear(&doc);
	return 0;
}
