/* SPDX-License-Identifier: ISC */
/*
 * Reads the part of YAML 1.1 in which the front matter of a skill and its
 * agents/openai.yaml are written: mappings and sequences, in blocks or in
 * brackets, and every kind of scalar. Anchors, aliases, tags, directives, keys
 * that are no scalars and more than one document are refused, each by its name
 * and place. The files may be of anybody.
 */
#ifndef YAML_H
#define YAML_H

#include <string.h>

#include "json.h"

#define YAML_VALUES_MAX 10000 /* values of one file */
#define YAML_DEPTH_MAX	64
#define YAML_KEY_MAX	1024 /* bytes from the beginning of a key to its ':' */
#define YAML_ERROR_MAX	128

enum yaml_type {
	YAML_SCALAR,
	YAML_SEQUENCE,
	YAML_MAPPING,
};

struct yaml_value {
	enum yaml_type type;
	bool plain;	   /* a scalar without quotes */
	struct slice key;  /* if member of a mapping */
	struct slice text; /* YAML_SCALAR: decoded */
	struct yaml_value *first, *last, *next;
};

struct yaml_doc {
	struct json_doc arena;
	struct yaml_value *root; /* NULL: the text has no value */
	unsigned values;
	unsigned line, column; /* of the error */
	char error[YAML_ERROR_MAX];
};

/*
 * Returns 0, or -EBADMSG with the error in doc. Call yaml_clear() in either
 * case. The text must outlive the tree.
 */
int yaml_parse(struct yaml_doc *doc, const char *text, size_t len);
void yaml_clear(struct yaml_doc *doc);

/*
 * Returns the member of a mapping, or NULL. *again becomes true if there is
 * more than one.
 */
const struct yaml_value *yaml_get(
    const struct yaml_value *mapping, const char *key, bool *again);

/* A plain scalar that stands for nothing: empty, ~, null. */
bool yaml_is_null(const struct yaml_value *v);

/* Nothing that is written counts as a mapping, or sequence, without members. */
bool yaml_is_mapping(const struct yaml_value *v);
bool yaml_is_sequence(const struct yaml_value *v);

/* --- shared by yaml.c and yaml_scalar.c --------------------------------- */

struct yaml_parser {
	struct yaml_doc *doc;
	const char *start, *p, *end;
	const char *line; /* its beginning */
	unsigned depth;
	unsigned brackets; /* that are open */
	bool fresh;	   /* nothing but indentation came before on the line */
	bool failed;
};

/* Returns the character at a distance; '\0' after the end. */
static inline char
yaml_peek(const struct yaml_parser *y, size_t distance)
{
	return distance < (size_t)(y->end - y->p) ? y->p[distance] : '\0';
}

static inline bool
yaml_is_end(const struct yaml_parser *y)
{
	return y->p == y->end;
}

static inline bool
yaml_is_break(char c)
{
	return c == '\n' || c == '\r';
}

static inline bool
yaml_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Tells whether the end, a blank or a line's end is at a distance. */
static inline bool
yaml_is_space_at(const struct yaml_parser *y, size_t distance)
{
	char c = yaml_peek(y, distance);

	return yaml_is_blank(c) || yaml_is_break(c) || c == '\0';
}

static inline bool
yaml_is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

static inline int
yaml_column(const struct yaml_parser *y)
{
	return (int)(y->p - y->line);
}

/* Notes the error and its place, and moves to the end of the text. Only the
 * first error is noted. */
void yaml_fail(struct yaml_parser *y, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes the end of a line, which is at the position. */
void yaml_take_break(struct yaml_parser *y);

/* Returns whether the document ends at the position. */
bool yaml_is_boundary(const struct yaml_parser *y);

/* Makes a scalar of the bytes in b and clears b. */
struct yaml_value *yaml_new_scalar(
    struct yaml_parser *y, struct buf *b, bool plain);

/* Take a scalar. A plain one ends before a line that is indented by less than
 * `indent`, and a block of text before one that is not indented more than its
 * parent. */
struct yaml_value *yaml_take_plain(struct yaml_parser *y, int indent);
struct yaml_value *yaml_take_quoted(struct yaml_parser *y);
struct yaml_value *yaml_take_text_block(struct yaml_parser *y, int parent);

#endif
