/* SPDX-License-Identifier: ISC */
/*
 * Reads one scalar of YAML: without quotes, in quotes, or a block of text.
 */
#include <stdint.h>
#include <string.h>

#include "utf8.h"
#include "yaml.h"

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
struct yaml_value *
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
		utf8_put(b, code);
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
			utf8_put(b, escapes[i].code);
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

struct yaml_value *
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

struct yaml_value *
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
