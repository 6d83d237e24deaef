/* SPDX-License-Identifier: ISC */
/*
 * JSON text -> a small tree, and a writer. json.c is the only file that
 * knows yajl, and uses only its callback parser.
 *
 * Strict: one value and nothing behind it, no comments, no duplicate keys at
 * any depth (compared after unescaping), no lone surrogates, valid UTF-8, at
 * most JSON_MAX_DEPTH containers (doc/protocol.md section 2.3). Numbers stay
 * text until somebody asks. Never recursive.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "util.h"

#define JSON_MAX_DEPTH 127
#define JSON_ERROR_MAX 160

enum json_type {
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

struct json_value {
	enum json_type type;
	bool boolean;		  /* JSON_BOOL */
	size_t count;		  /* JSON_ARRAY, JSON_OBJECT: members */
	struct slice text;	  /* JSON_STRING unescaped, JSON_NUMBER raw */
	struct slice key;	  /* when member of an object */
	struct json_value *first; /* first child, in order of the text */
	struct json_value *next;  /* next sibling */
};

/*
 * The tree of one text. Strings without escapes point into the text that was
 * parsed, so the text must outlive the tree; everything else is in the arena.
 */
struct json_doc {
	struct json_value *root;
	struct json_block *arena; /* owned */
	char
	    error[JSON_ERROR_MAX]; /* serde's words: "... at line 1 column 4" */
};

/* 0, or -EBADMSG with doc->error set (the tree is then empty). Initialises
 * doc; end with json_clear() in either case. */
int json_parse(struct json_doc *doc, const char *text, size_t len);
void json_clear(struct json_doc *doc);

/* n bytes that live as long as the tree. Never NULL. */
void *json_alloc(struct json_doc *doc, size_t n);

/* Member of an object by name, or NULL. */
const struct json_value *json_get(
    const struct json_value *object, const char *key);
bool json_is(const struct json_value *string, const char *text);

/* The number as an integer in range. 0, or -ERANGE (fraction, exponent, out
 * of range, not a number). */
int json_to_i64(const struct json_value *v, int64_t *out);
int json_to_u64(const struct json_value *v, uint64_t *out);

/*
 * Writing: values append to the buffer, commas come by themselves.
 *
 *	json_begin(&w, '{'); json_key(&w, "seq"); json_u64(&w, 7); json_end(&w,
 *'}');
 *
 * Strings that are not UTF-8 have their bad bytes shown as U+FFFD.
 */
struct json_writer {
	struct buf *buf; /* not owned */
	bool comma;
};

void json_writer_init(struct json_writer *w, struct buf *buf);
void json_begin(struct json_writer *w, char bracket);  /* '{' or '[' */
void json_end(struct json_writer *w, char bracket);    /* '}' or ']' */
void json_key(struct json_writer *w, const char *key); /* plain ASCII key */
void json_string(struct json_writer *w, const char *s, size_t n);
void json_cstring(struct json_writer *w, const char *s);
void json_i64(struct json_writer *w, int64_t v);
void json_u64(struct json_writer *w, uint64_t v);
void json_bool(struct json_writer *w, bool v);
void json_null(struct json_writer *w);
void json_base64(struct json_writer *w, const void *p, size_t n);
void json_raw(struct json_writer *w, const char *text, size_t n);
void json_slice_key(struct json_writer *w, struct slice key); /* escaped */

#endif
