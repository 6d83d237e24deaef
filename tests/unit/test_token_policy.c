/* SPDX-License-Identifier: ISC */
/*
 * token_policy: what a restricted token cannot enforce is refused, and nothing
 * is enforced less than it was asked.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "token_policy.h"

#define ROOT(access)                                                           \
	"{\"path\":{\"type\":\"special\",\"value\":{\"kind\":\"root\"}},"      \
	"\"access\":\"" access "\"}"
#define PATH(access)                                                              \
	"{\"path\":{\"type\":\"path\",\"path\":\"C:\\\\w\"},\"access\":\"" access \
	"\"}"
#define GLOB                                                                   \
	"{\"path\":{\"type\":\"glob_pattern\",\"pattern\":\"*\"},"             \
	"\"access\":\"read\"}"
#define FILES(entries)                                                         \
	"\"file_system\":{\"type\":\"restricted\",\"entries\":[" entries "]}"
#define PROFILE(network, files)                                                \
	"{\"type\":\"managed\",\"network\":\"" network "\"," files "}"
#define ENABLED(entries) PROFILE("enabled", FILES(entries))

static const struct row {
	const char *preset;  /* version 1; NULL: version 6 */
	const char *profile; /* version 6 */
	bool blocked;
	const char *refused; /* in the reason; NULL: it is run */
	bool unrestricted;
} rows[] = {
	/* version 1 */
	{ .preset = "danger-full-access", .unrestricted = true },
	{ .preset = "{\"type\":\"danger-full-access\"}", .unrestricted = true },
	{ .preset = "read-only", .blocked = true },
	{ .preset = "workspace-write", .blocked = true },
	{ .preset = "read-only", .refused = "the network is restricted" },
	{ .preset = "workspace-write", .refused = "--network-is-blocked" },
	{ .preset = "{\"type\":\"read-only\",\"network_access\":true}" },
	{ .preset = "{\"type\":\"workspace-write\"}", .blocked = true },
	{ .preset = "{\"type\":\"read-only\",\"network_access\":1}",
	    .blocked = true,
	    .refused = "network_access" },
	{ .preset = "{\"type\":\"read-only\",\"access\":{}}",
	    .blocked = true,
	    .refused = "a member that is not known" },
	{ .preset = "external-sandbox", .blocked = true, .refused = "JSON" },
	{ .preset = "{\"type\":\"external-sandbox\"}",
	    .blocked = true,
	    .refused = "type is not known" },
	{ .preset = "{\"type\":7}", .blocked = true, .refused = "type is not" },
	{ .preset = "[]", .blocked = true, .refused = "no object" },
	/* version 6 */
	{ .profile = ENABLED(ROOT("read")) },
	{ .profile = ENABLED(ROOT("read") "," PATH("write")) },
	{ .profile = PROFILE("restricted", FILES(ROOT("read"))),
	    .blocked = true },
	{ .profile = PROFILE("restricted", FILES(ROOT("read"))),
	    .refused = "the network is restricted" },
	{ .profile = "{\"type\":\"disabled\"}",
	    .blocked = true,
	    .refused = "not managed" },
	{ .profile = "{\"type\":\"external\",\"network\":\"enabled\"}",
	    .blocked = true,
	    .refused = "not managed" },
	{ .profile = "{}", .blocked = true, .refused = "not managed" },
	{ .profile = "{\"type\":\"managed\"}",
	    .blocked = true,
	    .refused = "network is not known" },
	{ .profile = "{\"type\":\"managed\",\"network\":\"enabled\"}",
	    .refused = "file_system" },
	{ .profile = PROFILE(
	      "enabled", "\"file_system\":{\"type\":\"unrestricted\"}"),
	    .refused = "file_system" },
	{ .profile = ENABLED(""), .refused = "reading is restricted" },
	{ .profile = ENABLED(PATH("read")), .refused = "reading is restrict" },
	{ .profile = ENABLED(ROOT("read") "," PATH("deny")),
	    .refused = "denies access" },
	{ .profile = ENABLED(ROOT("read") "," PATH("none")),
	    .refused = "denies access" },
	{ .profile = ENABLED(ROOT("read") "," GLOB), .refused = "a pattern" },
	{ .profile = ENABLED(ROOT("write")), .refused = "all be written" },
	{ .profile = ENABLED(ROOT("read") ",7"), .refused = "no object" },
	{ .profile = ENABLED(ROOT("read") ",{}"), .refused = "no path" },
};

static struct json_value *
parse(struct json_doc *doc, const char *text)
{
	assert_int_equal(json_parse(doc, text, strlen(text)), 0);
	return doc->root;
}

static int
decide(const struct row *row, const char *sids, struct token_policy *p,
    char *error)
{
	struct json_doc profile = { 0 }, list;
	struct frames_spawn s = { 0 };
	int err;

	s.cap_sids = parse(&list, sids);
	if (row->profile != NULL)
		s.profile = parse(&profile, row->profile);
	else
		s.policy = (struct slice){ row->preset, strlen(row->preset) };
	err = token_policy_decide(p, &s, row->blocked, error);
	json_clear(&profile);
	json_clear(&list);
	return err;
}

static void
test_policies(void **state)
{
	for (size_t i = 0; i < nitems(rows); i++) {
		char error[ARGS_ERROR_MAX] = "";
		struct token_policy p;
		int err = decide(&rows[i], "[\"S-1-5-21-1\"]", &p, error);

		if (rows[i].refused == NULL && err != 0)
			fail_msg("row %zu: %s", i, error);
		if (rows[i].refused != NULL &&
		    (err != -EACCES || !strstr(error, rows[i].refused)))
			fail_msg("row %zu: %d %s", i, err, error);
		if (err == 0 && p.write_restricted == rows[i].unrestricted)
			fail_msg("row %zu: %d", i, p.write_restricted);
	}
}

/* Without a SID the token would let the command write where everyone may. */
static void
test_no_capability(void **state)
{
	const struct row row = { .preset = "read-only", .blocked = true };
	char error[ARGS_ERROR_MAX];
	struct token_policy p;

	assert_int_equal(decide(&row, "[]", &p, error), -EACCES);
	assert_non_null(strstr(error, "cap_sids is empty"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_no_capability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
