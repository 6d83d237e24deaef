/* SPDX-License-Identifier: ISC */
/*
 * SKILL.md begins with a line "---", YAML, and another line "---". Much of what
 * is written there by hand is not quite YAML: what has a colon in it, or begins
 * like a list, is read again as if it were quoted.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "skill.h"
#include "yaml.h"

/* Returns the length of the white space that s begins with; 0: none. */
static size_t
span_space(const char *s, size_t len)
{
	static const char *const wide[] = { "\xc2\x85", "\xc2\xa0",
		"\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
		"\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
		"\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a",
		"\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
		"\xe3\x80\x80" };

	if (len > 0 && (*s == ' ' || (*s >= '\t' && *s <= '\r')))
		return 1;
	for (size_t i = 0; i < nitems(wide); i++) {
		size_t n = strlen(wide[i]);

		if (len >= n && memcmp(s, wide[i], n) == 0)
			return n;
	}
	return 0;
}

static struct slice
trim_front(struct slice s)
{
	size_t n;

	while ((n = span_space(s.ptr, s.len)) > 0)
		s = (struct slice){ s.ptr + n, s.len - n };
	return s;
}

static struct slice
trim(struct slice s)
{
	size_t end = 0;

	s = trim_front(s);
	for (size_t i = 0; i < s.len;) {
		size_t n = span_space(s.ptr + i, s.len - i);

		i += n > 0 ? n : 1;
		if (n == 0)
			end = i;
	}
	return (struct slice){ s.ptr, end };
}

char *
skill_single_line(struct slice s)
{
	struct buf b;
	char *line;

	s = trim(s);
	buf_init(&b, s.len + 1);
	while (s.len > 0) {
		size_t n = span_space(s.ptr, s.len);

		if (n == 0)
			buf_put(&b, s.ptr++, 1), s.len--;
		else
			buf_puts(&b, " "), s = trim_front(s);
	}
	line = xstrndup((const char *)b.data, b.len);
	buf_clear(&b);
	return line;
}

char *
skill_line(const struct yaml_value *v, bool *wrong)
{
	char *line;

	if (v == NULL || yaml_is_null(v))
		return NULL;
	*wrong = v->type != YAML_SCALAR || memchr(v->text.ptr, 0, v->text.len);
	if (*wrong)
		return NULL;
	line = skill_single_line(v->text);
	if (line[0] != '\0')
		return line;
	free(line);
	return NULL;
}

size_t
skill_characters(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* --- Lines -------------------------------------------------------------- */

static bool
take_line(struct slice *rest, struct slice *line)
{
	const char *end;

	if (rest->len == 0)
		return false;
	end = memchr(rest->ptr, '\n', rest->len);
	line->ptr = rest->ptr;
	line->len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;
	rest->ptr += line->len + (end != NULL);
	rest->len -= line->len + (end != NULL);
	if (end != NULL && line->len > 0 && line->ptr[line->len - 1] == '\r')
		line->len--;
	return true;
}

static bool
is_fence(struct slice line)
{
	return slice_equal(trim(line), SLICE("---"));
}

static void
put_line(struct buf *b, struct slice line)
{
	buf_put(b, line.ptr, line.len);
	buf_puts(b, "\n");
}

/* Returns false if there is none. */
static bool
take_front_matter(struct slice text, struct buf *b)
{
	struct slice line;

	if (!take_line(&text, &line) || !is_fence(line))
		return false;
	while (take_line(&text, &line)) {
		if (is_fence(line))
			return b->len > 0;
		put_line(b, line);
	}
	return false;
}

/* --- What is not quite YAML --------------------------------------------- */

struct repair {
	struct buf text;
	bool changed;
	bool in_block; /* of text, below a line with this indentation */
	size_t indent;
};

static size_t
indentation(struct slice line)
{
	size_t n = 0;

	while (n < line.len && line.ptr[n] == ' ')
		n++;
	return n;
}

static bool
begins_like(struct slice s, const char *set)
{
	return s.len > 0 && *s.ptr != '\0' && strchr(set, *s.ptr) != NULL;
}

/* The length without a comment, which has white space before it. */
static size_t
without_comment(struct slice s)
{
	size_t end = 0, space = 1;

	for (size_t i = 0; i < s.len;) {
		if (s.ptr[i] == '#' && space > 0)
			return end;
		space = span_space(s.ptr + i, s.len - i);
		i += space > 0 ? space : 1;
		if (space == 0)
			end = i;
	}
	return end;
}

static bool
has_colon(struct slice s)
{
	for (size_t i = 0; i + 1 < s.len; i++)
		if (s.ptr[i] == ':' &&
		    span_space(s.ptr + i + 1, s.len - i - 1) > 0)
			return true;
	return false;
}

static bool
is_yaml(struct slice s)
{
	struct yaml_doc doc;
	bool is = yaml_parse(&doc, s.ptr, s.len) == 0;

	yaml_clear(&doc);
	return is;
}

static void
put_quoted(struct buf *b, struct slice s)
{
	buf_puts(b, "'");
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '\'')
			buf_puts(b, "'");
		buf_put(b, s.ptr + i, 1);
	}
	buf_puts(b, "'");
}

/* The value behind the colon at `colon`, as it would be with quotes. */
static void
repair_value(struct repair *r, struct slice line, size_t colon)
{
	struct slice behind = { line.ptr + colon + 1, line.len - colon - 1 };
	struct slice value = trim_front(behind), rest = value;

	value.len = without_comment(value);
	rest.ptr += value.len;
	rest.len -= value.len;
	r->in_block = begins_like(value, "|>");
	r->indent = indentation(line);
	if (value.len == 0 || begins_like(value, "|>'\"") ||
	    (!has_colon(value) &&
		(!begins_like(value, "[{@`") || is_yaml(value)))) {
		put_line(&r->text, line);
		return;
	}
	buf_put(&r->text, line.ptr, (size_t)(value.ptr - line.ptr));
	put_quoted(&r->text, value);
	put_line(&r->text, rest);
	r->changed = true;
}

static void
repair_line(struct repair *r, struct slice line)
{
	const char *colon = memchr(line.ptr, ':', line.len);
	size_t at = colon != NULL ? (size_t)(colon - line.ptr) : 0;
	bool inside = r->in_block &&
		      (trim(line).len == 0 || indentation(line) > r->indent);

	if (!inside)
		r->in_block = false;
	if (inside || colon == NULL ||
	    trim((struct slice){ line.ptr, at }).len == 0 ||
	    (at + 1 < line.len &&
		span_space(colon + 1, line.len - at - 1) == 0))
		put_line(&r->text, line);
	else
		repair_value(r, line, at);
}

static void
repair_lines(struct repair *r, struct slice text)
{
	struct slice line;

	buf_init(&r->text, text.len * 3 + 16);
	while (take_line(&text, &line))
		repair_line(r, line);
}

/* --- The members -------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
fail(struct skill_text *s, const char *fmt, ...)
{
	va_list ap;

	if (s->error[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(s->error, sizeof(s->error), fmt, ap);
	va_end(ap);
}

/* Returns a single line, or NULL if there is none. The caller owns it. */
static char *
take_string(
    struct skill_text *s, const struct yaml_value *mapping, const char *key)
{
	bool again = false, wrong = false;
	char *line = skill_line(yaml_get(mapping, key, &again), &wrong);

	if (again)
		fail(s, "duplicate field `%s`", key);
	if (wrong)
		fail(s, "`%s` is no string", key);
	return line;
}

static void
take_metadata(struct skill_text *s, const struct yaml_value *root)
{
	bool again = false;
	const struct yaml_value *v = yaml_get(root, "metadata", &again);

	if (again)
		fail(s, "duplicate field `metadata`");
	else if (v != NULL && !yaml_is_mapping(v))
		fail(s, "`metadata` is no mapping");
	else if (v != NULL)
		s->short_description = take_string(s, v, "short-description");
}

static void
take_members(struct skill_text *s, const struct yaml_value *root)
{
	if (root == NULL || !yaml_is_mapping(root)) {
		fail(s, "the front matter is no mapping");
		return;
	}
	s->name = take_string(s, root, "name");
	s->description = take_string(s, root, "description");
	take_metadata(s, root);
}

static bool
parse_members(struct skill_text *s, const struct buf *b)
{
	struct yaml_doc doc;

	if (yaml_parse(&doc, (const char *)b->data, b->len) < 0)
		/* The line "---" is the first. */
		fail(s, "line %u, column %u: %s", doc.line + 1, doc.column,
		    doc.error);
	else
		take_members(s, doc.root);
	yaml_clear(&doc);
	return s->error[0] == '\0';
}

static void
check_members(struct skill_text *s, const char *directory)
{
	struct slice named = { directory, strlen(directory) };

	if (s->name == NULL) {
		s->name = skill_single_line(named);
		if (s->name[0] == '\0') {
			free(s->name);
			s->name = xstrdup("skill");
		}
	}
	if (skill_characters(s->name) > SKILL_NAME_MAX)
		fail(s, "the name has over %d characters", SKILL_NAME_MAX);
	else if (s->description == NULL)
		fail(s, "missing field `description`");
}

/* An error of the text as it is says more than one of the text with quotes. */
static bool
parse_repaired(struct skill_text *s, const struct buf *front)
{
	struct skill_text again = { 0 };
	struct repair r = { 0 };
	bool good;

	repair_lines(
	    &r, (struct slice){ (const char *)front->data, front->len });
	good = r.changed && parse_members(&again, &r.text);
	if (good) {
		skill_text_clear(s);
		*s = again;
	} else {
		skill_text_clear(&again);
	}
	buf_clear(&r.text);
	return good;
}

int
skill_text_parse(
    struct skill_text *s, const char *text, size_t len, const char *directory)
{
	struct buf front;

	*s = (struct skill_text){ 0 };
	buf_init(&front, len + 1);
	if (!take_front_matter((struct slice){ text, len }, &front))
		fail(s, "no front matter between lines of `---`");
	else if (parse_members(s, &front) || parse_repaired(s, &front))
		check_members(s, directory);
	buf_clear(&front);
	return s->error[0] != '\0' ? -EBADMSG : 0;
}

void
skill_text_clear(struct skill_text *s)
{
	free(s->name);
	free(s->description);
	free(s->short_description);
	s->name = s->description = s->short_description = NULL;
}
