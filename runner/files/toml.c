/* SPDX-License-Identifier: ISC */
/* Reads TOML. */
#include "toml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

/* --- values that are no strings ----------------------------------------- */

/* How a boolean, a number, a date and a time are written. */

/* Digits, with single underscores between them. */
static bool
is_digits(const char *p, size_t n, const char *digits)
{
	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (p[i] == '_') {
			if (i == 0 || i + 1 == n || p[i - 1] == '_')
				return false;
		} else if (p[i] == '\0' || strchr(digits, p[i]) == NULL) {
			return false;
		}
	return true;
}

/* The value must fit into 64 bits, as for the peer. */
static bool
is_in_range(const char *p, size_t n, unsigned base, bool negative)
{
	uint64_t v = 0, limit = (uint64_t)INT64_MAX + negative;

	for (size_t i = 0; i < n; i++) {
		unsigned d = (unsigned char)p[i];

		if (d == '_')
			continue;
		d = d <= '9' ? d - '0' : (d | 0x20) - 'a' + 10;
		if (v > (limit - d) / base)
			return false;
		v = v * base + d;
	}
	return true;
}

static bool
is_integer(const char *p, size_t n)
{
	static const struct {
		const char *prefix, *digits;
		unsigned base;
	} bases[] = { { "0x", "0123456789abcdefABCDEF", 16 },
		{ "0o", "01234567", 8 }, { "0b", "01", 2 } };
	bool sign = n > 0 && (*p == '+' || *p == '-'),
	     negative = sign && *p == '-';

	for (size_t i = 0; i < nitems(bases); i++)
		if (n > 2 && memcmp(p, bases[i].prefix, 2) == 0)
			return is_digits(p + 2, n - 2, bases[i].digits) &&
			       is_in_range(p + 2, n - 2, bases[i].base, false);
	p += sign;
	n -= sign;
	return is_digits(p, n, "0123456789") && (n == 1 || *p != '0') &&
	       is_in_range(p, n, 10, negative);
}

static size_t
span_digits(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && ((p[i] >= '0' && p[i] <= '9') || p[i] == '_'))
		i++;
	return i;
}

static bool
is_float(const char *p, size_t n)
{
	size_t whole, part;

	if (n > 0 && (*p == '+' || *p == '-'))
		p++, n--;
	if (n == 3 && (!memcmp(p, "inf", 3) || !memcmp(p, "nan", 3)))
		return true;
	whole = span_digits(p, n);
	if (!is_digits(p, whole, "0123456789") || (whole > 1 && *p == '0'))
		return false;
	p += whole, n -= whole;
	if (n > 0 && *p == '.') {
		part = span_digits(p + 1, n - 1);
		if (!is_digits(p + 1, part, "0123456789"))
			return false;
		p += part + 1, n -= part + 1;
		if (n == 0)
			return true;
	}
	if (n == 0)
		return false;
	if ((*p | 0x20) != 'e')
		return false;
	p++, n--;
	if (n > 0 && (*p == '+' || *p == '-'))
		p++, n--;
	return is_digits(p, n, "0123456789");
}

/*
 * In a form, 0 stands for any digit; every other character stands for itself.
 */
static bool
has_form(const char **p, size_t *n, const char *form)
{
	size_t len = strlen(form);

	if (*n < len)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = (*p)[i];

		if (form[i] == '0' ? c < '0' || c > '9' : c != form[i])
			return false;
	}
	*p += len;
	*n -= len;
	return true;
}

static unsigned
two(const char *p)
{
	return (unsigned)(p[0] - '0') * 10 + (unsigned)(p[1] - '0');
}

static bool
take_date(const char **p, size_t *n)
{
	static const unsigned char days[] = { 31, 29, 31, 30, 31, 30, 31, 31,
		30, 31, 30, 31 };
	const char *d = *p;
	unsigned year, month, day;

	if (!has_form(p, n, "0000-00-00"))
		return false;
	year = two(d) * 100 + two(d + 2);
	month = two(d + 5);
	day = two(d + 8);
	if (month < 1 || month > 12 || day < 1 || day > days[month - 1])
		return false;
	return month != 2 || day < 29 ||
	       (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static bool
take_time(const char **p, size_t *n)
{
	const char *d = *p;
	size_t digits;

	if (!has_form(p, n, "00:00:00") || two(d) > 23 || two(d + 3) > 59 ||
	    two(d + 6) > 60)
		return false;
	if (*n == 0 || **p != '.')
		return true;
	digits = 0;
	while (digits + 1 < *n && (*p)[1 + digits] >= '0' &&
	       (*p)[1 + digits] <= '9')
		digits++;
	*p += digits + 1;
	*n -= digits + 1;
	return digits > 0;
}

static bool
take_offset(const char **p, size_t *n)
{
	const char *d = *p;

	if (*n == 1 && (**p | 0x20) == 'z')
		return true;
	if (!has_form(p, n, **p == '-' ? "-00:00" : "+00:00") || *n != 0)
		return false;
	return two(d + 1) < 24 && two(d + 4) < 60;
}

static bool
is_moment(const char *p, size_t n)
{
	if (n > 2 && p[2] == ':')
		return take_time(&p, &n) && n == 0;
	if (!take_date(&p, &n))
		return false;
	if (n == 0)
		return true;
	if ((*p | 0x20) != 't' && *p != ' ')
		return false;
	p++, n--;
	return take_time(&p, &n) && (n == 0 || take_offset(&p, &n));
}

/* Tells whether it is a date alone. A time may follow it behind a blank. */
static bool
is_date(struct slice text)
{
	return take_date(&text.ptr, &text.len) && text.len == 0;
}

/* Tells whether the whole text is such a value. */
static bool
is_literal(struct slice text)
{
	const char *p = text.ptr;
	size_t n = text.len;

	return slice_equal(text, SLICE("true")) ||
	       slice_equal(text, SLICE("false")) || is_integer(p, n) ||
	       is_float(p, n) || is_moment(p, n);
}

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

static struct toml_value *
take_literal(struct parser *t)
{
	struct toml_value *v = new_value(t, TOML_LITERAL);
	const char *from = t->p;

	while (t->p < t->end && is_literal_character(*t->p))
		t->p++;
	/* A date and a time may be separated by a blank. */
	if (is_date((struct slice){ from, (size_t)(t->p - from) }) &&
	    t->end - t->p > 3 && t->p[0] == ' ' && t->p[1] >= '0' &&
	    t->p[1] <= '9')
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
