/* SPDX-License-Identifier: ISC */
/*
 * jsonrpc: kinds and ids of messages, the error texts of doc/protocol.md
 * section 2.3, and what is written.
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
#include "jsonrpc.h"

#define BAD_ID "data did not match any variant of untagged enum RequestId"
#define TRACE  ", expected struct W3cTraceContext"
#define OBJECT "expected a JSON-RPC object"

/* What a message is: its kind, the id as it is echoed, its method and its
 * params as text (NULL: absent). */
static const struct good_row {
	const char *text;
	enum rpc_kind kind;
	const char *id, *method, *params;
} good_rows[] = {
	/* requests */
	{ "{\"id\":1,\"method\":\"m\"}", RPC_KIND_REQUEST, "1", "m", NULL },
	{ "{\"method\":\"m\",\"id\":1,\"params\":{\"a\":[1]}}",
	    RPC_KIND_REQUEST, "1", "m", "{\"a\":[1]}" },
	{ "{\"id\":1,\"method\":\"\",\"params\":null}", RPC_KIND_REQUEST, "1",
	    "", "null" },
	{ "{\"id\":1,\"method\":\"m\",\"params\":7}", RPC_KIND_REQUEST, "1",
	    "m", "7" },
	{ "{\"id\":1,\"method\":\"m\",\"params\":[]}", RPC_KIND_REQUEST, "1",
	    "m", "[]" },
	{ "{\"id\":1,\"method\":\"m\",\"params\":1e999}", RPC_KIND_REQUEST, "1",
	    "m", "1e999" },
	{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\",\"x\":{}}",
	    RPC_KIND_REQUEST, "1", "m", NULL },
	{ "{\"id\":1,\"method\":\"m\",\"result\":1,\"error\":2}",
	    RPC_KIND_REQUEST, "1", "m", NULL },
	{ "{\"id\":1,\"meth\\u006fd\":\"a\\/b\"}", RPC_KIND_REQUEST, "1", "a/b",
	    NULL },
	/* ids */
	{ "{\"id\":0,\"method\":\"m\"}", RPC_KIND_REQUEST, "0", "m", NULL },
	{ "{\"id\":-1,\"method\":\"m\"}", RPC_KIND_REQUEST, "-1", "m", NULL },
	{ "{\"id\":9223372036854775807,\"method\":\"m\"}", RPC_KIND_REQUEST,
	    "9223372036854775807", "m", NULL },
	{ "{\"id\":-9223372036854775808,\"method\":\"m\"}", RPC_KIND_REQUEST,
	    "-9223372036854775808", "m", NULL },
	{ "{\"id\":\"\",\"method\":\"m\"}", RPC_KIND_REQUEST, "\"\"", "m",
	    NULL },
	{ "{\"id\":\"1\",\"method\":\"m\"}", RPC_KIND_REQUEST, "\"1\"", "m",
	    NULL },
	{ "{\"id\":\"007\",\"method\":\"m\"}", RPC_KIND_REQUEST, "\"007\"", "m",
	    NULL },
	{ "{\"id\":\"\\u0061\\\"\\\\\\n\\u0000\",\"method\":\"m\"}",
	    RPC_KIND_REQUEST, "\"a\\\"\\\\\\n\\u0000\"", "m", NULL },
	{ "{\"id\":\"\\u0001\\u0001\\u0001\\u0001\",\"method\":\"m\"}",
	    RPC_KIND_REQUEST, "\"\\u0001\\u0001\\u0001\\u0001\"", "m", NULL },
	{ "{\"id\":\"\xc3\xbc\\ud83d\\ude00\",\"method\":\"m\"}",
	    RPC_KIND_REQUEST, "\"\xc3\xbc\xf0\x9f\x98\x80\"", "m", NULL },
	/* notifications: no id at all */
	{ "{\"method\":\"initialized\"}", RPC_KIND_NOTIFICATION, NULL,
	    "initialized", NULL },
	{ "{\"method\":\"m\",\"params\":{}}", RPC_KIND_NOTIFICATION, NULL, "m",
	    "{}" },
	{ "{\"method\":\"m\",\"result\":1}", RPC_KIND_NOTIFICATION, NULL, "m",
	    NULL },
	{ "{\"method\":\"m\",\"error\":1}", RPC_KIND_NOTIFICATION, NULL, "m",
	    NULL },
	/* trace: checked on requests only */
	{ "{\"id\":1,\"method\":\"m\",\"trace\":null}", RPC_KIND_REQUEST, "1",
	    "m", NULL },
	{ "{\"id\":1,\"method\":\"m\",\"trace\":{}}", RPC_KIND_REQUEST, "1",
	    "m", NULL },
	{ "{\"id\":1,\"method\":\"m\",\"trace\":{\"traceparent\":\"x\","
	  "\"tracestate\":null,\"other\":1}}",
	    RPC_KIND_REQUEST, "1", "m", NULL },
	{ "{\"method\":\"m\",\"trace\":7}", RPC_KIND_NOTIFICATION, NULL, "m",
	    NULL },
	{ "{\"method\":\"m\",\"trace\":{\"traceparent\":7}}",
	    RPC_KIND_NOTIFICATION, NULL, "m", NULL },
	/* answers */
	{ "{\"id\":1,\"result\":null}", RPC_KIND_RESPONSE, "1", NULL, NULL },
	{ "{\"id\":\"x\",\"result\":{}}", RPC_KIND_RESPONSE, "\"x\"", NULL,
	    NULL },
	{ "{\"id\":1,\"error\":{\"code\":-32600,\"message\":\"x\"}}",
	    RPC_KIND_RESPONSE, "1", NULL, NULL },
	{ "{\"id\":1,\"error\":{\"code\":1,\"message\":\"x\",\"data\":[]}}",
	    RPC_KIND_RESPONSE, "1", NULL, NULL },
};

/* The id as rpc_id_copy() keeps it. */
static bool
id_is(const struct json_value *v, const char *expect)
{
	struct rpc_id id = { 0 };
	bool same;

	if (v == NULL || expect == NULL)
		return v == NULL && expect == NULL;
	rpc_id_copy(&id, v);
	same = id.len == strlen(expect) && !memcmp(id.text, expect, id.len);
	rpc_id_clear(&id);
	return same && id.text == NULL && id.len == 0;
}

static bool
params_are(const struct json_value *v, const char *expect)
{
	struct json_value copy;
	struct buf b;
	bool same;

	if (v == NULL || expect == NULL)
		return v == NULL && expect == NULL;
	copy = *v;
	copy.key = (struct slice){ NULL, 0 };
	copy.next = NULL;
	same = strcmp(show_tree(&b, &copy), expect) == 0;
	buf_clear(&b);
	return same;
}

static void
check_good(const struct good_row *row)
{
	size_t len = strlen(row->text);
	char *copy = exact_copy((struct slice){ row->text, len });
	struct rpc_message m;
	const char *method = row->method ? row->method : "";

	if (rpc_parse(&m, copy, len) != 0)
		fail_msg("%s: %s", row->text, m.doc.error);
	if (m.kind != row->kind)
		fail_msg("%s: kind %d", row->text, (int)m.kind);
	if (!id_is(m.id, row->id))
		fail_msg("%s: id", row->text);
	if (m.method.len != strlen(method) ||
	    (m.method.len > 0 && memcmp(m.method.ptr, method, m.method.len)))
		fail_msg("%s: method", row->text);
	if (!params_are(m.params, row->params))
		fail_msg("%s: params", row->text);
	rpc_message_clear(&m);
	free(copy);
}

static void
test_messages(void **state)
{
	for (size_t i = 0; i < nitems(good_rows); i++)
		check_good(&good_rows[i]);
}

/* A malformed message and its DETAIL: in full, "... " a prefix, "" any. */
static const struct bad_row {
	const char *text, *error;
} bad_rows[] = {
	{ "", "EOF while parsing a value at line 1 column 0" },
	{ "hello there", "expected value at line 1 column 1" },
	{ "{\"id\":1", "EOF " },
	{ "{\"id\":1,\"method\":\"m\"} x",
	    "trailing characters at line 1 column 23" },
	{ "{\"id\":1,\"id\":1}",
	    "duplicate JSON object key `id` at line 1 column 12" },
	{ "{\"id\":1,\"method\":\"m\",\"params\":{\"a\":{\"b\":1,\"b\":1}}}",
	    "duplicate JSON object key `b` at line 1 column 45" },
	{ "{\"id\":1,\"method\":\"\\ud800\"}",
	    "unexpected end of hex escape at " },
	/* not an object: whatever is inside */
	{ "[]", OBJECT },
	{ "[{\"id\":1,\"method\":\"m\"}]", OBJECT },
	{ "\"x\"", OBJECT },
	{ "7", OBJECT },
	{ "true", OBJECT },
	{ "null", OBJECT },
	/* neither method nor result nor error */
	{ "{}", "missing field `error`" },
	{ "{\"id\":1}", "missing field `error`" },
	{ "{\"params\":{}}", "missing field `error`" },
	{ "{\"jsonrpc\":\"2.0\"}", "missing field `error`" },
	{ "{\"Method\":\"m\",\"id\":1}", "missing field `error`" },
	/* ids */
	{ "{\"id\":null,\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":true,\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":1.0,\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":1.5,\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":1e2,\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":9223372036854775808,\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":-9223372036854775809,\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":[1],\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":{},\"method\":\"m\"}", BAD_ID },
	{ "{\"id\":null,\"result\":1}", BAD_ID },
	{ "{\"id\":1.5,\"error\":{\"code\":1,\"message\":\"\"}}", BAD_ID },
	{ "{\"result\":1}", "" },
	/* methods */
	{ "{\"id\":1,\"method\":7}",
	    "invalid type: number, expected a string" },
	{ "{\"id\":1,\"method\":null}",
	    "invalid type: null, expected a string" },
	{ "{\"id\":1,\"method\":true}",
	    "invalid type: boolean `true`, expected a string" },
	{ "{\"id\":1,\"method\":false}",
	    "invalid type: boolean `false`, expected a string" },
	{ "{\"id\":1,\"method\":[]}",
	    "invalid type: sequence, expected a string" },
	{ "{\"id\":1,\"method\":{}}", "invalid type: map, expected a string" },
	{ "{\"method\":7}", "invalid type: number, expected a string" },
	/* trace on a request */
	{ "{\"id\":1,\"method\":\"m\",\"trace\":7}",
	    "invalid type: number" TRACE },
	{ "{\"id\":1,\"method\":\"m\",\"trace\":true}",
	    "invalid type: boolean `true`" TRACE },
	{ "{\"id\":1,\"method\":\"m\",\"trace\":\"x\"}",
	    "invalid type: string \"x\"" TRACE },
	{ "{\"id\":1,\"method\":\"m\",\"trace\":{\"traceparent\":7}}",
	    "invalid type: number, expected a string" },
	{ "{\"id\":1,\"method\":\"m\",\"trace\":{\"tracestate\":{}}}",
	    "invalid type: map, expected a string" },
	/* answers */
	{ "{\"id\":1,\"error\":7}", "" },
	{ "{\"id\":1,\"error\":null}", "" },
	{ "{\"id\":1,\"error\":{}}", "missing field `code`" },
	{ "{\"id\":1,\"error\":{\"code\":1}}", "missing field `message`" },
	{ "{\"id\":1,\"error\":{\"code\":1.5,\"message\":\"\"}}", "" },
	{ "{\"id\":1,\"error\":{\"code\":\"1\",\"message\":\"\"}}", "" },
	{ "{\"id\":1,\"error\":{\"code\":1,\"message\":7}}",
	    "invalid type: number, expected a string" },
};

static void
test_malformed(void **state)
{
	for (size_t i = 0; i < nitems(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		size_t len = strlen(row->text);
		char *copy = exact_copy((struct slice){ row->text, len });
		struct rpc_message m;
		int r = rpc_parse(&m, copy, len);

		if (r != -EBADMSG || !error_matches(m.doc.error, row->error))
			fail_msg("row %zu, %s: %d, %s", i, row->text, r,
			    m.doc.error);
		rpc_message_clear(&m);
		free(copy);
	}
}

/* params may sandbox 126: one less than the message. */
static void
test_params_depth(void **state)
{
	for (size_t depth = 125; depth <= 127; depth++) {
		char text[512] = "{\"id\":1,\"method\":\"m\",\"params\":";
		size_t at = strlen(text);
		struct rpc_message m;

		memset(text + at, '[', depth);
		memset(text + at + depth, ']', depth);
		text[at + 2 * depth] = '}';
		if (rpc_parse(&m, text, at + 2 * depth + 1) !=
			(depth <= 126 ? 0 : -EBADMSG) ||
		    (depth > 126 &&
			strcmp(m.doc.error, "recursion limit exceeded at "
					    "line 1 column 157") != 0))
			fail_msg("depth %zu: %s", depth, m.doc.error);
		rpc_message_clear(&m);
	}
}

static void
test_write_result(void **state)
{
	char text[] = "\"a\\\"b\"";
	const struct rpc_id id = { text, sizeof(text) - 1 };
	struct json_writer w;
	struct buf b;

	buf_init(&b, 1024);
	json_writer_init(&w, &b);
	rpc_begin_result(&w, &id);
	json_begin(&w, '{');
	json_key(&w, "x");
	json_u64(&w, 1);
	json_end(&w, '}');
	rpc_end_result(&w);
	check_written(&b, "{\"id\":\"a\\\"b\",\"result\":{\"x\":1}}");
}

static void
test_write_notification(void **state)
{
	struct json_writer w;
	struct buf b;

	buf_init(&b, 1024);
	json_writer_init(&w, &b);
	rpc_begin_notification(&w, "process/exited");
	json_begin(&w, '{');
	json_end(&w, '}');
	rpc_end_notification(&w);
	check_written(&b, "{\"method\":\"process/exited\",\"params\":{}}");
}

/* An id (NULL: none), a code, a message and the text of the error. */
static const struct error_row {
	const char *id;
	int code;
	struct slice message;
	const char *expect;
} error_rows[] = {
	{ "7", RPC_MALFORMED, { "x", 1 },
	    "{\"error\":{\"code\":-32600,\"message\":\"x\"},\"id\":7}" },
	{ NULL, RPC_MALFORMED, { "x", 1 },
	    "{\"error\":{\"code\":-32600,\"message\":\"x\"},\"id\":-1}" },
	{ "\"\"", RPC_UNKNOWN_METHOD, { "", 0 },
	    "{\"error\":{\"code\":-32601,\"message\":\"\"},\"id\":\"\"}" },
	{ "-9223372036854775808", RPC_INVALID_PARAMS, { "a\"\n\0b", 5 },
	    "{\"error\":{\"code\":-32602,\"message\":\"a\\\"\\n\\u0000b\"},"
	    "\"id\":-9223372036854775808}" },
	{ "1", RPC_INTERNAL, { "\xff!", 2 },
	    "{\"error\":{\"code\":-32603,\"message\":\"\xef\xbf\xbd!\"},"
	    "\"id\":1}" },
	{ "1", RPC_NOT_FOUND, { "abc", 2 },
	    "{\"error\":{\"code\":-32004,\"message\":\"ab\"},\"id\":1}" },
	{ "1", RPC_ATTACHED, { "x", 1 },
	    "{\"error\":{\"code\":-32010,\"message\":\"x\"},\"id\":1}" },
};

static void
test_write_errors(void **state)
{
	for (size_t i = 0; i < nitems(error_rows); i++) {
		const struct error_row *row = &error_rows[i];
		_cleanup_free_ char *text = xstrdup(row->id ? row->id : "");
		const struct rpc_id id = { text, strlen(text) };
		struct json_writer w;
		struct buf b;

		buf_init(&b, 1024);
		json_writer_init(&w, &b);
		rpc_write_error(&w, row->id ? &id : NULL, row->code,
		    row->message.ptr, row->message.len);
		check_written(&b, row->expect);
	}
}

static void
test_write_error_with_kind(void **state)
{
	char text[] = "7";
	const struct rpc_id id = { text, 1 };
	struct json_writer w;
	struct buf b;

	buf_init(&b, 1024);
	json_writer_init(&w, &b);
	rpc_write_error_kind(&w, &id, -32603, "spawnFailed", "x", 1);
	check_written(&b, "{\"error\":{\"code\":-32603,\"message\":\"x\","
			  "\"data\":{\"kind\":\"spawnFailed\"}},\"id\":7}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_params_depth),
		cmocka_unit_test(test_write_result),
		cmocka_unit_test(test_write_notification),
		cmocka_unit_test(test_write_errors),
		cmocka_unit_test(test_write_error_with_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
