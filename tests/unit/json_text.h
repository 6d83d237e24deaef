/* SPDX-License-Identifier: ISC */
/*
 * For the tests of everything that reads JSON: parse from memory of exactly
 * that size, show a tree as compact text, compare what was written.
 */
#pragma once

#include <string.h>

#include "json.h"

/* A copy without anything behind it, so that a sanitizer sees an overread.
 * The tree points into it: free it last. */
static inline char *
exact_copy(struct slice s)
{
	char *copy = xmalloc(s.len ? s.len : 1);

	if (s.len > 0)
		memcpy(copy, s.ptr, s.len);
	return copy;
}

/* Whether an error is the expected one: "..." in full, "... " as a prefix, ""
 * any text at all. */
static inline bool
error_matches(const char *got, const char *expect)
{
	size_t n = strlen(expect);

	if (n == 0 || expect[n - 1] == ' ')
		return got[0] != '\0' && strncmp(got, expect, n) == 0;
	return strcmp(got, expect) == 0;
}

static inline void
show_value(struct json_writer *w, const struct json_value *v)
{
	if (v->key.ptr != NULL)
		json_slice_key(w, v->key);
	if (v->type == JSON_NULL)
		json_null(w);
	else if (v->type == JSON_BOOL)
		json_bool(w, v->boolean);
	else if (v->type == JSON_NUMBER)
		json_raw(w, v->text.ptr, v->text.len);
	else if (v->type == JSON_STRING)
		json_string(w, v->text.ptr, v->text.len);
	else
		json_begin(w, v->type == JSON_ARRAY ? '[' : '{');
	for (const struct json_value *c = v->first; c != NULL; c = c->next)
		show_value(w, c);
	if (v->type == JSON_ARRAY || v->type == JSON_OBJECT)
		json_end(w, v->type == JSON_ARRAY ? ']' : '}');
}

/* NUL-terminated; the caller clears b. */
static inline const char *
show_tree(struct buf *b, const struct json_value *root)
{
	struct json_writer w;

	buf_init(b, 1u << 20);
	json_writer_init(&w, b);
	show_value(&w, root);
	buf_put_u8(b, '\0');
	return (const char *)b->data;
}

/* What was written, no more and no less; clears b. */
static inline void
check_written(struct buf *b, const char *expect)
{
	buf_put_u8(b, '\0');
	assert_false(b->failed);
	assert_string_equal((const char *)b->data, expect);
	buf_clear(b);
}
