/* SPDX-License-Identifier: ISC */
/*
 * What several targets want of JSON: a tree written out again, two trees
 * compared, and the promises of a decoded path. Recursive, unlike json.c:
 * JSON_MAX_DEPTH bounds it.
 */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "json.h"
#include "path_uri.h"
#include "websocket.h"

#define JSON_TREE_BYTES (64u << 20)

static inline void
json_tree_write(struct json_writer *w, const struct json_value *v)
{
	bool object = v->type == JSON_OBJECT;

	if (v->type == JSON_NULL)
		json_null(w);
	else if (v->type == JSON_BOOL)
		json_bool(w, v->boolean);
	else if (v->type == JSON_NUMBER)
		json_raw(w, v->text.ptr, v->text.len);
	else if (v->type == JSON_STRING)
		json_string(w, v->text.ptr, v->text.len);
	if (v->type < JSON_ARRAY)
		return;
	json_begin(w, object ? '{' : '[');
	for (const struct json_value *m = v->first; m != NULL; m = m->next) {
		if (object)
			json_slice_key(w, m->key);
		json_tree_write(w, m);
	}
	json_end(w, object ? '}' : ']');
}

/* The text of a tree, in a buffer to be cleared. */
static inline void
json_tree_text(struct buf *b, const struct json_value *v)
{
	struct json_writer w;

	buf_init(b, JSON_TREE_BYTES);
	json_writer_init(&w, b);
	json_tree_write(&w, v);
	assert(!b->failed && b->len > 0);
}

static inline void
json_tree_compare(const struct json_value *a, const struct json_value *b)
{
	size_t count = 0;

	assert(a->type == b->type && a->count == b->count);
	assert(slice_equal(a->key, b->key));
	assert(slice_equal(a->text, b->text));
	assert(a->boolean == b->boolean);
	a = a->first;
	b = b->first;
	for (; a != NULL && b != NULL; a = a->next, b = b->next, count++)
		json_tree_compare(a, b);
	assert(a == NULL && b == NULL);
}

/* Ended within cap bytes, and not empty. */
static inline void
check_error(const char *error, size_t cap)
{
	size_t n = strnlen(error, cap);

	assert(n > 0 && n < cap);
}

/* "." or ".." as a whole segment. */
static inline bool
has_dot_segment(const char *path)
{
	for (const char *s = path; s != NULL; s = strchr(s + 1, '/')) {
		size_t n = strcspn(s + 1, "/");

		if (n > 0 && n <= 2 && strspn(s + 1, ".") >= n)
			return true;
	}
	return false;
}

/* A path of this machine, or foreign; no dot segments unless the URI hid
 * a slash from them as %2F (quirk Q14). */
static inline void
check_path(const struct path_uri *p)
{
	size_t n;

	assert(p->uri.len >= 5 && (p->path == NULL) == p->foreign);
	if (p->foreign)
		return;
	n = strlen(p->path);
	assert(p->path[0] == '/' && strstr(p->path, "//") == NULL);
	assert(n == 1 || p->path[n - 1] != '/');
	assert(!has_dot_segment(p->path));
}
