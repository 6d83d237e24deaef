/* SPDX-License-Identifier: ISC */
/*
 * methods: which method is permitted in which state of a connection. What is
 * not listed here is for READY connections only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "methods.h"

/* What a connection that watches may ask: it changes nothing. */
static const char *const watching[] = {
	"environment/info",
	"environment/status",
	"process/list",
	"process/read",
	"process/snapshot",
	"process/wait",
	"session/list",
};

static bool
is_listed(const char *name)
{
	for (size_t i = 0; i < nitems(watching); i++)
		if (strcmp(watching[i], name) == 0)
			return true;
	return false;
}

static unsigned
expected(const char *name)
{
	if (strcmp(name, "initialize") == 0)
		return SESSION_NEW;
	return is_listed(name) ? SESSION_READY | SESSION_WATCHING
			       : SESSION_READY;
}

static void
test_every_state(void **state)
{
	static const unsigned states[] = { SESSION_NEW, SESSION_INITIALIZED,
		SESSION_READY, SESSION_WATCHING };

	for (size_t i = 0; i < rpc_methods_count * nitems(states); i++) {
		const struct rpc_method *m = &rpc_methods[i / nitems(states)];
		unsigned when = states[i % nitems(states)];

		if ((m->when & when) != (expected(m->name) & when))
			fail_msg("%s in state %u", m->name, when);
	}
}

/* A name is there once, and is found; every name above is there. */
static void
test_names(void **state)
{
	size_t listed = 0;

	for (size_t i = 0; i < rpc_methods_count; i++) {
		const char *name = rpc_methods[i].name;

		assert_ptr_equal(
		    rpc_method_find((struct slice){ name, strlen(name) }),
		    &rpc_methods[i]);
		assert_null(
		    rpc_method_find((struct slice){ name, strlen(name) - 1 }));
		listed += is_listed(name);
	}
	assert_int_equal(listed, nitems(watching));
	assert_null(rpc_method_find(SLICE("")));
	assert_null(rpc_method_find(SLICE("process/start\0")));
}

/* Who decodes must act, or a helper does. */
static void
test_every_row_is_complete(void **state)
{
	for (size_t i = 0; i < rpc_methods_count; i++) {
		assert_non_null(rpc_methods[i].params);
		if (rpc_methods[i].method == NULL)
			assert_true(
			    rpc_methods[i].family == FAMILY_HTTP
				? rpc_methods[i].helper == HELPER_HTTP
				: rpc_methods[i].helper == HELPER_FILES);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_state),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_every_row_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
