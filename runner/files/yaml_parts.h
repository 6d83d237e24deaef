/* SPDX-License-Identifier: ISC */
/*
 * What the two parts of the YAML reader share: the position in the text.
 * yaml.c reads the structure, yaml_scalar.c the scalars.
 */
#ifndef YAML_PARTS_H
#define YAML_PARTS_H

#include <string.h>

#include "yaml.h"

struct yaml_parser {
	struct yaml_doc *doc;
	const char *start, *p, *end;
	const char *line; /* its beginning */
	unsigned depth;
	unsigned brackets; /* that are open */
	bool fresh;	   /* nothing but indentation came before on the line */
	bool failed;
};

/* --- yaml.c --------------------------------------------------------------- */

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

/* --- yaml_scalar.c -------------------------------------------------------- */

/* Take a scalar without quotes, one in quotes, and a block of text (`|`, `>`),
 * whose first character is at the position. `indent`: lines that are indented
 * less do not belong to it. `parent`: the indentation of what holds it. */
struct yaml_value *yaml_take_plain(struct yaml_parser *y, int indent);
struct yaml_value *yaml_take_quoted(struct yaml_parser *y);
struct yaml_value *yaml_take_text_block(struct yaml_parser *y, int parent);

/* --- Characters ----------------------------------------------------------- */

/* The character at a distance; '\0' after the end. */
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

/* Nothing, a blank or a line's end, at a distance. */
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

#endif
