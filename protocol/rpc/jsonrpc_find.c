/* SPDX-License-Identifier: ISC */
/*
 * The beginning of a long message. Never recursive; whatever is unusual is
 * not found.
 */
#include "jsonrpc_find.h"

#include <stdbool.h>
#include <string.h>

#include "util.h"

struct cursor {
	const char *at, *end;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next character that is no blank; '\0' at the end. */
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

/* A string without escapes. False: there is none, or not all of it. */
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

/* Behind the string whose first quote is at the cursor. */
static bool
skip_string(struct cursor *c)
{
	for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
		if (*c->at == '\\' && c->at + 1 < c->end)
			c->at++;
	return c->at < c->end && take(c, '"');
}

/* A value of any kind, up to the comma or bracket behind it. */
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

/* Goes to the value of a member of the object whose bracket was taken. */
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

/* The cursor behind the quote of the string. */
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
