/* SPDX-License-Identifier: ISC */
/*
 * params of execd's own methods and members: values, defaults, and the errors
 * of values that are not allowed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "json_text.h"
#include "params_shown.h"

#define START(tty, more)                                                       \
	"{\"processId\":\"p\",\"argv\":[\"a\"],\"cwd\":\"file:///\","          \
	"\"env\":{},\"tty\":" tty more "}"
#define X16	"xxxxxxxxxxxxxxxx"
#define X64	X16 X16 X16 X16
#define LONG_ID X64 X64 X64 X64 /* just not too long */
#define MODES	LONG_ID LONG_ID LONG_ID LONG_ID LONG_ID LONG_ID /* 1152 bytes */
#define ID	"{\"processId\":\"p\""

static void
show_watched(struct json_writer *w, const union method_params *p)
{
	json_bool(w, p->initialize.watch);
	show_slice(w, p->initialize.watch_session_id);
}

static void
show_start(struct json_writer *w, const union method_params *p)
{
	const struct process_start_params *s = &p->process_start;

	json_u64(w, s->rows);
	json_u64(w, s->cols);
	if (s->has_term)
		show_slice(w, s->term);
	if (s->terminal_modes.len > 0)
		json_u64(w, s->terminal_modes.len);
}

static void
show_id(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_id.process_id);
}

static void
show_timeout(struct json_writer *w, const union method_params *p)
{
	json_bool(w, p->process_start.has_timeout);
	json_u64(w, p->process_start.timeout_ms);
}

static void
show_start_id(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_start.start_id);
}

static void
show_keep(struct json_writer *w, const struct session_keep_params *k)
{
	json_u64(w, k->keep_ms);
	json_bool(w, k->while_running);
}

static void
show_session_keep(struct json_writer *w, const union method_params *p)
{
	show_keep(w, &p->session_keep);
}

static void
show_initial_keep(struct json_writer *w, const union method_params *p)
{
	json_bool(w, p->initialize.has_keep);
	show_keep(w, &p->initialize.keep);
}

static void
show_retention(struct json_writer *w, const union method_params *p)
{
	const struct process_start_params *s = &p->process_start;

	json_bool(w, s->has_retention);
	if (!s->has_retention)
		return;
	json_u64(w, s->retention.head_bytes);
	if (s->retention.has_tail)
		json_u64(w, s->retention.tail_bytes);
	if (s->retention.hold)
		json_cstring(w, "hold");
	if (s->retention.wait)
		json_cstring(w, "wait");
}

static void
show_list(struct json_writer *w, const union method_params *p)
{
	json_u64(w, p->process_list.after);
}

static void
show_sessions(struct json_writer *w, const union method_params *p)
{
	json_u64(w, p->session_list.after);
}

static void
show_move(struct json_writer *w, const union method_params *p)
{
	json_cstring(w, p->fs.path.path);
	json_cstring(w, p->fs.destination.path);
	json_bool(w, p->fs.overwrite);
	json_bool(w, p->fs.keep_attributes);
	json_u64(w, p->fs.mode);
	json_bool(w, p->fs.has_sandbox);
}

static void
show_chmod(struct json_writer *w, const union method_params *p)
{
	json_cstring(w, p->fs.path.path);
	json_u64(w, p->fs.mode);
}

static void
show_symlink(struct json_writer *w, const union method_params *p)
{
	json_cstring(w, p->fs.path.path);
	show_slice(w, p->fs.target);
}

static void
show_watch(struct json_writer *w, const union method_params *p)
{
	json_u64(w, p->fs.watch_id);
	json_cstring(w, p->fs.path.path);
}

static void
show_signal(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_signal.process_id);
	json_bool(w, p->process_signal.has_target);
	json_u64(w, p->process_signal.target);
	json_u64(w, p->process_signal.signal);
}

static void
show_terminate(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_terminate.process_id);
	json_bool(w, p->process_terminate.graceful);
	json_bool(w, p->process_terminate.has_timeout);
	json_u64(w, p->process_terminate.timeout_ms);
}

static void
show_resize(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_resize.process_id);
	json_u64(w, p->process_resize.rows);
	json_u64(w, p->process_resize.cols);
}

static void
show_arrived(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_arrived.process_id);
	json_u64(w, p->process_arrived.bytes);
}

static void
show_wait(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_wait.process_id);
	json_u64(w, p->process_wait.timeout_ms);
}

static void
show_forward(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_forward.process_id);
	json_bool(w, p->process_forward.has_of);
	json_u64(w, p->process_forward.port);
	json_u64(w, p->process_forward.host);
}

static const struct value_row value_rows[] = {
	{ "initialize", show_watched,
	    "{\"clientName\":\"\",\"watchSessionId\":\"a\"}", "[true,\"a\"]" },
	{ "initialize", show_watched,
	    "{\"clientName\":\"\",\"watchSessionId\":null,"
	    "\"resumeSessionId\":\"r\"}",
	    "[false,\"\"]" },
	{ "process/start", show_start, START("true", ""), "[24,80]" },
	{ "process/start", show_start, START("false", ""), "[24,80]" },
	{ "process/start", show_start,
	    START("false", ",\"rows\":null,\"cols\":null,\"term\":null"),
	    "[24,80]" },
	{ "process/start", show_start,
	    START("true", ",\"rows\":1,\"cols\":65535,\"term\":\"\""),
	    "[1,65535,\"\"]" },
	{ "process/start", show_start,
	    START("true", ",\"terminalModes\":\"AwAAAAgA\""), "[24,80,6]" },
	{ "process/start", show_start,
	    START("true", ",\"terminalModes\":\"oA==\""), "[24,80,1]" },
	{ "process/start", show_timeout, START("true", ""), "[false,0]" },
	{ "process/start", show_timeout, START("true", ",\"timeoutMs\":0"),
	    "[true,0]" },
	{ "process/start", show_timeout,
	    START("true", ",\"timeoutMs\":18446744073709551615"),
	    "[true,18446744073709551615]" },
	{ "process/start", show_start_id, START("true", ""), "[\"\"]" },
	{ "process/start", show_start_id, START("true", ",\"startId\":null"),
	    "[\"\"]" },
	{ "process/start", show_start_id,
	    START("true", ",\"startId\":\"" LONG_ID "\""),
	    "[\"" LONG_ID "\"]" },
	{ "process/start", show_retention, START("true", ""), "[false]" },
	{ "process/start", show_retention, START("true", ",\"retention\":null"),
	    "[false]" },
	{ "process/start", show_retention, START("true", ",\"retention\":{}"),
	    "[true,0]" },
	{ "process/start", show_retention,
	    START("true", ",\"retention\":{\"headBytes\":18446744073709551615,"
			  "\"tailBytes\":0}"),
	    "[true,18446744073709551615,0]" },
	{ "process/start", show_retention,
	    START("true", ",\"retention\":{\"wait\":true,\"headBytes\":0}"),
	    "[true,0,\"wait\"]" },
	{ "initialize", show_initial_keep,
	    "{\"clientName\":\"\",\"sessionKeep\":null}", "[false,0,false]" },
	{ "initialize", show_initial_keep,
	    "{\"clientName\":\"\",\"resumeSessionId\":\"r\","
	    "\"sessionKeep\":{\"keepMs\":7,\"whileRunning\":true}}",
	    "[true,7,true]" },
	{ "session/keep", show_session_keep, "{\"keepMs\":0}", "[0,false]" },
	{ "session/keep", show_session_keep,
	    "{\"keepMs\":18446744073709551615,\"whileRunning\":true}",
	    "[18446744073709551615,true]" },
	{ "session/list", show_sessions, NULL, "[0]" },
	{ "session/list", show_sessions, "{\"after\":null}", "[0]" },
	{ "session/list", show_sessions, "{\"after\":7}", "[7]" },
	{ "process/list", show_list, NULL, "[0]" },
	{ "process/list", show_list, "null", "[0]" },
	{ "process/list", show_list, "{}", "[0]" },
	{ "process/list", show_list, "{\"after\":null}", "[0]" },
	{ "process/list", show_list, "{\"after\":7}", "[7]" },
	{ "process/snapshot", show_id, ID "}", "[\"p\"]" },
	/* signal: target, then the position in signals.def */
	{ "process/signal", show_signal, ID ",\"signal\":\"interrupt\"}",
	    "[\"p\",false,1,1]" },
	{ "process/signal", show_signal,
	    ID ",\"signal\":\"interrupt\",\"target\":null}",
	    "[\"p\",false,1,1]" },
	{ "process/signal", show_signal,
	    ID ",\"signal\":\"HUP\",\"target\":\"process\"}",
	    "[\"p\",true,0,0]" },
	{ "process/signal", show_signal,
	    ID ",\"signal\":\"INT\",\"target\":\"group\"}",
	    "[\"p\",true,1,1]" },
	{ "process/signal", show_signal,
	    ID ",\"signal\":\"KILL\",\"target\":\"tree\"}",
	    "[\"p\",true,2,4]" },
	{ "process/terminate", show_terminate, ID "}",
	    "[\"p\",false,false,0]" },
	{ "process/terminate", show_terminate, ID ",\"mode\":null}",
	    "[\"p\",false,false,0]" },
	{ "process/terminate", show_terminate, ID ",\"mode\":\"force\"}",
	    "[\"p\",false,false,0]" },
	{ "process/terminate", show_terminate,
	    ID ",\"mode\":\"graceful\",\"timeoutMs\":5}",
	    "[\"p\",true,true,5]" },
	{ "fs/move", show_move,
	    "{\"sourcePath\":\"file:///s\",\"destinationPath\":\"file:///d\"}",
	    "[\"/s\",\"/d\",false,false,4096,false]" },
	{ "fs/move", show_move,
	    "{\"sourcePath\":\"file:///s\",\"destinationPath\":\"file:///d\","
	    "\"overwrite\":true,\"keepAttributes\":true,\"mode\":420,"
	    "\"sandbox\":null}",
	    "[\"/s\",\"/d\",true,true,420,false]" },
	{ "fs/chmod", show_chmod, "{\"path\":\"file:///a\",\"mode\":493}",
	    "[\"/a\",493]" },
	{ "fs/symlink", show_symlink,
	    "{\"path\":\"file:///a\",\"target\":\"../%41 b\"}",
	    "[\"/a\",\"../%41 b\"]" },
	{ "fs/watch", show_watch, "{\"watchId\":7,\"path\":\"file:///a\"}",
	    "[7,\"/a\"]" },
	{ "process/closeStdin", show_id, ID "}", "[\"p\"]" },
	{ "process/arrived", show_arrived, ID ",\"bytes\":9007199254740993}",
	    "[\"p\",9007199254740993]" },
	{ "process/resize", show_resize, ID ",\"rows\":65535,\"cols\":1}",
	    "[\"p\",65535,1]" },
	{ "process/forward", show_forward, ID ",\"port\":65535}",
	    "[\"p\",false,65535,2]" },
	{ "process/forward", show_forward,
	    ID ",\"port\":1,\"of\":\"q\",\"host\":\"::1\"}",
	    "[\"p\",true,1,1]" },
	{ "process/wait", show_wait, ID "}", "[\"p\",18446744073709551615]" },
	{ "process/wait", show_wait, ID ",\"timeoutMs\":null}",
	    "[\"p\",18446744073709551615]" },
	{ "process/wait", show_wait, ID ",\"timeoutMs\":0}", "[\"p\",0]" },
};

static void
test_values(void **state)
{
	check_values(value_rows, nitems(value_rows));
}

static const struct error_row {
	const char *method, *params, *error;
} error_rows[] = {
	{ "initialize",
	    "{\"clientName\":\"\",\"watchSessionId\":\"a\","
	    "\"resumeSessionId\":\"a\"}",
	    "resumeSessionId and watchSessionId exclude each other" },
	{ "initialize", "{\"clientName\":\"\",\"takeOver\":true}",
	    "takeOver needs resumeSessionId" },
	{ "initialize",
	    "{\"clientName\":\"\",\"watchSessionId\":\"a\","
	    "\"sessionKeep\":{\"keepMs\":1}}",
	    "watchSessionId and sessionKeep exclude each other" },
	{ "initialize",
	    "{\"clientName\":\"\",\"sessionKeep\":{\"whileRunning\":true}}",
	    "missing field `keepMs`" },
	{ "process/start", START("true", ",\"startId\":\"\""),
	    "startId must have 1 to 256 bytes" },
	{ "process/start", START("true", ",\"startId\":\"" LONG_ID "x\""),
	    "startId must have 1 to 256 bytes" },
	{ "process/start", START("true", ",\"rows\":0"),
	    "rows must be between 1 and 65535" },
	{ "process/start", START("true", ",\"cols\":65536"),
	    "cols must be between 1 and 65535" },
	{ "process/start", START("false", ",\"rows\":1"),
	    "rows, cols, term and terminalModes need tty" },
	{ "process/start", START("false", ",\"cols\":1"),
	    "rows, cols, term and terminalModes need tty" },
	{ "process/start", START("false", ",\"term\":\"xterm\""),
	    "rows, cols, term and terminalModes need tty" },
	{ "process/start", START("false", ",\"terminalModes\":\"AA==\""),
	    "rows, cols, term and terminalModes need tty" },
	{ "process/start", START("true", ",\"terminalModes\":\"AwAAAA==\""),
	    "terminalModes are cut off" },
	{ "process/start", START("true", ",\"terminalModes\":\"AwAAAAgq\""),
	    "terminalModes are cut off" },
	{ "process/start", START("true", ",\"terminalModes\":\"" MODES "\""),
	    "terminalModes must have at most 1024 bytes" },
	{ "process/signal", ID ",\"signal\":\"TERM\"}",
	    "unknown variant `TERM`, expected `interrupt`" },
	{ "process/signal",
	    ID ",\"signal\":\"interrupt\",\"target\":\"group\"}",
	    "unknown variant `interrupt`, expected one of `HUP`, `INT`, "
	    "`QUIT`, `ABRT`, `KILL`, `USR1`, `USR2`, `PIPE`, `ALRM`, `TERM`, "
	    "`CHLD`, `CONT`, `STOP`, `TSTP`, `TTIN`, `TTOU`, `URG`, `XCPU`, "
	    "`WINCH`, `IO`, `PWR`" },
	{ "process/signal", ID ",\"signal\":\"SIGTERM\",\"target\":\"group\"}",
	    "unknown variant `SIGTERM`, expected one of " },
	{ "process/signal", ID ",\"signal\":\"TERM\",\"target\":\"all\"}",
	    "unknown variant `all`, expected one of `process`, `group`, "
	    "`tree`" },
	{ "process/signal", ID ",\"signal\":\"TERM\",\"target\":7}",
	    "invalid type: number, expected a string" },
	{ "process/terminate", ID ",\"mode\":\"soft\"}",
	    "unknown variant `soft`, expected `force` or `graceful`" },
	{ "process/terminate", ID ",\"timeoutMs\":5}",
	    "timeoutMs needs mode `graceful`" },
	{ "process/terminate", ID ",\"mode\":\"force\",\"timeoutMs\":0}",
	    "timeoutMs needs mode `graceful`" },
	{ "process/start", START("true", ",\"retention\":{\"headBytes\":-1}"),
	    "invalid number" },
	{ "process/start",
	    START("true", ",\"retention\":{\"tailBytes\":\"1\"}"),
	    "invalid type: string \"1\", expected u64" },
	{ "process/start", START("true", ",\"retention\":{\"wait\":1}"),
	    "invalid type: number, expected a boolean" },
	{ "process/start",
	    START("true", ",\"retention\":{\"wait\":true,\"hold\":true}"),
	    "hold excludes wait, headBytes and tailBytes" },
	{ "process/start",
	    START("true", ",\"retention\":{\"wait\":true,\"tailBytes\":0}"),
	    "wait excludes headBytes and tailBytes" },
	{ "process/list", "7", "invalid type: number, expected struct " },
	{ "process/list", "[]", "invalid type: sequence, expected struct " },
	{ "process/list", "{\"after\":-1}", "invalid number" },
	{ "process/resize", ID ",\"rows\":0,\"cols\":1}",
	    "rows must be between 1 and 65535" },
	{ "process/resize", ID ",\"rows\":1,\"cols\":70000}",
	    "cols must be between 1 and 65535" },
	{ "process/resize", ID ",\"rows\":10}", "missing field `cols`" },
	{ "process/forward", ID "}", "missing field `port`" },
	{ "process/forward", ID ",\"port\":0}",
	    "port must be between 1 and 65535" },
	{ "process/forward", ID ",\"port\":65536}",
	    "port must be between 1 and 65535" },
	{ "process/forward", ID ",\"port\":1,\"host\":\"0.0.0.0\"}",
	    "unknown variant `0.0.0.0`, expected " },
};

static void
test_errors(void **state)
{
	for (size_t i = 0; i < nitems(error_rows); i++) {
		const struct error_row *row = &error_rows[i];
		struct decoded d;

		assert_int_equal(
		    decode_params(&d, row->method, row->params), -EBADMSG);
		if (!error_matches(d.error, row->error))
			fail_msg("%s %s: %s, not %s", row->method, row->params,
			    d.error, row->error);
		decoded_clear(&d);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
