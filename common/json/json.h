/* SPDX-License-Identifier: ISC */
/*
 * Parses JSON text into a small tree, and writes JSON. Only json.c uses yajl,
 * and only its callback parser.
 *
 * The parser is strict. It accepts one value and nothing after it, no comments,
 * no duplicate keys at any depth (compared after unescaping), no lone
 * surrogates, only valid UTF-8, and at most JSON_MAX_DEPTH nested containers
 * (doc/protocol.md section 2.3). Numbers stay text until they are converted.
 * Nothing here is recursive.
 */
#pragma once

#include "base.h"
#include "buf.h"

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
	bool boolean;	   /* JSON_BOOL */
	size_t count;	   /* JSON_ARRAY, JSON_OBJECT: members */
	struct slice text; /* JSON_STRING: unescaped; JSON_NUMBER: as written */
	struct slice key;  /* if it is a member of an object */
	struct json_value *first; /* first child, in the order of the text */
	struct json_value *next;  /* next sibling */
};

/*
 * The tree of one text. Strings without escapes point into the parsed text, so
 * the text must outlive the tree. Everything else is in the arena.
 */
struct json_doc {
	struct json_value *root;
	struct json_block *arena; /* owned */
	char
	    /* as serde writes it: "... at line 1 column 4" */
	    error[JSON_ERROR_MAX];
};

/* Parses the text and initialises *doc. Returns 0, or -EBADMSG with doc->error
 * set and an empty tree. In both cases the caller ends with json_clear(). */
int json_parse(struct json_doc *doc, const char *text, size_t len);
void json_clear(struct json_doc *doc);

/* Lets the tree point into `to`, a copy of the len bytes of the text that it
 * was parsed from. */
void json_move(
    struct json_doc *doc, const char *from, size_t len, const char *to);

/* Allocates n bytes that live as long as the tree. Never returns NULL. */
void *json_alloc(struct json_doc *doc, size_t n);

/* json_get() returns a member of an object by name, or NULL. json_is() returns
 * true if the value is a string equal to `text`. */
const struct json_value *json_get(
    const struct json_value *object, const char *key);
bool json_is(const struct json_value *string, const char *text);

/* Converts a number to an integer. Returns 0, or -ERANGE for a fraction, an
 * exponent, a value out of range, or a value that is no number. */
int json_to_i64(const struct json_value *v, int64_t *out);
int json_to_u64(const struct json_value *v, uint64_t *out);

/*
 * Writes JSON. Values are appended to the buffer, and commas are added
 * automatically.
 *
 *	json_begin(&w, '{');
 *	json_key_u64(&w, "seq", 7);
 *	json_end(&w, '}');
 *
 * In strings that are not UTF-8, each invalid byte becomes U+FFFD.
 */
struct json_writer {
	struct buf *buf; /* not owned */
	bool comma;
};

void json_writer_init(struct json_writer *w, struct buf *buf);

/* A text with its writer. Whoever has taken the text clears buf. */
struct json_text {
	struct buf buf;
	struct json_writer w;
};

void json_text_init(struct json_text *t, size_t limit);

/* Writes what stands in t, which is one value, or some between commas. */
void json_text_put(struct json_writer *w, const struct json_text *t);

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

/* Write a member: the key, and the value. */
void json_key_string(
    struct json_writer *w, const char *key, const char *s, size_t n);
void json_key_cstring(struct json_writer *w, const char *key, const char *s);
/* s may be NULL: null. */
void json_key_optional(struct json_writer *w, const char *key, const char *s);
void json_key_base64(
    struct json_writer *w, const char *key, const void *p, size_t n);
/* Begins an object or an array, which json_end() ends. */
void json_key_begin(struct json_writer *w, const char *key, char bracket);
void json_key_u64(struct json_writer *w, const char *key, uint64_t v);
void json_key_i64(struct json_writer *w, const char *key, int64_t v);
void json_key_bool(struct json_writer *w, const char *key, bool v);

/* Write a value as it was parsed, null for NULL, and a member of an object. The
 * depth of recursion is bounded by JSON_MAX_DEPTH. */
void json_copy(struct json_writer *w, const struct json_value *v);
void json_copy_member(struct json_writer *w, const struct json_value *v);
