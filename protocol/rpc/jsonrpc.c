/* SPDX-License-Identifier: ISC */
#include "jsonrpc.h"

static int
malformed(struct rpc_message *m, const char *detail)
{
	snprintf(m->doc.error, sizeof(m->doc.error), "%s", detail);
	return -EBADMSG;
}

/* The peer accepts minus zero as an integer in an id, but not in params. */
static bool
is_minus_zero(const struct json_value *v)
{
	return v->type == JSON_NUMBER && slice_equal(v->text, SLICE("-0"));
}

/* An id is a string, or a 64-bit integer without fraction or exponent. */
static bool
is_id(const struct json_value *v)
{
	int64_t ignored;

	return v->type == JSON_STRING || is_minus_zero(v) ||
	       (v->type == JSON_NUMBER && json_to_i64(v, &ignored) == 0);
}

static const char *
kind_name(const struct json_value *v)
{
	switch (v->type) {
	case JSON_NULL:
		return "null";
	case JSON_BOOL:
		return v->boolean ? "boolean `true`" : "boolean `false`";
	case JSON_NUMBER:
		return "number";
	case JSON_ARRAY:
		return "sequence";
	case JSON_OBJECT:
		return "map";
	default:
		return "string";
	}
}

static int
malformed_type(
    struct rpc_message *m, const struct json_value *v, const char *expected)
{
	char text[JSON_ERROR_MAX];

	if (v->type == JSON_STRING)
		snprintf(text, sizeof(text),
		    "invalid type: string \"%.*s\", expected %s",
		    (int)(v->text.len < 64 ? v->text.len : 64), v->text.ptr,
		    expected);
	else
		snprintf(text, sizeof(text), "invalid type: %s, expected %s",
		    kind_name(v), expected);
	return malformed(m, text);
}

static int
check_trace(struct rpc_message *m, const struct json_value *trace)
{
	static const char *const keys[] = { "traceparent", "tracestate" };
	if (trace == NULL || trace->type == JSON_NULL)
		return 0;
	if (trace->type != JSON_OBJECT) {
		return malformed_type(m, trace, "struct W3cTraceContext");
	}
	for (size_t i = 0; i < nitems(keys); i++) {
		const struct json_value *v = json_get(trace, keys[i]);

		if (v != NULL && v->type != JSON_NULL &&
		    v->type != JSON_STRING) {
			return malformed_type(m, v, "a string");
		}
	}
	return 0;
}

static int
classify_call(struct rpc_message *m, const struct json_value *method,
    const struct json_value *id)
{
	if (id != NULL && !is_id(id))
		return malformed(m, "data did not match any variant of "
				    "untagged enum RequestId");
	if (method->type != JSON_STRING) {
		return malformed_type(m, method, "a string");
	}
	m->method = method->text;
	m->id = id;
	m->params = json_get(m->doc.root, "params");
	m->kind = id ? RPC_KIND_REQUEST : RPC_KIND_NOTIFICATION;
	return id ? check_trace(m, json_get(m->doc.root, "trace")) : 0;
}

/* An error needs {code, message}. Results and errors both need an id. */
static int
classify_answer(struct rpc_message *m, const struct json_value *id)
{
	const struct json_value *error = json_get(m->doc.root, "error");
	const struct json_value *message;
	int64_t code;

	m->kind = RPC_KIND_RESPONSE;
	if (json_get(m->doc.root, "result") == NULL) {
		if (error == NULL)
			return malformed(m, "missing field `error`");
		if (error->type != JSON_OBJECT ||
		    json_get(error, "code") == NULL ||
		    json_to_i64(json_get(error, "code"), &code) < 0)
			return malformed(m, "missing field `code`");
		message = json_get(error, "message");
		if (message == NULL)
			return malformed(m, "missing field `message`");
		if (message->type != JSON_STRING)
			return malformed_type(m, message, "a string");
	}
	if (id == NULL)
		return malformed(m, "missing field `id`");
	if (!is_id(id))
		return malformed(m, "data did not match any variant of "
				    "untagged enum RequestId");
	m->id = id;
	return 0;
}

int
rpc_parse(struct rpc_message *m, const char *text, size_t len)
{
	const struct json_value *method, *id;
	int err;

	memset(m, 0, sizeof(*m));
	err = json_parse(&m->doc, text, len);
	if (err < 0)
		return err;
	if (m->doc.root->type != JSON_OBJECT)
		return malformed(m, "expected a JSON-RPC object");
	method = json_get(m->doc.root, "method");
	id = json_get(m->doc.root, "id");
	if (method != NULL)
		return classify_call(m, method, id);
	return classify_answer(m, id);
}

void
rpc_message_clear(struct rpc_message *m)
{
	json_clear(&m->doc);
}

void
rpc_id_copy(struct rpc_id *id, const struct json_value *v)
{
	struct json_writer w;
	struct buf b;

	if (v->type == JSON_NUMBER) {
		/* Minus zero is sent back as zero. */
		bool zero = is_minus_zero(v);

		id->text = xstrndup(v->text.ptr + zero, v->text.len - zero);
		id->len = v->text.len - zero;
		return;
	}
	buf_init(&b, v->text.len * 6 + 2);
	json_writer_init(&w, &b);
	json_string(&w, v->text.ptr, v->text.len);
	id->text = (char *)b.data;
	id->len = b.len;
}

void
rpc_id_clear(struct rpc_id *id)
{
	free(id->text);
	*id = (struct rpc_id){ 0 };
}

static void
write_id(struct json_writer *w, const struct rpc_id *id)
{
	json_key(w, "id");
	if (id != NULL)
		json_raw(w, id->text, id->len);
	else
		json_raw(w, "-1", 2);
}

void
rpc_begin_result(struct json_writer *w, const struct rpc_id *id)
{
	json_begin(w, '{');
	write_id(w, id);
	json_key(w, "result");
}

void
rpc_end_result(struct json_writer *w)
{
	json_end(w, '}');
}

void
rpc_write_error(struct json_writer *w, const struct rpc_id *id, int code,
    const char *message, size_t len)
{
	rpc_write_error_kind(w, id, code, NULL, message, len);
}

void
rpc_write_error_kind(struct json_writer *w, const struct rpc_id *id, int code,
    const char *kind, const char *message, size_t len)
{
	json_begin(w, '{');
	json_key_begin(w, "error", '{');
	json_key_i64(w, "code", code);
	json_key_string(w, "message", message, len);
	if (kind != NULL) {
		json_key_begin(w, "data", '{');
		json_key_cstring(w, "kind", kind);
		json_end(w, '}');
	}
	json_end(w, '}');
	write_id(w, id);
	json_end(w, '}');
}

void
rpc_begin_notification(struct json_writer *w, const char *method)
{
	json_begin(w, '{');
	json_key_cstring(w, "method", method);
	json_key(w, "params");
}

void
rpc_end_notification(struct json_writer *w)
{
	json_end(w, '}');
}

void
rpc_begin_request(struct json_writer *w, uint64_t id, const char *method)
{
	json_begin(w, '{');
	json_key_u64(w, "id", id);
	json_key_cstring(w, "method", method);
	json_key(w, "params");
}

void
rpc_end_request(struct json_writer *w)
{
	json_end(w, '}');
}

/* --- found in a text ---------------------------------------------------- */

/*
 * Looks at the beginning of a long message. Not recursive. If anything is
 * unusual, nothing is found.
 */

struct cursor {
	const char *at, *end;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Skips blanks and returns the next character without taking it, or '\0' at the
 * end. */
static char
peek(struct cursor *c)
{
	while (c->at < c->end && is_blank(*c->at))
		c->at++;
	return c->at < c->end ? *c->at : '\0';
}

static bool
take(struct cursor *c, char expected)
{
	if (peek(c) != expected)
		return false;
	c->at++;
	return true;
}

/* Takes a string without escapes. Returns false if there is none or if it is
 * incomplete. */
static bool
take_string(struct cursor *c, struct slice *s)
{
	if (!take(c, '"'))
		return false;
	s->ptr = c->at;
	while (c->at < c->end && *c->at != '"' && *c->at != '\\')
		c->at++;
	s->len = (size_t)(c->at - s->ptr);
	return take(c, '"');
}

/* Skips the string whose first quote is at the cursor. */
static bool
skip_string(struct cursor *c)
{
	for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
		if (*c->at == '\\' && c->at + 1 < c->end)
			c->at++;
	return c->at < c->end && take(c, '"');
}

/* Skips a value of any type, up to the comma or bracket after it. */
static bool
skip_value(struct cursor *c)
{
	size_t depth = 0;
	char next;

	while ((next = peek(c)) != '\0') {
		if (depth == 0 && (next == ',' || next == '}' || next == ']'))
			return true;
		if (next == '"') {
			if (!skip_string(c))
				return false;
			continue;
		}
		depth += next == '{' || next == '[';
		depth -= next == '}' || next == ']';
		c->at++;
	}
	return false;
}

/* Takes the next key and moves to its value. The cursor is inside an object. */
static bool
find_member(struct cursor *c, struct slice *key)
{
	return take_string(c, key) && take(c, ':');
}

static bool
is(struct slice s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
}

/* Moves the cursor to the first byte of the string, after its quote. */
static bool
find_in_params(struct cursor *c, const char *wanted)
{
	struct slice key;

	if (!take(c, '{'))
		return false;
	do {
		if (!find_member(c, &key))
			return false;
		if (is(key, wanted))
			return take(c, '"');
	} while (skip_value(c) && take(c, ','));
	return false;
}

size_t
rpc_find_string(
    const char *text, size_t len, const char *method, const char *wanted)
{
	struct cursor c = { text, text + len };
	struct slice key, value;
	bool known = false;

	if (!take(&c, '{'))
		return 0;
	do {
		if (!find_member(&c, &key))
			return 0;
		if (is(key, "params"))
			return known && find_in_params(&c, wanted)
				   ? (size_t)(c.at - text)
				   : 0;
		if (is(key, "method")) {
			known = take_string(&c, &value) && is(value, method);
			if (!known)
				return 0;
		}
	} while (skip_value(&c) && take(&c, ','));
	return 0;
}
