/* SPDX-License-Identifier: ISC */
/*
 * frames: the messages of doc/protocol.md section 18, both directions.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"
#include "json_text.h"

#define MESSAGE(type, payload)                                                 \
	"{\"version\":1,\"type\":\"" type "\",\"payload\":" payload "}"
#define SPAWN(members) MESSAGE("spawn_request", "{" members "}")
#define COMMAND	       "\"command\":[\"a\",\"b c\"],"
#define CWD	       "\"cwd\":\"/tmp\","
#define ENV_ALONE      "\"env\":{\"A\":\"1\",\"B\":\"\"}"
#define POLICY	       ",\"policy_json_or_preset\":\"read-only\""
#define ENV	       ENV_ALONE POLICY
#define REQUIRED       COMMAND CWD ENV
/* Version 6. */
#define NEW(type, payload)                                                     \
	"{\"version\":6,\"type\":\"" type "\",\"payload\":" payload "}"
#define NEW_SPAWN(members)    NEW("spawn_request", "{" members "}")
#define PROFILE		      ",\"permission_profile\":{\"type\":\"managed\"}"
#define ROOTS		      ",\"workspace_roots\":[\"/w\"]"
#define SIDS		      ",\"cap_sids\":[\"S-1-5-21-1\"]"
#define DESKTOP		      ",\"private_desktop_name\":\"D\""
#define NEW_REQUIRED	      COMMAND CWD ENV_ALONE PROFILE ROOTS SIDS DESKTOP
#define WRONG(kind, expected) "invalid type: " kind ", expected " expected

static bool
is_absolute(struct slice path)
{
	return path.len > 0 && path.ptr[0] == '/';
}

/* What comes out of a spawn_request. */
static const struct spawn_row {
	const char *text, *command, *cwd, *env, *policy;
	bool has_timeout, tty, stdin_open;
	uint64_t timeout_ms;
	const char *policy_cwd; /* NULL: "" */
} spawn_rows[] = {
	/* everything the parent writes */
	{ SPAWN(REQUIRED ","
			 "\"sandbox_policy_cwd\":\"/tmp\","
			 "\"codex_home\":\"/x\",\"real_codex_home\":\"/y\","
			 "\"cap_sids\":[\"S-1\"],\"timeout_ms\":5000,"
			 "\"tty\":true,\"stdin_open\":true"),
	    "[\"a\",\"b c\"]", "/tmp", "{\"A\":\"1\",\"B\":\"\"}", "read-only",
	    true, true, true, 5000, "/tmp" },
	/* the least */
	{ SPAWN(REQUIRED), "[\"a\",\"b c\"]", "/tmp",
	    "{\"A\":\"1\",\"B\":\"\"}", "read-only", false, false, false, 0,
	    NULL },
	{ SPAWN("\"env\":{},\"command\":[\"\"],\"cwd\":\"/\"" POLICY), "[\"\"]",
	    "/", "{}", "read-only", false, false, false, 0, NULL },
	/* values at their limits */
	{ SPAWN(REQUIRED ",\"timeout_ms\":null"), "[\"a\",\"b c\"]", "/tmp",
	    "{\"A\":\"1\",\"B\":\"\"}", "read-only", false, false, false, 0,
	    NULL },
	{ SPAWN(REQUIRED ",\"timeout_ms\":0,\"tty\":true"), "[\"a\",\"b c\"]",
	    "/tmp", "{\"A\":\"1\",\"B\":\"\"}", "read-only", true, true, false,
	    0, NULL },
	{ SPAWN(REQUIRED ",\"timeout_ms\":18446744073709551615,"
			 "\"stdin_open\":true,\"tty\":false"),
	    "[\"a\",\"b c\"]", "/tmp", "{\"A\":\"1\",\"B\":\"\"}", "read-only",
	    true, false, true, UINT64_MAX, NULL },
	/* what is unknown is ignored, on every level */
	{ "{\"x\":[],\"payload\":{\"y\":{}," REQUIRED
	  "},\"type\":\"spawn_request\",\"z\":null,\"version\":1}",
	    "[\"a\",\"b c\"]", "/tmp", "{\"A\":\"1\",\"B\":\"\"}", "read-only",
	    false, false, false, 0, NULL },
	/* escapes; a plain path is taken as it is */
	{ SPAWN("\"command\":[\"\\u0061\\n\"],\"cwd\":\"/a%20b/../c\","
		"\"env\":{\"\\u00fc\":\"=\"}" POLICY),
	    "[\"a\\n\"]", "/a%20b/../c", "{\"\xc3\xbc\":\"=\"}", "read-only",
	    false, false, false, 0, NULL },
	/* where a policy has its roots: beside the command's cwd */
	{ SPAWN(REQUIRED ",\"sandbox_policy_cwd\":null"), "[\"a\",\"b c\"]",
	    "/tmp", "{\"A\":\"1\",\"B\":\"\"}", "read-only", false, false,
	    false, 0, NULL },
	{ SPAWN(REQUIRED ",\"sandbox_policy_cwd\":\"/w/../p\""),
	    "[\"a\",\"b c\"]", "/tmp", "{\"A\":\"1\",\"B\":\"\"}", "read-only",
	    false, false, false, 0, "/w/../p" },
};

static bool
shown_as(const struct json_value *v, const char *expect)
{
	struct json_value copy = *v;
	struct buf b;
	bool same;

	copy.key = (struct slice){ NULL, 0 };
	copy.next = NULL;
	same = strcmp(show_tree(&b, &copy), expect) == 0;
	buf_clear(&b);
	return same;
}

static bool
is_text(struct slice s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
}

static bool
spawn_is(const struct frames_spawn *s, const struct spawn_row *row)
{
	return shown_as(s->command, row->command) &&
	       is_text(s->cwd, row->cwd) && shown_as(s->env, row->env) &&
	       is_text(s->policy, row->policy) &&
	       is_text(s->policy_cwd, row->policy_cwd ? row->policy_cwd : "") &&
	       s->has_timeout == row->has_timeout &&
	       s->timeout_ms == row->timeout_ms && s->tty == row->tty &&
	       s->stdin_open == row->stdin_open;
}

static void
test_spawn(void **state)
{
	for (size_t i = 0; i < nitems(spawn_rows); i++) {
		const char *text = spawn_rows[i].text;
		size_t len = strlen(text);
		char *copy = exact_copy((struct slice){ text, len });
		struct frames_message m;
		char error[ARGS_ERROR_MAX];

		if (frames_parse(&m, is_absolute, copy, len, error) != 0)
			fail_msg("row %zu, %s: %s", i, text, error);
		assert_int_equal(m.type, FRAMES_SPAWN_REQUEST);
		if (!spawn_is(&m.spawn, &spawn_rows[i]))
			fail_msg("row %zu, %s: other values", i, text);
		frames_clear(&m);
		free(copy);
	}
}

/* stdin and terminate. */
static const struct other_row {
	const char *text;
	enum frames_type type;
	struct slice bytes;
} other_rows[] = {
	{ MESSAGE("stdin", "{\"data_b64\":\"Zm9vYmFy\"}"), FRAMES_STDIN,
	    { "foobar", 6 } },
	{ MESSAGE("stdin", "{\"data_b64\":\"\"}"), FRAMES_STDIN, { "", 0 } },
	{ MESSAGE("stdin", "{\"data_b64\":\"AP8=\",\"x\":1}"), FRAMES_STDIN,
	    { "\0\xff", 2 } },
	{ MESSAGE("stdin", "{\"data_b64\":\"\\u005ag==\"}"), FRAMES_STDIN,
	    { "f", 1 } },
	{ MESSAGE("terminate", "{}"), FRAMES_TERMINATE, { "", 0 } },
	{ MESSAGE("terminate", "{\"data_b64\":7,\"command\":[]}"),
	    FRAMES_TERMINATE, { "", 0 } },
};

static void
test_stdin_and_terminate(void **state)
{
	for (size_t i = 0; i < nitems(other_rows); i++) {
		const struct other_row *row = &other_rows[i];
		struct frames_message m;
		char error[ARGS_ERROR_MAX];

		if (frames_parse(
			&m, is_absolute, row->text, strlen(row->text), error))
			fail_msg("%s: %s", row->text, error);
		if (m.type != row->type ||
		    !slice_equal(m.stdin_bytes, row->bytes))
			fail_msg("%s: type %d, %zu bytes", row->text,
			    (int)m.type, m.stdin_bytes.len);
		frames_clear(&m);
	}
}

#define TYPES                                                                  \
	"expected one of `spawn_request`, `stdin`, `terminate`, "              \
	"`close_stdin`, `resize`"

static const struct bad_row {
	const char *text, *error;
} bad_rows[] = {
	/* no message */
	{ "", "EOF while parsing a value at line 1 column 0" },
	{ "{", "EOF " },
	{ MESSAGE("terminate", "{}") "x", "trailing characters at " },
	{ "{\"version\":1,\"version\":1}",
	    "duplicate JSON object key `version` at line 1 column 22" },
	{ "[]", WRONG("sequence", "struct FramedMessage") },
	{ "null", WRONG("null", "struct FramedMessage") },
	{ "\"x\"", WRONG("string \"x\"", "struct FramedMessage") },
	/* version */
	{ "{\"type\":\"terminate\",\"payload\":{}}",
	    "missing field `version`" },
	{ "{\"version\":null,\"type\":\"terminate\",\"payload\":{}}",
	    WRONG("null", "u64") },
	{ "{\"version\":\"1\",\"type\":\"terminate\",\"payload\":{}}",
	    WRONG("string \"1\"", "u64") },
	{ "{\"version\":1.5,\"type\":\"terminate\",\"payload\":{}}",
	    "invalid number" },
	{ "{\"version\":-1,\"type\":\"terminate\",\"payload\":{}}",
	    "invalid number" },
	{ "{\"version\":0,\"type\":\"terminate\",\"payload\":{}}",
	    "unsupported version 0, expected 1 or 6" },
	{ "{\"version\":2,\"type\":\"terminate\",\"payload\":{}}",
	    "unsupported version 2, expected 1 or 6" },
	{ "{\"version\":18446744073709551615,\"type\":\"stdin\",\"payload\":{}}",
	    "unsupported version 18446744073709551615, expected 1 or 6" },
	/* type; what the runner says is not for the runner */
	{ "{\"version\":1,\"payload\":{}}", "missing field `type`" },
	{ "{\"version\":1,\"type\":1,\"payload\":{}}",
	    WRONG("number", "string or map") },
	{ MESSAGE("x", "{}"), "unknown variant `x`, " TYPES },
	{ MESSAGE("", "{}"), "unknown variant ``, " TYPES },
	{ MESSAGE("Stdin", "{}"), "unknown variant `Stdin`, " TYPES },
	{ MESSAGE("output", "{}"), "unknown variant `output`, " TYPES },
	{ MESSAGE("exit", "{}"), "unknown variant `exit`, " TYPES },
	{ MESSAGE("spawn_ready", "{}"),
	    "unknown variant `spawn_ready`, " TYPES },
	/* payload */
	{ "{\"version\":1,\"type\":\"terminate\"}", "missing field `payload`" },
	{ MESSAGE("terminate", "null"), "invalid type: null, expected " },
	{ MESSAGE("terminate", "[]"), "invalid type: sequence, expected " },
	{ MESSAGE("stdin", "\"x\""), "invalid type: string \"x\", expected " },
	/* stdin */
	{ MESSAGE("stdin", "{}"), "missing field `data_b64`" },
	{ MESSAGE("stdin", "{\"data_b64\":null}"), WRONG("null", "a string") },
	{ MESSAGE("stdin", "{\"data_b64\":[1]}"),
	    WRONG("sequence", "a string") },
	{ MESSAGE("stdin", "{\"data_b64\":\"!!!!\"}"),
	    "Invalid symbol 33, offset 0." },
	{ MESSAGE("stdin", "{\"data_b64\":\"Zg\"}"), "Invalid padding" },
	{ MESSAGE("stdin", "{\"data_b64\":\"Zml=\"}"),
	    "Invalid last symbol 108, offset 2." },
	/* spawn_request: what is missing */
	{ SPAWN(""), "missing field `command`" },
	{ SPAWN(CWD ENV), "missing field `command`" },
	{ SPAWN(COMMAND ENV), "missing field `cwd`" },
	{ SPAWN(COMMAND "\"cwd\":\"/\""), "missing field `env`" },
	/* and what is of another type */
	{ SPAWN("\"command\":\"a\"," CWD ENV),
	    WRONG("string \"a\"", "a sequence") },
	{ SPAWN("\"command\":null," CWD ENV), WRONG("null", "a sequence") },
	{ SPAWN("\"command\":[\"a\",7]," CWD ENV),
	    WRONG("number", "a string") },
	{ SPAWN("\"command\":[null]," CWD ENV), WRONG("null", "a string") },
	{ SPAWN(COMMAND "\"cwd\":7," ENV), WRONG("number", "a string") },
	{ SPAWN(COMMAND CWD "\"env\":[]"), WRONG("sequence", "a map") },
	{ SPAWN(COMMAND CWD "\"env\":null"), WRONG("null", "a map") },
	{ SPAWN(COMMAND CWD "\"env\":{\"A\":true}"),
	    WRONG("boolean `true`", "a string") },
	{ SPAWN(REQUIRED ",\"tty\":1"), WRONG("number", "a boolean") },
	{ SPAWN(REQUIRED ",\"tty\":null"), WRONG("null", "a boolean") },
	{ SPAWN(REQUIRED ",\"stdin_open\":null"), WRONG("null", "a boolean") },
	{ SPAWN(REQUIRED ",\"stdin_open\":\"\""),
	    WRONG("string \"\"", "a boolean") },
	{ SPAWN(REQUIRED ",\"timeout_ms\":\"5\""),
	    WRONG("string \"5\"", "u64") },
	{ SPAWN(REQUIRED ",\"timeout_ms\":-1"), "invalid number" },
	{ SPAWN(REQUIRED ",\"timeout_ms\":1.5"), "invalid number" },
	{ SPAWN(REQUIRED ",\"timeout_ms\":18446744073709551616"),
	    "invalid number" },
	/* a policy that is none is an error, never "no sandbox" */
	{ SPAWN(COMMAND CWD ENV_ALONE),
	    "missing field `policy_json_or_preset`" },
	{ SPAWN(COMMAND CWD ENV_ALONE ",\"permission_profile\":{}"),
	    "missing field `policy_json_or_preset`" },
	{ SPAWN(COMMAND CWD ENV_ALONE ",\"policy_json_or_preset\":null"),
	    WRONG("null", "a string") },
	{ SPAWN(COMMAND CWD ENV_ALONE ",\"policy_json_or_preset\":{}"),
	    WRONG("map", "a string") },
	{ SPAWN(COMMAND CWD ENV_ALONE ",\"policy_json_or_preset\":\"\""),
	    "policy_json_or_preset must not be empty" },
	/* values */
	{ SPAWN("\"command\":[]," CWD ENV), "command must not be empty" },
	{ SPAWN(COMMAND "\"cwd\":\"\"," ENV),
	    "cwd: expected an absolute path" },
	{ SPAWN(COMMAND "\"cwd\":\"tmp\"," ENV),
	    "cwd: expected an absolute path" },
	{ SPAWN(COMMAND "\"cwd\":\"file:///tmp\"," ENV),
	    "cwd: expected an absolute path" },
	{ SPAWN(COMMAND "\"cwd\":\"/a\\u0000b\"," ENV),
	    "cwd: expected an absolute path" },
	{ SPAWN(REQUIRED ",\"sandbox_policy_cwd\":7"),
	    WRONG("number", "a string") },
	{ SPAWN(REQUIRED ",\"sandbox_policy_cwd\":\"w\""),
	    "sandbox_policy_cwd: expected an absolute path" },
	{ SPAWN(REQUIRED ",\"sandbox_policy_cwd\":\"/w\\u0000\""),
	    "sandbox_policy_cwd: expected an absolute path" },
	/* version 6: what it needs, and what version 1 does not have */
	{ NEW_SPAWN(COMMAND CWD ENV ROOTS SIDS DESKTOP),
	    "missing field `permission_profile`" },
	{ NEW_SPAWN(COMMAND CWD ENV_ALONE
	      ",\"permission_profile\":null" ROOTS SIDS DESKTOP),
	    "invalid type: null, expected " },
	{ NEW_SPAWN(COMMAND CWD ENV_ALONE PROFILE SIDS DESKTOP),
	    "missing field `workspace_roots`" },
	{ NEW_SPAWN(COMMAND CWD ENV_ALONE PROFILE
	      ",\"workspace_roots\":[\"w\"]" SIDS DESKTOP),
	    "workspace_roots: expected an absolute path" },
	{ NEW_SPAWN(COMMAND CWD ENV_ALONE PROFILE ROOTS DESKTOP),
	    "cap_sids must not be empty" },
	{ NEW_SPAWN(
	      COMMAND CWD ENV_ALONE PROFILE ROOTS ",\"cap_sids\":[]" DESKTOP),
	    "cap_sids must not be empty" },
	{ NEW_SPAWN(
	      COMMAND CWD ENV_ALONE PROFILE ROOTS ",\"cap_sids\":[7]" DESKTOP),
	    WRONG("number", "a string") },
	{ NEW_SPAWN(COMMAND CWD ENV_ALONE PROFILE ROOTS SIDS),
	    "missing field `private_desktop_name`" },
	{ NEW_SPAWN(COMMAND CWD ENV_ALONE PROFILE ROOTS SIDS
	      ",\"private_desktop_name\":\"\""),
	    "private_desktop_name must not be empty" },
	{ NEW_SPAWN(NEW_REQUIRED ",\"network_proxy_restricting_sid\":\"S\""),
	    "network_proxy_restricting_sid: this runner knows no such restriction" },
	{ NEW("resize", "{}"), "missing field `size`" },
	{ NEW("resize", "{\"size\":{\"rows\":24}}"), "missing field `cols`" },
	{ NEW("resize", "{\"size\":{\"rows\":0,\"cols\":80}}"), "" },
	{ NEW("resize", "{\"size\":{\"rows\":24,\"cols\":32768}}"), "" },
	{ MESSAGE("close_stdin", "{}"), "this type needs version 6" },
	{ MESSAGE("resize", "{\"size\":{\"rows\":24,\"cols\":80}}"),
	    "this type needs version 6" },
};

static void
test_version_six(void **state)
{
	const char *spawn = NEW_SPAWN(NEW_REQUIRED
	    ",\"timeout_ms\":5,\"network_proxy_restricting_sid\":null");
	const char *resize =
	    NEW("resize", "{\"size\":{\"rows\":24,\"cols\":32767}}");
	char error[ARGS_ERROR_MAX];
	struct frames_message m;

	assert_int_equal(
	    frames_parse(&m, is_absolute, spawn, strlen(spawn), error), 0);
	assert_int_equal(m.version, 6);
	assert_true(is_text(m.spawn.desktop, "D") && m.spawn.policy.len == 0);
	assert_true(shown_as(m.spawn.profile, "{\"type\":\"managed\"}"));
	assert_true(shown_as(m.spawn.roots, "[\"/w\"]"));
	assert_true(shown_as(m.spawn.cap_sids, "[\"S-1-5-21-1\"]"));
	assert_true(m.spawn.has_timeout && m.spawn.timeout_ms == 5);
	frames_clear(&m);
	assert_int_equal(
	    frames_parse(&m, is_absolute, resize, strlen(resize), error), 0);
	assert_int_equal(m.type, FRAMES_RESIZE);
	assert_true(m.rows == 24 && m.cols == 32767);
	frames_clear(&m);
}

static void
test_refused(void **state)
{
	for (size_t i = 0; i < nitems(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		size_t len = strlen(row->text);
		char *copy = exact_copy((struct slice){ row->text, len });
		char error[ARGS_ERROR_MAX] = "";
		struct frames_message m;
		int r = frames_parse(&m, is_absolute, copy, len, error);

		if (r != -EBADMSG || !error_matches(error, row->error))
			fail_msg("row %zu, %s: %d, %s", i, row->text, r, error);
		frames_clear(&m);
		free(copy);
	}
}

/* A type is cut in its error, however long it is. */
static void
test_long_type(void **state)
{
	char text[4096], error[ARGS_ERROR_MAX], type[3000];
	struct frames_message m;

	memset(type, 'x', sizeof(type) - 1);
	type[sizeof(type) - 1] = '\0';
	snprintf(text, sizeof(text),
	    "{\"version\":1,\"type\":\"%s\",\"payload\":{}}", type);
	assert_int_equal(
	    frames_parse(&m, is_absolute, text, strlen(text), error), -EBADMSG);
	assert_true(error_matches(error, "unknown variant "));
	assert_non_null(strstr(error, TYPES));
	frames_clear(&m);
}

static void
test_write_ready_and_exit(void **state)
{
	struct json_writer w;
	struct buf b;

	buf_init(&b, 1024);
	json_writer_init(&w, &b);
	frames_write_ready(&w, 1, 4194304);
	check_written(&b, "{\"version\":1,\"type\":\"spawn_ready\","
			  "\"payload\":{\"process_id\":4194304}}");
	json_writer_init(&w, &b);
	frames_write_exit(&w, 1, -1, false);
	check_written(&b,
	    "{\"version\":1,\"type\":\"exit\","
	    "\"payload\":{\"exit_code\":-1,\"timed_out\":false}}");
	json_writer_init(&w, &b);
	frames_write_exit(&w, 1, FRAMES_TIMEOUT_CODE, true);
	check_written(&b,
	    "{\"version\":1,\"type\":\"exit\","
	    "\"payload\":{\"exit_code\":192,\"timed_out\":true}}");
}

static void
test_write_output_and_error(void **state)
{
	struct json_writer w;
	struct buf b;

	buf_init(&b, 1024);
	json_writer_init(&w, &b);
	frames_write_output(&w, 1, "stderr", "\0\xff", 2);
	check_written(&b,
	    "{\"version\":1,\"type\":\"output\","
	    "\"payload\":{\"data_b64\":\"AP8=\",\"stream\":\"stderr\"}}");
	json_writer_init(&w, &b);
	frames_write_output(&w, 1, "stdout", "", 0);
	check_written(&b,
	    "{\"version\":1,\"type\":\"output\","
	    "\"payload\":{\"data_b64\":\"\",\"stream\":\"stdout\"}}");
	json_writer_init(&w, &b);
	frames_write_error(&w, 1,
	    &(struct frames_error){
		.code = "spawn_failed", .message = "no \"x\"\n\xff" });
	check_written(&b, "{\"version\":1,\"type\":\"error\",\"payload\":"
			  "{\"message\":\"no \\\"x\\\"\\n\xef\xbf\xbd\","
			  "\"code\":\"spawn_failed\"}}");
	json_writer_init(&w, &b);
	frames_write_error(&w, 6,
	    &(struct frames_error){ .code = "spawn_failed",
		.windows_error = 267,
		.spawning = true,
		.message = "x" });
	check_written(&b,
	    "{\"version\":6,\"type\":\"error\",\"payload\":"
	    "{\"message\":\"x\",\"code\":\"spawn_failed\","
	    "\"stage\":\"spawn_child\",\"windows_error_code\":267}}");
	json_writer_init(&w, &b);
	frames_write_error(&w, 6,
	    &(struct frames_error){ .code = "protocol", .message = "x" });
	check_written(&b,
	    "{\"version\":6,\"type\":\"error\",\"payload\":"
	    "{\"message\":\"x\",\"code\":\"protocol\",\"stage\":"
	    "\"read_spawn_request\",\"windows_error_code\":null}}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spawn),
		cmocka_unit_test(test_stdin_and_terminate),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_version_six),
		cmocka_unit_test(test_long_type),
		cmocka_unit_test(test_write_ready_and_exit),
		cmocka_unit_test(test_write_output_and_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
