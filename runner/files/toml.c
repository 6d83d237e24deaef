/* SPDX-License-Identifier: ISC */
#include "toml.h"

#include "utf8.h"

/* --- the text ----------------------------------------------------------- */

struct parser {
	struct toml_doc *doc;
	const char *p, *end, *start;
	unsigned depth;
	bool failed;
};

static void __attribute__((format(printf, 2, 3)))
fail(struct parser *t, const char *fmt, ...)
{
	struct toml_doc *d = t->doc;
	va_list ap;

	if (t->failed)
		return;
	t->failed = true;
	d->line = d->column = 1;
	for (const char *c = t->start; c < t->p; c++) {
		d->line += *c == '\n';
		d->column = *c == '\n' ? 1 : d->column + 1;
	}
	va_start(ap, fmt);
	vsnprintf(d->error, sizeof(d->error), fmt, ap);
	va_end(ap);
	t->p = t->end;
}

static bool
at(const struct parser *t, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(t->end - t->p) >= n && memcmp(t->p, text, n) == 0;
}

static bool
take(struct parser *t, const char *text)
{
	if (!at(t, text))
		return false;
	t->p += strlen(text);
	return true;
}

static void
skip_blanks(struct parser *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
		t->p++;
}

static bool
is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static void
skip_comment(struct parser *t)
{
	if (!take(t, "#"))
		return;
	while (t->p < t->end && *t->p != '\n' && !at(t, "\r\n")) {
		if (is_control(*t->p)) {
			fail(t, "control character in a comment");
			return;
		}
		t->p++;
	}
}

static bool
take_newline(struct parser *t)
{
	return take(t, "\n") || take(t, "\r\n");
}

/*
 * Skips blanks, comments and newlines, between array elements and between
 * lines.
 */
static void
skip_space(struct parser *t)
{
	do {
		skip_blanks(t);
		skip_comment(t);
	} while (take_newline(t));
}

static void
end_of_line(struct parser *t)
{
	skip_blanks(t);
	skip_comment(t);
	if (t->p < t->end && !take_newline(t))
		fail(t, "unexpected text, expected a new line");
}

static struct toml_value *
new_value(struct parser *t, enum toml_type type)
{
	struct toml_value *v = json_alloc(&t->doc->arena, sizeof(*v));

	if (++t->doc->values > TOML_VALUES_MAX)
		fail(t, "over %d values in one file", TOML_VALUES_MAX);
	*v = (struct toml_value){ .type = type };
	return v;
}

static void
add(struct toml_value *to, struct toml_value *v)
{
	if (to->last != NULL)
		to->last->next = v;
	else
		to->first = v;
	to->last = v;
}

struct toml_value *
toml_get(const struct toml_value *table, struct slice key)
{
	for (struct toml_value *v = table->first; v != NULL; v = v->next)
		if (slice_equal(v->key, key))
			return v;
	return NULL;
}

/* --- Strings ------------------------------------------------------------ */

static uint32_t
take_hex(struct parser *t, unsigned digits)
{
	uint32_t code = 0;

	for (unsigned i = 0; i < digits; i++) {
		const char *hex = "0123456789abcdef";
		const char *d = NULL;

		if (t->p < t->end && *t->p != '\0')
			d = strchr(hex, *t->p | (*t->p > '9' ? 0x20 : 0));
		if (d == NULL) {
			fail(t, "invalid escape, expected %u digits", digits);
			return 0;
		}
		code = code << 4 | (uint32_t)(d - hex);
		t->p++;
	}
	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		fail(t, "an escape that is not a character");
	return code;
}

/* A backslash at the end of a line joins it with the text after it. */
static bool
take_continuation(struct parser *t)
{
	const char *p = t->p;

	skip_blanks(t);
	if (!take_newline(t)) {
		t->p = p;
		return false;
	}
	do
		skip_blanks(t);
	while (take_newline(t));
	return true;
}

static void
take_escape(struct parser *t, struct buf *b, bool lines)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	const char *found;

	if (lines && take_continuation(t))
		return;
	if (take(t, "u")) {
		utf8_put(b, take_hex(t, 4));
		return;
	}
	if (take(t, "U")) {
		utf8_put(b, take_hex(t, 8));
		return;
	}
	found = t->p < t->end && *t->p ? strchr(from, *t->p) : NULL;
	if (found == NULL) {
		fail(t, "invalid escape");
		return;
	}
	buf_put(b, &to[found - from], 1);
	t->p++;
}

/*
 * Called after the opening quotes. Up to two quotes may stand before the three
 * closing ones.
 */
static bool
take_closing(struct parser *t, struct buf *b, const char *quotes)
{
	if (!take(t, quotes))
		return false;
	for (int i = 0;
	     i < 2 && quotes[1] && t->p < t->end && *t->p == quotes[0]; i++) {
		buf_put(b, quotes, 1);
		t->p++;
	}
	return true;
}

static struct slice
take_quoted(struct parser *t, const char *quotes)
{
	bool lines = quotes[1] != '\0', basic = quotes[0] == '"';
	struct buf b;
	struct slice s;
	char *copy;

	buf_init(&b, (size_t)(t->end - t->p) + 8);
	if (lines)
		take_newline(t);
	while (!t->failed && !take_closing(t, &b, quotes)) {
		if (t->p == t->end) {
			fail(t, "a string that does not end");
		} else if (basic && take(t, "\\")) {
			take_escape(t, &b, lines);
		} else if (lines && take_newline(t)) {
			buf_put(&b, "\n", 1);
		} else if (is_control(*t->p)) {
			fail(t, "control character in a string");
		} else {
			buf_put(&b, t->p++, 1);
		}
	}
	copy = json_alloc(&t->doc->arena, b.len + 1);
	if (b.len > 0)
		memcpy(copy, b.data, b.len);
	s = (struct slice){ copy, b.len };
	buf_clear(&b);
	return s;
}

/* --- Keys --------------------------------------------------------------- */

static bool
is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static struct slice
take_key(struct parser *t)
{
	const char *from;

	skip_blanks(t);
	if (take(t, "\""))
		return take_quoted(t, "\"");
	if (take(t, "'"))
		return take_quoted(t, "'");
	from = t->p;
	while (t->p < t->end && is_bare(*t->p))
		t->p++;
	if (t->p == from)
		fail(t, "expected a key");
	return (struct slice){ from, (size_t)(t->p - from) };
}

static struct toml_value *
new_member(struct parser *t, struct toml_value *table, enum toml_type type,
    struct slice key)
{
	struct toml_value *v = new_value(t, type);

	v->key = key;
	add(table, v);
	return v;
}

/* Returns the table that a key, other than the last of a path, leads to. */
static struct toml_value *
enter(struct parser *t, struct toml_value *table, struct slice key, bool header)
{
	struct toml_value *v = toml_get(table, key);

	if (++t->depth > TOML_DEPTH_MAX)
		fail(t, "over %d tables inside each other", TOML_DEPTH_MAX);
	if (v == NULL) {
		v = new_member(t, table, TOML_TABLE, key);
		v->dotted = !header;
		return v;
	}
	if (header && v->type == TOML_ARRAY && v->headers)
		return v->last;
	if (v->type != TOML_TABLE || v->closed || (!header && v->defined))
		fail(t, "duplicate key");
	return v;
}

/*
 * Reads a path like a.b.c. Returns the last key; *table becomes the table it
 * belongs to.
 */
static struct slice
take_path(struct parser *t, struct toml_value **table, bool header)
{
	struct slice key = take_key(t);

	for (;;) {
		skip_blanks(t);
		if (t->failed || !take(t, "."))
			return key;
		*table = enter(t, *table, key, header);
		if (t->failed)
			return key;
		key = take_key(t);
	}
}

/* --- Values ------------------------------------------------------------- */

static struct toml_value *take_value(struct parser *t);

static void
take_member(struct parser *t, struct toml_value *table)
{
	unsigned depth = t->depth;
	struct slice key = take_path(t, &table, false);
	struct toml_value *v;

	if (!t->failed && toml_get(table, key) != NULL)
		fail(t, "duplicate key");
	if (!t->failed && !take(t, "="))
		fail(t, "key with no value, expected `=`");
	skip_blanks(t);
	v = take_value(t);
	v->key = key;
	v->defined = true;
	add(table, v);
	t->depth = depth;
}

static void
close_tables(struct toml_value *table)
{
	table->closed = true;
	for (struct toml_value *v = table->first; v != NULL; v = v->next)
		if (v->type == TOML_TABLE)
			close_tables(v);
}

static struct toml_value *
take_inline_table(struct parser *t)
{
	struct toml_value *table = new_value(t, TOML_TABLE);

	skip_blanks(t);
	if (!take(t, "}"))
		do {
			take_member(t, table);
			skip_blanks(t);
		} while (!t->failed && take(t, ",") && (skip_blanks(t), true));
	else
		goto closed;
	if (!t->failed && !take(t, "}"))
		fail(t, "an inline table that does not end");
closed:
	close_tables(table);
	return table;
}

static struct toml_value *
take_array(struct parser *t)
{
	struct toml_value *array = new_value(t, TOML_ARRAY);

	for (;;) {
		skip_space(t);
		if (t->failed || take(t, "]"))
			return array;
		add(array, take_value(t));
		skip_space(t);
		if (t->failed || take(t, "]"))
			return array;
		if (!take(t, ","))
			fail(t, "expected `,` or `]`");
	}
}

static bool
is_literal_character(char c)
{
	return is_bare(c) || c == '+' || c == '.' || c == ':';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * A number, a boolean, a date or a time is passed on as it stands. Whoever
 * reads it judges it. A word is told here, because a string without quotes is
 * the usual mistake.
 */
static bool
is_literal(struct slice text)
{
	if (slice_equal(text, SLICE("true")) ||
	    slice_equal(text, SLICE("false")))
		return true;
	if (text.len > 0 && (*text.ptr == '+' || *text.ptr == '-'))
		text = (struct slice){ text.ptr + 1, text.len - 1 };
	return slice_equal(text, SLICE("inf")) ||
	       slice_equal(text, SLICE("nan")) ||
	       (text.len > 0 && is_digit(*text.ptr));
}

static struct toml_value *
take_literal(struct parser *t)
{
	struct toml_value *v = new_value(t, TOML_LITERAL);
	const char *from = t->p;

	while (t->p < t->end && is_literal_character(*t->p))
		t->p++;
	/* A time may follow a date of ten characters behind a blank. */
	if (t->p - from == 10 && from[4] == '-' && t->end - t->p > 3 &&
	    t->p[0] == ' ' && is_digit(t->p[1]) && is_digit(t->p[2]) &&
	    t->p[3] == ':')
		for (t->p++; t->p < t->end && is_literal_character(*t->p);)
			t->p++;
	v->text = (struct slice){ from, (size_t)(t->p - from) };
	if (!is_literal(v->text)) {
		t->p = from;
		fail(t, "no value: string values must be quoted");
	}
	return v;
}

static struct toml_value *
take_string(struct parser *t)
{
	static const char *const quotes[] = { "\"\"\"", "'''", "\"", "'" };
	struct toml_value *v = new_value(t, TOML_STRING);

	for (size_t i = 0; i < nitems(quotes); i++)
		if (take(t, quotes[i])) {
			v->text = take_quoted(t, quotes[i]);
			break;
		}
	return v;
}

static struct toml_value *
take_value(struct parser *t)
{
	struct toml_value *v;

	if (++t->depth > TOML_DEPTH_MAX)
		fail(t, "over %d values inside each other", TOML_DEPTH_MAX);
	if (t->failed)
		v = new_value(t, TOML_LITERAL);
	else if (at(t, "\"") || at(t, "'"))
		v = take_string(t);
	else if (take(t, "["))
		v = take_array(t);
	else if (take(t, "{"))
		v = take_inline_table(t);
	else
		v = take_literal(t);
	t->depth--;
	return v;
}

/* --- Lines -------------------------------------------------------------- */

static struct toml_value *
define_table(struct parser *t, struct toml_value *in, struct slice key)
{
	struct toml_value *v = toml_get(in, key);

	if (v == NULL)
		v = new_member(t, in, TOML_TABLE, key);
	else if (v->type != TOML_TABLE || v->defined || v->dotted || v->closed)
		fail(t, "duplicate key");
	v->defined = true;
	return v;
}

static struct toml_value *
append_table(struct parser *t, struct toml_value *in, struct slice key)
{
	struct toml_value *array = toml_get(in, key), *v;

	if (array == NULL) {
		array = new_member(t, in, TOML_ARRAY, key);
		array->headers = array->defined = true;
	} else if (!array->headers) {
		fail(t, "duplicate key");
	}
	v = new_value(t, TOML_TABLE);
	v->defined = true;
	if (array->headers)
		add(array, v);
	return v;
}

/* Returns the table that the lines after the header belong to. */
static struct toml_value *
take_header(struct parser *t)
{
	bool array = take(t, "[[");
	struct toml_value *in = &t->doc->root;
	struct slice key;

	if (!array)
		take(t, "[");
	/* The depth of what follows begins at the header's path. */
	t->depth = 0;
	key = take_path(t, &in, true);
	if (!t->failed && !take(t, array ? "]]" : "]"))
		fail(t, "a header that does not end");
	if (t->failed)
		return in;
	return array ? append_table(t, in, key) : define_table(t, in, key);
}

int
toml_parse(struct toml_doc *doc, const char *text, size_t len)
{
	struct parser t = { .doc = doc, .p = text, .start = text };
	struct toml_value *table = &doc->root;

	*doc = (struct toml_doc){ .root = { .type = TOML_TABLE } };
	/*
	 * If the text is empty, it may be NULL, to which nothing may be added.
	 */
	t.end = len > 0 ? text + len : text;
	if (utf8_check(0, (const uint8_t *)text, len) != 0)
		fail(&t, "the file is not UTF-8");
	take(&t, "\xef\xbb\xbf");
	for (skip_space(&t); t.p < t.end; skip_space(&t)) {
		if (at(&t, "["))
			table = take_header(&t);
		else
			take_member(&t, table);
		end_of_line(&t);
	}
	return t.failed ? -EBADMSG : 0;
}

void
toml_clear(struct toml_doc *doc)
{
	json_clear(&doc->arena);
}
