/* SPDX-License-Identifier: ISC */
/*
 * Reads the structure of YAML: mappings, sequences and documents. yaml_scalar.c
 * reads the scalars in them.
 */
#include "yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

/* Notes the error and its place, and moves to the end of the text. Only the
 * first error is noted. */
void
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
void
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
bool
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
struct yaml_value *
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
