/* SPDX-License-Identifier: ISC */
/*
 * Looks at the beginning of a long message. Not recursive. If anything is
 * unusual, nothing is found.
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
