/* SPDX-License-Identifier: ISC */
/*
 * Writes JSON. Values are appended to a buffer, and commas are added
 * automatically.
 */
#include <string.h>

#include "base64.h"
#include "json.h"
#include "utf8.h"

void
json_writer_init(struct json_writer *w, struct buf *buf)
{
	*w = (struct json_writer){ .buf = buf };
}

void
json_text_init(struct json_text *t, size_t limit)
{
	buf_init(&t->buf, limit);
	json_writer_init(&t->w, &t->buf);
}

static void
separate(struct json_writer *w)
{
	if (w->comma)
		buf_put_u8(w->buf, ',');
	w->comma = true;
}

void
json_begin(struct json_writer *w, char bracket)
{
	separate(w);
	buf_put_u8(w->buf, (uint8_t)bracket);
	w->comma = false;
}

void
json_end(struct json_writer *w, char bracket)
{
	buf_put_u8(w->buf, (uint8_t)bracket);
	w->comma = true;
}

void
json_key(struct json_writer *w, const char *key)
{
	separate(w);
	buf_put_u8(w->buf, '"');
	buf_puts(w->buf, key);
	buf_put(w->buf, "\":", 2);
	w->comma = false;
}

static void
put_escape(struct buf *b, unsigned c)
{
	static const char *const names[] = { ['\b'] = "\\b",
		['\t'] = "\\t",
		['\n'] = "\\n",
		['\f'] = "\\f",
		['\r'] = "\\r" };

	if (c == '"' || c == '\\') {
		buf_put_u8(b, '\\');
		buf_put_u8(b, (uint8_t)c);
	} else if (c < nitems(names) && names[c] != NULL) {
		buf_puts(b, names[c]);
	} else {
		buf_printf(b, "\\u%04x", c);
	}
}

static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Writes the character at p and returns its length. An invalid byte becomes
 * U+FFFD. */
static size_t
put_character(struct buf *b, const unsigned char *p, size_t left)
{
	uint32_t code;
	size_t n = utf8_next(p, left, &code);

	if (n == 0) {
		buf_puts(b, "\xef\xbf\xbd");
		return 1;
	}
	if (utf8_controls(code))
		put_escape(b, code);
	else
		buf_put(b, p, n);
	return n;
}

static void
put_text(struct buf *b, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t at = 0, plain;

	while (at < n) {
		for (plain = at; plain < n && is_plain(p[plain]); plain++)
			continue;
		buf_put(b, p + at, plain - at);
		at = plain;
		if (at == n)
			break;
		if (p[at] < 0x80) {
			put_escape(b, p[at++]);
		} else {
			at += put_character(b, p + at, n - at);
		}
	}
}

void
json_string(struct json_writer *w, const char *s, size_t n)
{
	separate(w);
	buf_put_u8(w->buf, '"');
	put_text(w->buf, s, n);
	buf_put_u8(w->buf, '"');
}

void
json_cstring(struct json_writer *w, const char *s)
{
	json_string(w, s, strlen(s));
}

void
json_slice_key(struct json_writer *w, struct slice key)
{
	json_string(w, key.ptr, key.len);
	buf_put_u8(w->buf, ':');
	w->comma = false;
}

void
json_u64(struct json_writer *w, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	separate(w);
	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	buf_put(w->buf, digits + at, sizeof(digits) - at);
}

void
json_i64(struct json_writer *w, int64_t v)
{
	if (v >= 0) {
		json_u64(w, (uint64_t)v);
		return;
	}
	separate(w);
	buf_put_u8(w->buf, '-');
	w->comma = false;
	json_u64(w, 0 - (uint64_t)v);
}

void
json_bool(struct json_writer *w, bool v)
{
	separate(w);
	buf_puts(w->buf, v ? "true" : "false");
}

void
json_null(struct json_writer *w)
{
	separate(w);
	buf_puts(w->buf, "null");
}

/* base64 needs no escapes, so it is encoded directly into the buffer. */
void
json_base64(struct json_writer *w, const void *p, size_t n)
{
	size_t len = base64_encoded_len(n);
	uint8_t *at;

	separate(w);
	at = buf_reserve(w->buf, len + 2);
	if (at == NULL)
		return;
	at[0] = '"';
	base64_encode((char *)at + 1, p, n);
	at[len + 1] = '"';
	buf_commit(w->buf, len + 2);
}

void
json_raw(struct json_writer *w, const char *text, size_t n)
{
	separate(w);
	buf_put(w->buf, text, n);
}

void
json_text_put(struct json_writer *w, const struct json_text *t)
{
	json_raw(w, (const char *)t->buf.data, t->buf.len);
}

void
json_key_string(struct json_writer *w, const char *key, const char *s, size_t n)
{
	json_key(w, key);
	json_string(w, s, n);
}

void
json_key_cstring(struct json_writer *w, const char *key, const char *s)
{
	json_key(w, key);
	json_cstring(w, s);
}

void
json_key_optional(struct json_writer *w, const char *key, const char *s)
{
	json_key(w, key);
	if (s != NULL)
		json_cstring(w, s);
	else
		json_null(w);
}

void
json_key_base64(struct json_writer *w, const char *key, const void *p, size_t n)
{
	json_key(w, key);
	json_base64(w, p, n);
}

void
json_key_begin(struct json_writer *w, const char *key, char bracket)
{
	json_key(w, key);
	json_begin(w, bracket);
}

void
json_key_u64(struct json_writer *w, const char *key, uint64_t v)
{
	json_key(w, key);
	json_u64(w, v);
}

void
json_key_i64(struct json_writer *w, const char *key, int64_t v)
{
	json_key(w, key);
	json_i64(w, v);
}

void
json_key_bool(struct json_writer *w, const char *key, bool v)
{
	json_key(w, key);
	json_bool(w, v);
}

static void
copy_children(struct json_writer *w, const struct json_value *v)
{
	bool object = v->type == JSON_OBJECT;

	json_begin(w, object ? '{' : '[');
	for (const struct json_value *c = v->first; c != NULL; c = c->next)
		if (object)
			json_copy_member(w, c);
		else
			json_copy(w, c);
	json_end(w, object ? '}' : ']');
}

void
json_copy(struct json_writer *w, const struct json_value *v)
{
	if (v == NULL || v->type == JSON_NULL)
		json_null(w);
	else if (v->type == JSON_BOOL)
		json_bool(w, v->boolean);
	else if (v->type == JSON_NUMBER)
		json_raw(w, v->text.ptr, v->text.len);
	else if (v->type == JSON_STRING)
		json_string(w, v->text.ptr, v->text.len);
	else
		copy_children(w, v);
}

void
json_copy_member(struct json_writer *w, const struct json_value *v)
{
	json_slice_key(w, v->key);
	json_copy(w, v);
}
