/* SPDX-License-Identifier: ISC */
/*
 * Looks for a few members of a JSON-RPC message.
 */
#include "message.h"

struct cursor {
	const char *p, *end;
};

typedef bool member_fn(struct message *m, struct slice key, struct cursor *c);

static void
skip_blanks(struct cursor *c)
{
	while (c->p < c->end && strchr(" \t\r\n", *c->p) != NULL)
		c->p++;
}

static bool
take(struct cursor *c, char wanted)
{
	skip_blanks(c);
	if (c->p == c->end || *c->p != wanted)
		return false;
	c->p++;
	return true;
}

/* A quote ends the string when an even number of backslashes is before it.
 * Base64 has none, so a chunk is one memchr(3). */
static bool
take_string(struct cursor *c, struct slice *out)
{
	const char *start, *quote;

	if (!take(c, '"'))
		return false;
	start = quote = c->p;
	while ((quote = memchr(quote, '"', (size_t)(c->end - quote))) != NULL) {
		size_t slashes = 0;

		while (
		    quote - slashes > start && *(quote - slashes - 1) == '\\')
			slashes++;
		if (slashes % 2 == 0)
			break;
		quote++;
	}
	if (quote == NULL)
		return false;
	*out = (struct slice){ start, (size_t)(quote - start) };
	c->p = quote + 1;
	return true;
}

static bool
skip_container(struct cursor *c)
{
	struct slice ignored;
	size_t depth = 0;

	do {
		if (c->p == c->end)
			return false;
		if (*c->p == '"') {
			if (!take_string(c, &ignored))
				return false;
			continue;
		}
		if (*c->p == '{' || *c->p == '[')
			depth++;
		else if (*c->p == '}' || *c->p == ']')
			depth--;
		c->p++;
	} while (depth > 0);
	return true;
}

static bool
skip_value(struct cursor *c)
{
	struct slice ignored;

	skip_blanks(c);
	if (c->p == c->end)
		return false;
	if (*c->p == '"')
		return take_string(c, &ignored);
	if (*c->p == '{' || *c->p == '[')
		return skip_container(c);
	while (c->p < c->end && strchr(",]} \t\r\n", *c->p) == NULL)
		c->p++;
	return true;
}

static bool
take_string_or_skip(struct cursor *c, struct slice *out)
{
	skip_blanks(c);
	if (c->p < c->end && *c->p == '"')
		return take_string(c, out);
	return skip_value(c);
}

static bool
take_integer(struct cursor *c, int64_t *out)
{
	bool negative;
	int64_t v = 0;

	skip_blanks(c);
	negative = c->p < c->end && *c->p == '-';
	if (negative)
		c->p++;
	if (c->p == c->end || *c->p < '0' || *c->p > '9')
		return skip_value(c);
	for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
		if (v < INT64_MAX / 10 - 1)
			v = v * 10 + (*c->p - '0');
	*out = negative ? -v : v;
	return true;
}

static bool
each_member(struct cursor *c, struct message *m, member_fn *member)
{
	struct slice key;

	if (!take(c, '{'))
		return false;
	if (take(c, '}'))
		return true;
	do {
		if (!take_string(c, &key) || !take(c, ':') ||
		    !member(m, key, c))
			return false;
	} while (take(c, ','));
	return take(c, '}');
}

static bool
is_key(struct slice key, const char *name)
{
	return key.len == strlen(name) && memcmp(key.ptr, name, key.len) == 0;
}

/* Of "params" or "result". */
static bool
inner_member(struct message *m, struct slice key, struct cursor *c)
{
	if (is_key(key, "processId"))
		return take_string_or_skip(c, &m->process_id);
	if (is_key(key, "chunk"))
		return take_string_or_skip(c, &m->chunk);
	if (is_key(key, "dataBase64"))
		return take_string_or_skip(c, &m->data);
	if (is_key(key, "status"))
		return take_string_or_skip(c, &m->status);
	if (is_key(key, "exitCode"))
		return take_integer(c, &m->exit_code);
	return skip_value(c);
}

static bool
error_member(struct message *m, struct slice key, struct cursor *c)
{
	return is_key(key, "message") ? take_string_or_skip(c, &m->error)
				      : skip_value(c);
}

static bool
outer_member(struct message *m, struct slice key, struct cursor *c)
{
	bool object;

	skip_blanks(c);
	object = c->p < c->end && *c->p == '{';
	if (is_key(key, "id"))
		return take_integer(c, &m->id);
	if (is_key(key, "method"))
		return take_string_or_skip(c, &m->method);
	if (object && (is_key(key, "params") || is_key(key, "result")))
		return each_member(c, m, inner_member);
	if (object && is_key(key, "error")) {
		m->is_error = true;
		return each_member(c, m, error_member);
	}
	return skip_value(c);
}

int
message_scan(struct message *m, const char *text, size_t len)
{
	struct cursor c = { text, text + len };

	*m = (struct message){ .id = -1, .exit_code = -1 };
	return each_member(&c, m, outer_member) ? 0 : -EBADMSG;
}

bool
message_is(const struct message *m, const char *method)
{
	return is_key(m->method, method);
}

size_t
message_decoded_len(struct slice base64)
{
	size_t n = base64.len / 4 * 3;

	for (size_t i = 1; i <= 2 && i <= base64.len; i++)
		n -= base64.ptr[base64.len - i] == '=';
	return n;
}
