/* SPDX-License-Identifier: ISC */
/*
 * sandbox_legacy: whatever the older shapes say, the context they become is
 * complete, bounded, and lifts no restriction they did not lift. The input is
 * a preset; when it is JSON, also a policy and a launch configuration.
 */
#include "sandbox_entry.h"
#include "sandbox_legacy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
check_context(const struct sandbox_context *c)
{
	assert(c->nentries <= SANDBOX_LIST_MAX);
	for (size_t i = 0; i < c->nentries; i++)
		check_entry(&c->entries[i]);
	assert(c->nroots == (c->has_cwd ? 1 : 0) && !c->has_home);
	if (c->has_cwd) {
		check_path(&c->cwd);
		assert(!c->cwd.foreign && c->roots[0].path == c->cwd.path);
	}
	assert(c->type == SANDBOX_MANAGED || c->files_unrestricted);
	assert(c->type != SANDBOX_DISABLED || c->network_enabled);
	assert(
	    c->unrestricted == (c->files_unrestricted && c->network_enabled));
}

/* err and what came with it. */
static void
check_result(int err, const struct sandbox_context *c, const char *error)
{
	static const struct sandbox_context strictest;

	if (err == 0) {
		check_context(c);
		return;
	}
	check_error(error, ARGS_ERROR_MAX);
	assert(memcmp(c, &strictest, sizeof(strictest)) == 0);
}

/* The text is gone when the result is looked at. */
static void
run_preset(const uint8_t *data, size_t len)
{
	char error[ARGS_ERROR_MAX], *text = xmalloc(len + 1);
	struct json_doc doc = { 0 };
	struct sandbox_context c;
	int err;

	memcpy(text, data, len);
	memset(error, 'x', sizeof(error));
	memset(&c, 0xa5, sizeof(c));
	err = sandbox_preset_decode(
	    &doc, (struct slice){ text, len }, "/w/p", &c, error);
	free(text);
	check_result(err, &c, error);
	assert(err < 0 || c.type == SANDBOX_MANAGED);
	assert(err < 0 || (c.nentries > 0 && !c.files_unrestricted));
	json_clear(&doc);
}

static void
run_policy(struct json_doc *doc)
{
	const struct json_value *type = json_get(doc->root, "type");
	char error[ARGS_ERROR_MAX];
	struct sandbox_context c;
	int err;

	memset(error, 'x', sizeof(error));
	memset(&c, 0xa5, sizeof(c));
	err = sandbox_policy_decode(doc, doc->root, NULL, &c, error);
	check_result(err, &c, error);
	assert((c.type == SANDBOX_DISABLED) ==
	       (err == 0 && json_is(type, "danger-full-access")));
	assert((c.type == SANDBOX_EXTERNAL) ==
	       (err == 0 && json_is(type, "external-sandbox")));
}

static void
run_launch(struct json_doc *doc)
{
	const struct json_value *mode = json_get(doc->root, "mode");
	struct sandbox_launch launch;
	char error[ARGS_ERROR_MAX];
	struct sandbox_context c;
	int err;

	memset(error, 'x', sizeof(error));
	memset(&c, 0xa5, sizeof(c));
	err = sandbox_launch_decode(doc, doc->root, "/c", &c, &launch, error);
	check_result(err, &c, error);
	assert(
	    (c.type == SANDBOX_DISABLED) == (launch.mode == SANDBOX_MODE_NONE));
	assert((launch.mode == SANDBOX_MODE_REQUIRED) ==
	       (err < 0 || json_is(mode, "require")));
	assert(launch.mode != SANDBOX_MODE_WANTED || json_is(mode, "auto"));
	/* Nothing to enforce is no reason for a sandbox, but this. */
	assert(launch.mode != SANDBOX_MODE_WANTED || !c.unrestricted ||
	       launch.enforce_managed_network);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct json_doc doc;

	run_preset(data, len);
	if (json_parse(&doc, (const char *)data, len) == 0) {
		run_policy(&doc);
		run_launch(&doc);
		assert(!sandbox_is_launch_config(doc.root) ||
		       json_get(doc.root, "permissions") == NULL);
	}
	json_clear(&doc);
	return 0;
}
