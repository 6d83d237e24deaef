/* SPDX-License-Identifier: ISC */
/*
 * Reads YAML: mappings, sequences and documents, and the scalars in them:
 * without quotes, in quotes, and blocks of text.
 */
#include "yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

struct yaml_parser {
	struct yaml_doc *doc;
	const char *start, *p, *end;
	const char *line; /* its beginning */
	unsigned depth;
	unsigned brackets; /* that are open */
	bool fresh;	   /* nothing but indentation came before on the line */
	bool failed;
};

/* --- Characters ----------------------------------------------------------- */

static void yaml_fail(struct yaml_parser *y, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void yaml_take_break(struct yaml_parser *y);
static bool yaml_is_boundary(const struct yaml_parser *y);
static struct yaml_value *yaml_new_scalar(
    struct yaml_parser *y, struct buf *b, bool plain);

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

/*
 * Reads the scalars of YAML: without quotes, in quotes, and blocks of text.
 */

/*
 * Takes the blanks and line ends between two words. *breaks becomes the number
 * of line ends. Returns the blanks of a line that does not end.
 */
static struct slice
take_gap(struct yaml_parser *y, unsigned *breaks)
{
	struct slice blanks = { y->p, 0 };

	*breaks = 0;
	while (
	    !yaml_is_end(y) && (yaml_is_blank(*y->p) || yaml_is_break(*y->p))) {
		if (yaml_is_break(*y->p)) {
			yaml_take_break(y);
			++*breaks;
			blanks.len = 0;
		} else {
			y->p++;
			blanks.len += *breaks == 0;
		}
	}
	return blanks;
}

/* One line end is a blank; of more, each but the first is a line end. */
static void
put_gap(struct buf *b, struct slice blanks, unsigned breaks)
{
	if (breaks == 0)
		buf_put(b, blanks.ptr, blanks.len);
	else if (breaks == 1)
		buf_puts(b, " ");
	for (unsigned i = 1; i < breaks; i++)
		buf_puts(b, "\n");
}

/* Where a plain scalar ends within a line. */
static bool
ends_plain(struct yaml_parser *y)
{
	char c = *y->p;

	if (c == ':' && yaml_is_space_at(y, 1))
		return true;
	if (y->brackets == 0)
		return false;
	if (c == ':' && yaml_is_one_of(yaml_peek(y, 1), ",?[]{}")) {
		yaml_fail(y, "an unexpected `:`");
		return true;
	}
	return yaml_is_one_of(c, ",?[]{}");
}

static void
take_plain_words(struct yaml_parser *y, struct buf *b)
{
	const char *from = y->p;

	while (!yaml_is_end(y) && !yaml_is_blank(*y->p) &&
	       !yaml_is_break(*y->p) && !ends_plain(y))
		y->p++;
	buf_put(b, from, y->failed ? 0 : (size_t)(y->p - from));
}

/* A tab may not be what indents the next line of a plain scalar. */
static bool
has_tab_before(const struct yaml_parser *y, int indent)
{
	for (const char *c = y->line; c < y->p && c - y->line < indent; c++)
		if (*c == '\t')
			return true;
	return false;
}

static bool
goes_on(struct yaml_parser *y, int indent, unsigned breaks)
{
	if (yaml_is_boundary(y) || *y->p == '#')
		return false;
	if (breaks > 0 && y->brackets == 0 && has_tab_before(y, indent)) {
		yaml_fail(y, "a tab in the indentation");
		return false;
	}
	if (breaks > 0 && y->brackets == 0 && yaml_column(y) < indent)
		return false;
	return !ends_plain(y);
}

/* Lines after the first are indented by at least `indent`. */
static struct yaml_value *
yaml_take_plain(struct yaml_parser *y, int indent)
{
	struct slice blanks;
	struct buf b;
	const char *p, *line;
	unsigned breaks;

	buf_init(&b, (size_t)(y->end - y->p) + 1);
	for (;;) {
		take_plain_words(y, &b);
		p = y->p;
		line = y->line;
		blanks = take_gap(y, &breaks);
		if (y->failed || p == y->p || !goes_on(y, indent, breaks))
			break;
		put_gap(&b, blanks, breaks);
	}
	if (!y->failed) {
		y->p = p;
		y->line = line;
	}
	y->fresh = false;
	return yaml_new_scalar(y, &b, true);
}

static void
put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_put_u8(b, (uint8_t)c);
		return;
	}
	if (c < 0x800) {
		buf_put_u8(b, (uint8_t)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			buf_put_u8(b, (uint8_t)(0xe0 | c >> 12));
		} else {
			buf_put_u8(b, (uint8_t)(0xf0 | c >> 18));
			buf_put_u8(b, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_put_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
	}
	buf_put_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
}

static void
take_hex(struct yaml_parser *y, struct buf *b, unsigned digits)
{
	static const char hex[] = "0123456789abcdef";
	uint32_t code = 0;

	for (unsigned i = 0; i < digits; i++) {
		char c = yaml_peek(y, 0);
		const char *d =
		    c ? strchr(hex, c | (c > '9' ? 0x20 : 0)) : NULL;

		if (d == NULL) {
			yaml_fail(
			    y, "invalid escape, expected %u digits", digits);
			return;
		}
		code = code << 4 | (uint32_t)(d - hex);
		y->p++;
	}
	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		yaml_fail(y, "an escape that is no character");
	else
		put_utf8(b, code);
}

/* After the backslash. */
static void
take_escape(struct yaml_parser *y, struct buf *b)
{
	static const struct {
		char name;
		uint16_t code;
	} escapes[] = { { '0', 0 }, { 'a', 7 }, { 'b', 8 }, { 't', 9 },
		{ '\t', 9 }, { 'n', 10 }, { 'v', 11 }, { 'f', 12 }, { 'r', 13 },
		{ 'e', 27 }, { ' ', ' ' }, { '"', '"' }, { '/', '/' },
		{ '\\', '\\' }, { 'N', 0x85 }, { '_', 0xa0 }, { 'L', 0x2028 },
		{ 'P', 0x2029 } };
	char c = yaml_peek(y, 0);

	for (size_t i = 0; i < nitems(escapes) && !yaml_is_end(y); i++)
		if (c == escapes[i].name) {
			y->p++;
			put_utf8(b, escapes[i].code);
			return;
		}
	if (c != 'x' && c != 'u' && c != 'U') {
		yaml_fail(y, "invalid escape");
		return;
	}
	y->p++;
	take_hex(y, b, c == 'x' ? 2 : c == 'u' ? 4 : 8);
}

/*
 * An escaped line end joins what it separates. Of the lines without text after
 * it, each is a line end.
 */
static void
take_continuation(struct yaml_parser *y, struct buf *b)
{
	unsigned breaks;

	take_gap(y, &breaks);
	for (unsigned i = 1; i < breaks; i++)
		buf_puts(b, "\n");
}

static void
take_quoted_piece(struct yaml_parser *y, struct buf *b, char quote)
{
	struct slice blanks;
	unsigned breaks;

	if (yaml_is_blank(*y->p) || yaml_is_break(*y->p)) {
		blanks = take_gap(y, &breaks);
		put_gap(b, blanks, breaks);
	} else if (quote == '"' && *y->p == '\\') {
		y->p++;
		if (!yaml_is_end(y) && yaml_is_break(*y->p))
			take_continuation(y, b);
		else
			take_escape(y, b);
	} else {
		y->p += *y->p == quote; /* the first of two */
		buf_put(b, y->p++, 1);
	}
}

static struct yaml_value *
yaml_take_quoted(struct yaml_parser *y)
{
	char quote = *y->p++;
	struct buf b;

	buf_init(&b, (size_t)(y->end - y->p) * 2 + 8);
	while (!y->failed) {
		if (yaml_is_boundary(y))
			yaml_fail(y, "a string that does not end");
		else if (*y->p == quote &&
			 (quote == '"' || yaml_peek(y, 1) != '\''))
			break;
		else
			take_quoted_piece(y, &b, quote);
	}
	if (!y->failed)
		y->p++;
	y->fresh = false;
	return yaml_new_scalar(y, &b, false);
}

/* --- Block scalars ------------------------------------------------------ */

struct block {
	bool folded;
	char chomp;		   /* '-', '+' or '\0' */
	int indent;		   /* 0: not known yet */
	bool line_break, indented; /* the line before; its first was a blank */
	unsigned empty;		   /* lines after it */
};

static void
take_block_header(struct yaml_parser *y, struct block *k, int parent)
{
	k->folded = *y->p++ == '>';
	for (int i = 0; i < 2; i++) {
		char c = yaml_peek(y, 0);

		if (yaml_is_one_of(c, "+-") && k->chomp == '\0') {
			k->chomp = c;
			y->p++;
		} else if (c >= '1' && c <= '9' && k->indent == 0) {
			k->indent = c - '0' + (parent >= 0 ? parent : 0);
			y->p++;
		}
	}
	while (yaml_is_blank(yaml_peek(y, 0)))
		y->p++;
	if (yaml_peek(y, 0) == '#')
		while (!yaml_is_end(y) && !yaml_is_break(*y->p))
			y->p++;
	if (!yaml_is_end(y) && !yaml_is_break(*y->p))
		yaml_fail(y, "text behind the head of a block of text");
	else if (!yaml_is_end(y))
		yaml_take_break(y);
}

/* Takes lines without text. Finds out the indentation if it is not known. */
static void
take_empty_lines(struct yaml_parser *y, struct block *k, int parent)
{
	int deepest = 0;

	for (;;) {
		while (yaml_peek(y, 0) == ' ' &&
		       (k->indent == 0 || yaml_column(y) < k->indent))
			y->p++;
		if (yaml_column(y) > deepest)
			deepest = yaml_column(y);
		if (yaml_peek(y, 0) == '\t' &&
		    (k->indent == 0 || yaml_column(y) < k->indent))
			yaml_fail(y, "a tab in the indentation");
		if (yaml_is_end(y) || !yaml_is_break(*y->p))
			break;
		yaml_take_break(y);
		k->empty++;
	}
	if (k->indent == 0) {
		k->indent = parent + 1 > 1 ? parent + 1 : 1;
		if (deepest > k->indent)
			k->indent = deepest;
	}
}

/* What separates a line from the one before. */
static void
put_line_break(struct yaml_parser *y, struct block *k, struct buf *b)
{
	bool indented = yaml_is_blank(yaml_peek(y, 0));

	if (k->line_break && k->folded && !k->indented && !indented) {
		if (k->empty == 0)
			buf_puts(b, " ");
	} else if (k->line_break) {
		buf_puts(b, "\n");
	}
	for (; k->empty > 0; k->empty--)
		buf_puts(b, "\n");
	k->indented = indented;
}

static struct yaml_value *
yaml_take_text_block(struct yaml_parser *y, int parent)
{
	struct block k = { 0 };
	struct buf b;

	buf_init(&b, (size_t)(y->end - y->p) + 8);
	take_block_header(y, &k, parent);
	take_empty_lines(y, &k, parent);
	while (!yaml_is_end(y) && yaml_column(y) == k.indent) {
		const char *from;

		put_line_break(y, &k, &b);
		for (from = y->p; !yaml_is_end(y) && !yaml_is_break(*y->p);
		     y->p++)
			;
		buf_put(&b, from, (size_t)(y->p - from));
		k.line_break = !yaml_is_end(y);
		if (k.line_break)
			yaml_take_break(y);
		take_empty_lines(y, &k, parent);
	}
	if (k.chomp != '-' && k.line_break)
		buf_puts(&b, "\n");
	for (; k.chomp == '+' && k.empty > 0; k.empty--)
		buf_puts(&b, "\n");
	y->fresh = true;
	return yaml_new_scalar(y, &b, false);
}

/* Reads the structure of YAML: mappings, sequences and documents. */

/* Notes the error and its place, and moves to the end of the text. Only the
 * first error is noted. */
static void __attribute__((format(printf, 2, 3)))
yaml_fail(struct yaml_parser *y, const char *fmt, ...)
{
	struct yaml_doc *d = y->doc;
	va_list ap;

	if (y->failed)
		return;
	y->failed = true;
	d->line = d->column = 1;
	for (const char *c = y->start; c < y->p; c++) {
		d->line += *c == '\n';
		d->column = *c == '\n' ? 1 : d->column + 1;
	}
	va_start(ap, fmt);
	vsnprintf(d->error, sizeof(d->error), fmt, ap);
	va_end(ap);
	y->p = y->end;
}

/* --- Positions and values ------------------------------------------------- */

/* Takes the end of a line, which is at the position. */
static void
yaml_take_break(struct yaml_parser *y)
{
	y->p += y->p[0] == '\r' && yaml_peek(y, 1) == '\n' ? 2 : 1;
	y->line = y->p;
	y->fresh = true;
}

/* "---" or "...", which end what is before. */
static bool
is_marker(const struct yaml_parser *y, const char *marker)
{
	return y->p == y->line && y->end - y->p >= 3 &&
	       memcmp(y->p, marker, 3) == 0 && yaml_is_space_at(y, 3);
}

/* Returns whether the document ends at the position. */
static bool
yaml_is_boundary(const struct yaml_parser *y)
{
	return yaml_is_end(y) || is_marker(y, "---") || is_marker(y, "...");
}

/* Blanks, comments and line ends. Indentation has no tabs. */
static void
skip(struct yaml_parser *y)
{
	for (;;) {
		while (
		    yaml_peek(y, 0) == ' ' ||
		    (yaml_peek(y, 0) == '\t' && (y->brackets > 0 || !y->fresh)))
			y->p++;
		if (yaml_peek(y, 0) == '#')
			while (!yaml_is_end(y) && !yaml_is_break(*y->p))
				y->p++;
		if (yaml_is_end(y) || !yaml_is_break(*y->p))
			return;
		yaml_take_break(y);
	}
}

static struct yaml_value *
new_value(struct yaml_parser *y, enum yaml_type type)
{
	struct yaml_value *v = json_alloc(&y->doc->arena, sizeof(*v));

	if (++y->doc->values > YAML_VALUES_MAX)
		yaml_fail(y, "over %d values in one file", YAML_VALUES_MAX);
	*v = (struct yaml_value){ .type = type, .text = { "", 0 } };
	return v;
}

/* A value that is not written counts as a plain scalar without text. */
static struct yaml_value *
new_nothing(struct yaml_parser *y)
{
	struct yaml_value *v = new_value(y, YAML_SCALAR);

	v->plain = true;
	return v;
}

static void
add(struct yaml_value *to, struct yaml_value *v)
{
	if (to->last != NULL)
		to->last->next = v;
	else
		to->first = v;
	to->last = v;
}

static void
add_member(
    struct yaml_value *to, const struct yaml_value *key, struct yaml_value *v)
{
	v->key = key->text;
	add(to, v);
}

/* Makes a scalar of the bytes in b and clears b. */
static struct yaml_value *
yaml_new_scalar(struct yaml_parser *y, struct buf *b, bool plain)
{
	struct yaml_value *v = new_value(y, YAML_SCALAR);
	char *copy = json_alloc(&y->doc->arena, b->len + 1);

	if (b->len > 0)
		memcpy(copy, b->data, b->len);
	v->text = (struct slice){ copy, b->len };
	v->plain = plain;
	buf_clear(b);
	return v;
}

/* --- Brackets ------------------------------------------------------------ */

static struct yaml_value *take_bracketed(struct yaml_parser *y);

static bool
may_begin_plain(const struct yaml_parser *y)
{
	char c = yaml_peek(y, 0);

	if (c == '-' || (y->brackets == 0 && (c == '?' || c == ':')))
		return !yaml_is_space_at(y, 1);
	return !yaml_is_space_at(y, 0) &&
	       !yaml_is_one_of(c, "?:,[]{}#&*!|>'\"%@`");
}

static bool
refuses(struct yaml_parser *y)
{
	char c = yaml_peek(y, 0);

	if (yaml_is_one_of(c, "&*!"))
		yaml_fail(y, "anchors, aliases and tags are not read");
	else if (c == '?' && yaml_is_space_at(y, 1))
		yaml_fail(y, "keys behind a `?` are not read");
	else if (c == '\t')
		yaml_fail(y, "a tab in the indentation");
	return y->failed;
}

/* A value without a block in it. `indent` is for its further lines. */
static struct yaml_value *
take_inline(struct yaml_parser *y, int indent)
{
	char c = yaml_peek(y, 0);

	if (refuses(y))
		return new_nothing(y);
	if (c == '"' || c == '\'')
		return yaml_take_quoted(y);
	if (c == '[' || c == '{')
		return take_bracketed(y);
	if (may_begin_plain(y))
		return yaml_take_plain(y, indent);
	yaml_fail(y, "a character that begins no value");
	return new_nothing(y);
}

/* In brackets, between a comma and the next. */
static struct yaml_value *
take_member_value(struct yaml_parser *y)
{
	skip(y);
	if (yaml_is_one_of(yaml_peek(y, 0), ",]}"))
		return new_nothing(y);
	return take_inline(y, 0);
}

/* True if what began at `from` is a key: its ':' is next and near. */
static bool
is_key(struct yaml_parser *y, const char *from, const char *line)
{
	const char *p = y->p;

	while (p < y->end && yaml_is_blank(*p))
		p++;
	if (p == y->end || *p != ':' || y->line != line ||
	    p - from > YAML_KEY_MAX)
		return false;
	y->p = p;
	return y->brackets > 0 || yaml_is_space_at(y, 1);
}

static void
expect_scalar_key(struct yaml_parser *y, const struct yaml_value *key)
{
	if (key->type != YAML_SCALAR)
		yaml_fail(y, "a key that is no scalar");
}

/* `key: value` or `key` in {}; in [] the first is a mapping of its own. */
static struct yaml_value *
take_member(struct yaml_parser *y, struct yaml_value *in)
{
	const char *from = y->p, *line = y->line;
	struct yaml_value *v = take_inline(y, 0), *key = v;
	bool pair = !y->failed && is_key(y, from, line);

	if (in->type == YAML_SEQUENCE && !pair)
		return v;
	expect_scalar_key(y, key);
	y->p += pair && !y->failed;
	v = pair ? take_member_value(y) : new_nothing(y);
	if (in->type == YAML_SEQUENCE) {
		in = new_value(y, YAML_MAPPING);
		add_member(in, key, v);
		return in;
	}
	v->key = key->text;
	return v;
}

static struct yaml_value *
take_bracketed(struct yaml_parser *y)
{
	bool list = *y->p++ == '[';
	char closing = list ? ']' : '}';
	struct yaml_value *v =
	    new_value(y, list ? YAML_SEQUENCE : YAML_MAPPING);

	y->brackets++;
	if (++y->depth > YAML_DEPTH_MAX)
		yaml_fail(
		    y, "over %d values inside each other", YAML_DEPTH_MAX);
	for (;;) {
		skip(y);
		if (y->failed || yaml_peek(y, 0) == closing)
			break;
		if (yaml_is_boundary(y)) {
			yaml_fail(y, "a `%c` is missing", closing);
			break;
		}
		add(v, take_member(y, v));
		skip(y);
		if (yaml_peek(y, 0) == ',')
			y->p++;
		else if (yaml_peek(y, 0) != closing)
			yaml_fail(y, "expected `,` or `%c`", closing);
	}
	if (!y->failed)
		y->p++;
	y->depth--;
	y->brackets--;
	y->fresh = false;
	return v;
}

/* --- Blocks -------------------------------------------------------------- */

static struct yaml_value *take_value(struct yaml_parser *y, int parent);

static bool
is_item(const struct yaml_parser *y)
{
	return yaml_peek(y, 0) == '-' && yaml_is_space_at(y, 1);
}

/*
 * Goes to the next line of a block whose lines begin in a column. Returns false
 * if the block ends.
 */
static bool
next_line(struct yaml_parser *y, int at)
{
	skip(y);
	if (y->failed || yaml_is_boundary(y) ||
	    (y->fresh && yaml_column(y) < at))
		return false;
	if (!y->fresh)
		yaml_fail(y, "unexpected text behind a value");
	else if (yaml_column(y) > at)
		yaml_fail(
		    y, "a line that is indented more than the one before");
	return !y->failed;
}

/* `inner`: the sequence is a value, no deeper than its key. */
static struct yaml_value *
take_sequence(struct yaml_parser *y, int at, bool inner)
{
	struct yaml_value *v = new_value(y, YAML_SEQUENCE);

	do {
		if (!is_item(y)) {
			if (!inner)
				yaml_fail(y, "expected `- `");
			break;
		}
		y->p++;
		y->fresh = true;
		add(v, take_value(y, at));
	} while (next_line(y, at));
	return v;
}

/* After the colon of a key that begins in a column. */
static struct yaml_value *
take_key_value(struct yaml_parser *y, int at)
{
	y->fresh = false;
	skip(y);
	if (y->fresh && !yaml_is_boundary(y) && yaml_column(y) == at &&
	    is_item(y))
		return take_sequence(y, at, true);
	return take_value(y, at);
}

static struct yaml_value *
take_key(struct yaml_parser *y, int at)
{
	const char *from = y->p, *line = y->line;
	struct yaml_value *key;

	if (is_item(y))
		yaml_fail(y, "a `-` among keys");
	key = take_inline(y, at + 1);
	if (!y->failed && !is_key(y, from, line))
		yaml_fail(y, "expected `:`");
	return key;
}

/* The first key is read, and its colon is next. */
static struct yaml_value *
take_mapping(struct yaml_parser *y, int at, struct yaml_value *key)
{
	struct yaml_value *v = new_value(y, YAML_MAPPING);

	while (!y->failed) {
		expect_scalar_key(y, key);
		if (y->failed)
			break;
		y->p++;
		add_member(v, key, take_key_value(y, at));
		if (!next_line(y, at))
			break;
		key = take_key(y, at);
	}
	return v;
}

static struct yaml_value *
take_line_value(struct yaml_parser *y, int parent)
{
	const char *from = y->p, *line = y->line;
	bool fresh = y->fresh;
	int at = yaml_column(y);
	struct yaml_value *v;

	if (is_item(y)) {
		if (!fresh)
			yaml_fail(y, "a `-` where no list may begin");
		return take_sequence(y, at, false);
	}
	if (yaml_is_one_of(*y->p, "|>"))
		return yaml_take_text_block(y, parent);
	v = take_inline(y, parent + 1);
	if (!y->failed && fresh && is_key(y, from, line))
		return take_mapping(y, at, v);
	return v;
}

/* A value in a block that begins in the column `parent`. */
static struct yaml_value *
take_value(struct yaml_parser *y, int parent)
{
	struct yaml_value *v;

	skip(y);
	if (y->failed || yaml_is_boundary(y) ||
	    (y->fresh && yaml_column(y) <= parent))
		return new_nothing(y);
	if (++y->depth > YAML_DEPTH_MAX)
		yaml_fail(
		    y, "over %d values inside each other", YAML_DEPTH_MAX);
	v = y->failed ? new_nothing(y) : take_line_value(y, parent);
	y->depth--;
	return v;
}

/* --- The document -------------------------------------------------------- */

/* What YAML does not permit in a file, and line ends that are none here. */
static bool
is_wrong(const unsigned char *c, size_t left)
{
	if (*c < 0x20)
		return *c != '\t' && *c != '\n' && *c != '\r';
	if (*c == 0x7f || (*c == 0xc2 && left > 1 && c[1] < 0xa0))
		return true;
	if (left < 3)
		return false;
	return memcmp(c, "\xe2\x80\xa8", 3) == 0 ||
	       memcmp(c, "\xe2\x80\xa9", 3) == 0 ||
	       memcmp(c, "\xef\xbb\xbf", 3) == 0 ||
	       memcmp(c, "\xef\xbf\xbe", 3) == 0 ||
	       memcmp(c, "\xef\xbf\xbf", 3) == 0;
}

static void
check_characters(struct yaml_parser *y)
{
	for (const char *c = y->p; c < y->end; c++)
		if (is_wrong((const unsigned char *)c, (size_t)(y->end - c))) {
			y->p = c;
			yaml_fail(y, "a control character");
			return;
		}
}

static void
take_end(struct yaml_parser *y)
{
	skip(y);
	if (is_marker(y, "...")) {
		y->p += 3;
		skip(y);
	}
	if (is_marker(y, "---"))
		yaml_fail(y, "more than one document");
	else if (!yaml_is_end(y))
		yaml_fail(y, "unexpected text behind the document");
}

static void
take_document(struct yaml_parser *y)
{
	skip(y);
	if (y->line == y->p && yaml_peek(y, 0) == '%')
		yaml_fail(y, "directives are not read");
	if (is_marker(y, "---")) {
		y->p += 3;
		y->fresh = false;
		y->doc->root = take_value(y, -1);
	} else if (!yaml_is_boundary(y)) {
		y->doc->root = take_value(y, -1);
	}
	take_end(y);
}

int
yaml_parse(struct yaml_doc *doc, const char *text, size_t len)
{
	static const char none[] = "";
	struct yaml_parser y = { .doc = doc, .fresh = true };

	*doc = (struct yaml_doc){ 0 };
	/* Nothing may be added to NULL, which is what an empty text may be. */
	y.start = y.p = y.line = len > 0 ? text : none;
	y.end = y.start + len;
	if (utf8_check(0, (const uint8_t *)y.start, len) != 0)
		yaml_fail(&y, "the text is not UTF-8");
	if (!y.failed && len >= 3 && memcmp(y.p, "\xef\xbb\xbf", 3) == 0) {
		y.p += 3;
		y.line = y.p - 1; /* the mark is a column, as for the peer */
	}
	if (!y.failed)
		check_characters(&y);
	if (!y.failed)
		take_document(&y);
	return y.failed ? -EBADMSG : 0;
}

void
yaml_clear(struct yaml_doc *doc)
{
	json_clear(&doc->arena);
}

const struct yaml_value *
yaml_get(const struct yaml_value *mapping, const char *key, bool *again)
{
	struct slice wanted = { key, strlen(key) };
	const struct yaml_value *found = NULL;

	for (const struct yaml_value *v = mapping->first; v; v = v->next)
		if (slice_equal(v->key, wanted)) {
			*again |= found != NULL;
			if (found == NULL)
				found = v;
		}
	return found;
}

static bool
is_nothing(const struct yaml_value *v)
{
	return v->type == YAML_SCALAR && v->plain && v->text.len == 0;
}

bool
yaml_is_null(const struct yaml_value *v)
{
	return is_nothing(v) || (v->type == YAML_SCALAR && v->plain &&
				    (slice_equal(v->text, SLICE("~")) ||
					slice_equal(v->text, SLICE("null")) ||
					slice_equal(v->text, SLICE("Null")) ||
					slice_equal(v->text, SLICE("NULL"))));
}

bool
yaml_is_mapping(const struct yaml_value *v)
{
	return v->type == YAML_MAPPING || is_nothing(v);
}

bool
yaml_is_sequence(const struct yaml_value *v)
{
	return v->type == YAML_SEQUENCE || is_nothing(v);
}
