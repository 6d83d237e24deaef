/* SPDX-License-Identifier: ISC */
/*
 * launch_text: which command lines the launcher takes, the frames that it
 * composes, as a runner reads them, and the text of its DACLs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"
#include "launch_text.h"

#define ARGS(...)                                                              \
	{                                                                      \
		"execd-launch", __VA_ARGS__, NULL                              \
	}
#define RUNNER "--runner", "C:\\r.exe"
#define INSIDE "--cwd", "C:\\w"

/* --- the command line --------------------------------------------------- */

static const struct row {
	const char *argv[12];
	const char *fault; /* part of the expected error; NULL: there is none */
} rows[] = {
	{ ARGS("--help"), NULL },
	{ ARGS("--version"), NULL },
	{ ARGS(RUNNER, "--frames"), NULL },
	{ ARGS(RUNNER, "--frames", "--"), NULL },
	{ ARGS(RUNNER, "--frames", "--cap-sid", "S-1", "--desktop", "d"),
	    NULL },
	{ ARGS(RUNNER, INSIDE, "--", "c"), NULL },
	{ ARGS("--runner", "d:/r.exe", INSIDE, "--", "--bogus"), NULL },
	{ ARGS(RUNNER, INSIDE, "--timeout-ms", "2147483647", "--", "c"), NULL },
	{ ARGS(RUNNER, "--user", "u", "--password-env", "P", "--frames"),
	    NULL },
	/* what is missing */
	{ { "execd-launch", NULL }, "--runner" },
	{ ARGS(INSIDE, "--", "c"), "--runner" },
	{ ARGS(RUNNER, INSIDE), "--cwd and a command" },
	{ ARGS(RUNNER, INSIDE, "--"), "--cwd and a command" },
	{ ARGS(RUNNER, "--", "c"), "--cwd and a command" },
	{ ARGS(RUNNER, "--cwd"), "--cwd: a value" },
	{ ARGS(RUNNER, "--cwd", ""), "--cwd: a value" },
	{ ARGS(RUNNER, "--user", "u", "--frames"), "--password-env" },
	{ ARGS(RUNNER, "--password-env", "P", "--frames"), "--user" },
	/* what is wrong */
	{ ARGS("--bogus"), "--bogus: not known" },
	{ ARGS(RUNNER, "c"), "c: not known" },
	{ ARGS("--runner", "r.exe", "--frames"), "absolute" },
	{ ARGS("--runner", "C:r.exe", "--frames"), "absolute" },
	{ ARGS("--runner", "\\r.exe", "--frames"), "absolute" },
	{ ARGS("--runner", "C:\\a\" \"b", "--frames"), "absolute" },
	{ ARGS(RUNNER, "--timeout-ms", "0", "--frames"), "--timeout-ms: a" },
	{ ARGS(RUNNER, "--timeout-ms", "-1", "--frames"), "--timeout-ms: a" },
	{ ARGS(RUNNER, "--timeout-ms", "1s", "--frames"), "--timeout-ms: a" },
	{ ARGS(RUNNER, "--timeout-ms", "2147483648"), "--timeout-ms: a" },
	{ ARGS(RUNNER, "--timeout-ms", "99999999999999999999"),
	    "--timeout-ms: a" },
	/* what would have no effect */
	{ ARGS(RUNNER, "--frames", INSIDE), "--frames" },
	{ ARGS(RUNNER, "--frames", "--policy", "read-only"), "--frames" },
	{ ARGS(RUNNER, "--frames", "--timeout-ms", "1"), "--frames" },
	{ ARGS(RUNNER, "--frames", "--", "c"), "--frames" },
};

static void
test_command_lines(void **state)
{
	for (size_t i = 0; i < nitems(rows); i++) {
		char error[LAUNCH_ERROR_MAX];
		struct launch_options o;
		int err = launch_parse(&o, rows[i].argv, error);

		if ((err == 0) != (rows[i].fault == NULL) ||
		    (err < 0 && strstr(error, rows[i].fault) == NULL))
			fail_msg("row %zu: %d %s", i, err, error);
	}
}

static void
test_all_options(void **state)
{
	const char *argv[] = ARGS(RUNNER, INSIDE, "--policy", "p", "--cap-sid",
	    "S-1", "--cap-sid", "S-2", "--network-is-blocked",
	    "--start-timeout-ms", "7", "--desktop", "d", "--", "c", "--cwd");
	char error[LAUNCH_ERROR_MAX];
	struct launch_options o;

	assert_int_equal(launch_parse(&o, argv, error), 0);
	assert_string_equal(o.runner, "C:\\r.exe");
	assert_string_equal(o.cwd, "C:\\w");
	assert_string_equal(o.policy, "p");
	assert_string_equal(o.desktop, "d");
	assert_int_equal(o.sids.count, 2);
	assert_string_equal(o.sids.items[1], "S-2");
	assert_true(o.network_is_blocked && !o.frames && !o.inner);
	assert_int_equal(o.start_timeout_ms, 7);
	assert_int_equal(o.timeout_ms, 0);
	assert_string_equal(o.command[0], "c");
	assert_string_equal(o.command[1], "--cwd");
	assert_null(o.command[2]);
}

static void
test_too_many_sids(void **state)
{
	const char *argv[2 * LAUNCH_LIST_MAX + 8] = ARGS(RUNNER, "--frames");
	char error[LAUNCH_ERROR_MAX];
	struct launch_options o;
	size_t n = 4;

	while (n < 2 * LAUNCH_LIST_MAX + 4) {
		argv[n++] = "--cap-sid";
		argv[n++] = "S-1";
	}
	assert_int_equal(launch_parse(&o, argv, error), 0);
	assert_int_equal(o.sids.count, LAUNCH_LIST_MAX);
	argv[n++] = "--cap-sid";
	argv[n++] = "S-1";
	assert_int_equal(launch_parse(&o, argv, error), -EINVAL);
	assert_non_null(strstr(error, "--cap-sid: a value"));
}

/* --- frames ------------------------------------------------------------- */

static bool
any_path(struct slice path)
{
	return true;
}

/* Reads a frame as a runner does. */
static int
read_back(struct frames_message *m, const struct buf *b, char *error)
{
	struct buf_reader r;
	uint32_t len;

	buf_reader_init(&r, b->data, b->len);
	len = buf_get_u32(&r);
	assert_int_equal(len, r.left);
	return frames_parse(m, any_path, (const char *)r.p, r.left, error);
}

static void
assert_slice(struct slice s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.ptr, text, s.len);
}

static const struct launch_options command = {
	.cwd = "C:\\w \"x\"",
	.desktop = "desk",
	.sids = { { "S-1-2", "S-3" }, 2 },
	.timeout_ms = 70,
	.command = (const char *const[]){ "a b", "\xc3\xa4", "", NULL },
};

static const char *const environment[] = { "=C:=C:\\w", "A=b=c", "none",
	"E=", NULL };

static void
test_spawn(void **state)
{
	char error[ARGS_ERROR_MAX] = "";
	struct frames_message m;
	const struct json_value *v;
	struct buf b;

	buf_init(&b, 1u << 20);
	launch_put_spawn(&b, &command, environment);
	if (read_back(&m, &b, error) < 0)
		fail_msg("%s", error);
	assert_int_equal(m.version, FRAMES_NEW);
	assert_int_equal(m.type, FRAMES_SPAWN_REQUEST);
	assert_int_equal(m.spawn.command->count, 3);
	assert_slice(m.spawn.command->first->text, "a b");
	assert_slice(m.spawn.cwd, command.cwd);
	assert_slice(m.spawn.roots->first->text, command.cwd);
	assert_slice(m.spawn.desktop, "desk");
	assert_int_equal(m.spawn.cap_sids->count, 2);
	assert_true(m.spawn.stdin_open && !m.spawn.tty);
	assert_true(m.spawn.has_timeout);
	assert_int_equal(m.spawn.timeout_ms, 70);
	assert_int_equal(m.spawn.env->count, 2);
	v = json_get(m.spawn.env, "A");
	assert_true(v != NULL && json_is(v, "b=c"));
	v = json_get(m.spawn.env, "E");
	assert_true(v != NULL && json_is(v, ""));
	frames_clear(&m);
	buf_clear(&b);
}

#define READS                                                                  \
	"{\"type\":\"managed\",\"network\":\"restricted\",\"file_system\":"    \
	"{\"type\":\"restricted\",\"entries\":[{\"access\":\"read\",\"path\":" \
	"{\"type\":\"special\",\"value\":{\"kind\":\"root\"}}}"

static void
test_policies(void **state)
{
	static const struct {
		const char *policy, *text;
	} profiles[] = {
		{ NULL, READS "]}}" },
		{ "read-only", READS "]}}" },
		{ "workspace-write",
		    READS ",{\"access\":\"write\",\"path\":{\"type\":\"path\","
			  "\"path\":\"C:\\\\w \\\"x\\\"\"}}]}}" },
		{ "{\"x\":[1]}", "{\"x\":[1]}" },
	};

	for (size_t i = 0; i < nitems(profiles); i++) {
		struct launch_options o = command;
		_cleanup_free_ char *want =
		    xasprintf("\"permission_profile\":%s,\"workspace_roots\"",
			profiles[i].text);
		char error[ARGS_ERROR_MAX] = "";
		struct frames_message m;
		struct buf b;

		o.policy = profiles[i].policy;
		buf_init(&b, 1u << 20);
		launch_put_spawn(&b, &o, environment);
		assert_int_equal(read_back(&m, &b, error), 0);
		frames_clear(&m);
		buf_put_u8(&b, 0);
		if (strstr((char *)b.data + 4, want) == NULL)
			fail_msg("row %zu: %s", i, b.data + 4);
		buf_clear(&b);
	}
}

/* A policy in JSON cannot add what the options did not say. */
static void
test_a_policy_that_goes_on(void **state)
{
	struct launch_options o = command;
	char error[ARGS_ERROR_MAX] = "";
	struct frames_message m;
	struct buf b;

	o.policy = "{},\"cap_sids\":[\"S-9\"]";
	buf_init(&b, 1u << 20);
	launch_put_spawn(&b, &o, environment);
	assert_int_equal(read_back(&m, &b, error), -EBADMSG);
	frames_clear(&m);
	buf_clear(&b);
}

static void
test_input(void **state)
{
	char error[ARGS_ERROR_MAX] = "";
	struct frames_message m;
	struct buf b;

	buf_init(&b, 1u << 20);
	launch_put_input(&b, "a\0b", 3);
	assert_int_equal(read_back(&m, &b, error), 0);
	assert_int_equal(m.type, FRAMES_STDIN);
	assert_int_equal(m.stdin_bytes.len, 3);
	assert_memory_equal(m.stdin_bytes.ptr, "a\0b", 3);
	frames_clear(&m);
	buf_clear(&b);
	launch_put_input(&b, NULL, 0);
	assert_int_equal(read_back(&m, &b, error), 0);
	assert_int_equal(m.type, FRAMES_CLOSE_STDIN);
	frames_clear(&m);
	buf_clear(&b);
}

/* --- DACLs -------------------------------------------------------------- */

static void
test_dacls(void **state)
{
	static const struct launch_list nobody;
	struct buf b;

	buf_init(&b, 4096);
	launch_put_dacl(&b, "GR", &nobody);
	buf_put_u8(&b, 0);
	assert_string_equal((char *)b.data, "D:P(A;;GR;;;OW)");
	buf_clear(&b);
	launch_put_dacl(&b, "GA", &command.sids);
	buf_put_u8(&b, 0);
	assert_string_equal(
	    (char *)b.data, "D:P(A;;GA;;;OW)(A;;GA;;;S-1-2)(A;;GA;;;S-3)");
	buf_clear(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command_lines),
		cmocka_unit_test(test_all_options),
		cmocka_unit_test(test_too_many_sids),
		cmocka_unit_test(test_spawn),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_a_policy_that_goes_on),
		cmocka_unit_test(test_input),
		cmocka_unit_test(test_dacls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
