/* SPDX-License-Identifier: ISC */
/*
 * execd-client.h as programs of libexecd-client.so.1 were compiled with it:
 * sizes, where members are, and the numbers of names. What differs here breaks
 * them. It then gets a new soname, or the functions that take the struct get a
 * second version (client/lib/execd-client.map) that knows the old layout. Names
 * of functions are compared by tests/integration/test_release.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "execd-client.h"
#include "util.h"

/* clang-format off */
#define SIZE(type, was) { #type, sizeof(struct type), was },
#define AT(type, member, was) \
	{ #type "." #member, offsetof(struct type, member), was },
#define VALUE(name, was) { #name, (long long)(name), was },

static const struct {
	const char *name;
	long long is, was;
} rows[] = {
	SIZE(execd_environment, 72)
	AT(execd_environment, name, 0)
	AT(execd_environment, url, 8)
	AT(execd_environment, token, 16)
	AT(execd_environment, ca_file, 24)
	AT(execd_environment, certificate_file, 32)
	AT(execd_environment, key_file, 40)
	AT(execd_environment, connect_timeout_ms, 48)
	AT(execd_environment, initialize_timeout_ms, 52)
	AT(execd_environment, silence_timeout_ms, 56)
	AT(execd_environment, server_key, 64)
	SIZE(execd_options, 128)
	AT(execd_options, url, 0)
	AT(execd_options, token, 8)
	AT(execd_options, ca_file, 16)
	AT(execd_options, certificate_file, 24)
	AT(execd_options, key_file, 32)
	AT(execd_options, server_key, 40)
	AT(execd_options, client_name, 48)
	AT(execd_options, session_id, 56)
	AT(execd_options, watch, 64)
	AT(execd_options, take_over, 65)
	AT(execd_options, connect_timeout_ms, 68)
	AT(execd_options, initialize_timeout_ms, 72)
	AT(execd_options, attached_timeout_ms, 76)
	AT(execd_options, resume_timeout_ms, 80)
	AT(execd_options, silence_timeout_ms, 84)
	AT(execd_options, cookie, 88)
	AT(execd_options, on_state, 96)
	AT(execd_options, on_notification, 104)
	AT(execd_options, on_request, 112)
	AT(execd_options, arg, 120)
	SIZE(execd_answer, 48)
	AT(execd_answer, code, 0)
	AT(execd_answer, message, 8)
	AT(execd_answer, result, 16)
	AT(execd_answer, text, 24)
	AT(execd_answer, text_len, 32)
	AT(execd_answer, repeated, 40)
	SIZE(execd_exit, 16)
	AT(execd_exit, code, 0)
	AT(execd_exit, sandbox_denied, 4)
	AT(execd_exit, timed_out, 5)
	AT(execd_exit, details, 8)
	SIZE(execd_process_events, 56)
	AT(execd_process_events, started, 0)
	AT(execd_process_events, output, 8)
	AT(execd_process_events, gap, 16)
	AT(execd_process_events, caught_up, 24)
	AT(execd_process_events, exited, 32)
	AT(execd_process_events, closed, 40)
	AT(execd_process_events, failed, 48)
	SIZE(execd_start, 96)
	AT(execd_start, argv, 0)
	AT(execd_start, cwd, 8)
	AT(execd_start, env, 16)
	AT(execd_start, inherit, 24)
	AT(execd_start, tty, 28)
	AT(execd_start, pipe_stdin, 29)
	AT(execd_start, rows, 32)
	AT(execd_start, cols, 36)
	AT(execd_start, term, 40)
	AT(execd_start, modes, 48)
	AT(execd_start, modes_len, 56)
	AT(execd_start, timeout_ms, 64)
	AT(execd_start, wait_output, 72)
	AT(execd_start, hold_output, 73)
	AT(execd_start, sandbox, 80)
	AT(execd_start, allow_hosts, 88)
	VALUE(EXECD_IDLE, 0)
	VALUE(EXECD_CONNECTING, 1)
	VALUE(EXECD_READY, 2)
	VALUE(EXECD_RESUMING, 3)
	VALUE(EXECD_OVER, 4)
	VALUE(EXECD_FAILURE_NONE, 0)
	VALUE(EXECD_FAILURE_USAGE, 1)
	VALUE(EXECD_FAILURE_UNREACHABLE, 2)
	VALUE(EXECD_FAILURE_CERTIFICATE, 3)
	VALUE(EXECD_FAILURE_AUTH, 4)
	VALUE(EXECD_FAILURE_PROTOCOL, 5)
	VALUE(EXECD_FAILURE_REFUSED, 6)
	VALUE(EXECD_FAILURE_SESSION, 7)
	VALUE(EXECD_FAILURE_LOST, 8)
	VALUE(EXECD_FAILURE_ATTACHED, 9)
	VALUE(EXECD_FAILURE_TAKEN, 10)
	VALUE(EXECD_REPEAT, 1)
	VALUE(EXECD_STDOUT, 0)
	VALUE(EXECD_STDERR, 1)
	VALUE(EXECD_TERMINAL, 2)
	VALUE(EXECD_INHERIT_CORE, 0)
	VALUE(EXECD_INHERIT_ALL, 1)
	VALUE(EXECD_INHERIT_NONE, 2)
	VALUE(EXECD_POLL_MAX, 2)
	VALUE(EXECD_CODE_LOST, -1)
	VALUE(EXECD_CODE_TOO_LONG, -2)
	VALUE(EXECD_WRITE_MAX, 1048576)
};
/* clang-format on */

static void
test_nothing_moved(void **state)
{
	size_t moved = 0;

	/* The numbers are of machines with pointers and long of 8 bytes. */
	if (sizeof(void *) != 8 || sizeof(long) != 8)
		skip();
	for (size_t i = 0; i < nitems(rows); i++) {
		if (rows[i].is == rows[i].was)
			continue;
		print_error("%s was %lld and is %lld\n", rows[i].name,
		    rows[i].was, rows[i].is);
		moved++;
	}
	assert_int_equal(moved, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
