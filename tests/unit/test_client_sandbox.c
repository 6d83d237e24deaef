/* SPDX-License-Identifier: ISC */
/*
 * sandbox_profile: what a name becomes is what the runner's decoder takes, and
 * grants no more than the name says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "execctl.h"
#include "sandbox_context.h"

struct fixture {
	struct buf text;
	struct json_doc doc;
	struct args args;
	struct sandbox_context context;
};

static void
decode(struct fixture *f, const char *profile, const char *cwd, bool network)
{
	buf_init(&f->text, 65536);
	assert_true(sandbox_profile_write(&f->text, profile, cwd, network));
	assert_false(f->text.failed);
	assert_int_equal(
	    json_parse(&f->doc, (char *)f->text.data, f->text.len), 0);
	args_init(&f->args, &f->doc, f->doc.root, "Test");
	sandbox_context_decode(&f->args, f->doc.root, &f->context);
	assert_int_equal(args_end(&f->args), 0);
	assert_int_equal(f->context.type, SANDBOX_MANAGED);
	assert_false(f->context.unrestricted);
	assert_false(f->context.files_unrestricted);
	assert_string_equal(f->context.cwd.path, cwd);
	assert_int_equal(f->context.nroots, 1);
	assert_string_equal(f->context.roots[0].path, cwd);
}

static void
end(struct fixture *f)
{
	json_clear(&f->doc);
	buf_clear(&f->text);
}

static void
test_read_only(void **state)
{
	struct fixture f;

	decode(&f, "read-only", "/a \xc3\xbc/b", false);
	assert_false(f.context.network_enabled);
	assert_int_equal(f.context.nentries, 1);
	assert_int_equal(f.context.entries[0].access, SANDBOX_READ);
	assert_int_equal(f.context.entries[0].special, SANDBOX_ROOT);
	end(&f);
}

static void
test_workspace_write(void **state)
{
	size_t writable = 0;
	struct fixture f;

	decode(&f, "workspace-write", "/srv", true);
	assert_true(f.context.network_enabled);
	for (size_t i = 0; i < f.context.nentries; i++) {
		const struct sandbox_entry *e = &f.context.entries[i];

		assert_int_equal(e->kind, SANDBOX_SPECIAL);
		if (e->access != SANDBOX_WRITE)
			continue;
		writable++;
		assert_int_not_equal(e->special, SANDBOX_ROOT);
		assert_int_equal(e->text.len, 0);
	}
	assert_int_equal(writable, 3);
	assert_int_equal(f.context.nentries, 8);
	end(&f);
}

static void
test_unknown(void **state)
{
	static const char *const names[] = { "", "none", "read-only ",
		"Read-Only", "danger-full-access" };
	struct buf b;

	buf_init(&b, 100);
	for (size_t i = 0; i < nitems(names); i++)
		assert_false(sandbox_profile_write(&b, names[i], "/", false));
	assert_int_equal(b.len, 0);
	buf_clear(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_workspace_write),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
