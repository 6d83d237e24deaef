/*
 * file: URIs <-> path bytes, by the rules of the WHATWG URL standard as far
 * as file: needs them (PROTOCOL.md section 9).
 */
#include "path_uri.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The URI while it is taken apart; everything lies in the arena. */
struct parts {
	char *text; /* cleaned: no blanks around, no tab, newline inside */
	size_t len;
	size_t scheme; /* length */
	size_t at;     /* behind what was read */
	struct slice host;
};

static int
fail(char *error, size_t cap, const char *fmt, struct slice s)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(error, cap, fmt, (int)(s.len < 300 ? s.len : 300), s.ptr);
#pragma GCC diagnostic pop
	return -EBADMSG;
}

/* C0 controls and blanks around it do not count, nor do tabs and newlines
 * inside. */
static void
clean(struct parts *p, struct json_doc *doc, struct slice uri)
{
	const char *s = uri.ptr, *end = uri.ptr + uri.len;

	while (s < end && (unsigned char)*s <= ' ')
		s++;
	while (end > s && (unsigned char)end[-1] <= ' ')
		end--;
	p->text = json_alloc(doc, (size_t)(end - s) + 1);
	for (; s < end; s++)
		if (*s != '\t' && *s != '\n' && *s != '\r')
			p->text[p->len++] = *s;
	p->text[p->len] = '\0';
}

static int
take_scheme(struct parts *p, char *error, size_t cap)
{
	size_t n = 0;

	while (n < p->len && (isalnum((unsigned char)p->text[n]) ||
				 (n > 0 && strchr("+-.", p->text[n]) != NULL)))
		n++;
	if (n == 0 || n == p->len || p->text[n] != ':' ||
	    !isalpha((unsigned char)p->text[0]))
		return fail(error, cap,
		    "invalid URI: relative URL without a "
		    "base%.*s",
		    (struct slice){ "", 0 });
	for (size_t i = 0; i < n; i++)
		p->text[i] = (char)tolower((unsigned char)p->text[i]);
	p->scheme = n;
	p->at = n + 1;
	if (n != 4 || memcmp(p->text, "file", 4) != 0)
		return fail(error, cap, "unsupported path URI scheme `%.*s`",
		    (struct slice){ p->text, n });
	return 0;
}

static int
check_no_query(const struct parts *p, char *error, size_t cap)
{
	size_t n = strcspn(p->text, "?#");

	/* A NUL ends the search early; it is no URI character anyway. */
	if (n == p->len || p->text[n] == '\0')
		return 0;
	return fail(error, cap,
	    p->text[n] == '?'
		? "query parameters are not allowed in path URIs%.*s"
		: "fragments are not allowed in path URIs%.*s",
	    (struct slice){ "", 0 });
}

static bool
is_slash(char c)
{
	return c == '/' || c == '\\';
}

/* "//HOST" in front of the path. */
static int
take_host(struct parts *p, char *error, size_t cap)
{
	size_t begin = p->at + 2, end = begin;

	if (p->at + 1 >= p->len || !is_slash(p->text[p->at]) ||
	    !is_slash(p->text[p->at + 1]))
		return 0;
	while (end < p->len && !is_slash(p->text[end]))
		end++;
	/* "file://C:/x": what looks like a drive is no host. */
	if (end - begin == 2 && isalpha((unsigned char)p->text[begin]) &&
	    (p->text[begin + 1] == ':' || p->text[begin + 1] == '|')) {
		p->at = begin;
		return 0;
	}
	for (size_t i = begin; i < end; i++)
		if (memchr("@:<>^|%` ", p->text[i], 9) != NULL)
			return fail(error, cap,
			    "invalid URI: invalid "
			    "international domain name%.*s",
			    (struct slice){ "", 0 });
	p->host = (struct slice){ p->text + begin, end - begin };
	p->at = end;
	return 0;
}

static bool
is_localhost(struct slice host)
{
	static const char name[] = "localhost";

	if (host.len == 0)
		return true;
	if (host.len != sizeof(name) - 1)
		return false;
	for (size_t i = 0; i < host.len; i++)
		if (tolower((unsigned char)host.ptr[i]) != name[i])
			return false;
	return true;
}

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "." or "..", each dot perhaps as %2e: the number of dots, else 0. */
static int
dots(const char *s, size_t n)
{
	int count = 0;

	for (size_t i = 0; i < n; count++) {
		if (s[i] == '.')
			i++;
		else if (n - i >= 3 && s[i] == '%' && s[i + 1] == '2' &&
			 (s[i + 2] | 0x20) == 'e')
			i += 3;
		else
			return 0;
	}
	return count <= 2 ? count : 0;
}

/* Appends a decoded segment behind a slash. False: it holds a NUL. */
static bool
append_segment(char *path, size_t *at, const char *s, size_t n)
{
	path[(*at)++] = '/';
	for (size_t i = 0; i < n; i++) {
		int high = -1, low = -1;

		if (s[i] == '%' && n - i >= 3) {
			high = hex(s[i + 1]);
			low = hex(s[i + 2]);
		}
		if (high >= 0 && low >= 0) {
			path[*at] = (char)(high << 4 | low);
			i += 2;
		} else {
			path[*at] = s[i];
		}
		if (path[(*at)++] == '\0')
			return false;
	}
	return true;
}

static void
remove_last(const char *path, size_t *at)
{
	while (*at > 0 && path[--*at] != '/')
		continue;
}

/* Segments become the path. An escaped slash is part of its segment while
 * dots are resolved, and a slash afterwards (quirk Q14). */
static bool
decode_path(const struct parts *p, char *path)
{
	size_t at = 0, i = p->at;

	while (i <= p->len) {
		size_t end = i;
		int n;

		while (end < p->len && !is_slash(p->text[end]))
			end++;
		n = dots(p->text + i, end - i);
		if (n == 2)
			remove_last(path, &at);
		else if (n == 0 && end > i &&
			 !append_segment(path, &at, p->text + i, end - i))
			return false;
		i = end + 1;
	}
	if (at == 0)
		path[at++] = '/';
	path[at] = '\0';
	return true;
}

/* Slashes that only appeared by decoding are collapsed too. */
static void
squeeze(char *path)
{
	char *to = path;

	for (const char *from = path; *from != '\0'; from++)
		if (*from != '/' || to == path || to[-1] != '/')
			*to++ = *from;
	if (to > path + 1 && to[-1] == '/')
		to--;
	*to = '\0';
}

static bool
is_drive(const struct parts *p)
{
	const char *s = p->text + p->at, *end = p->text + p->len;

	while (s < end && is_slash(*s))
		s++;
	return end - s >= 2 && isalpha((unsigned char)s[0]) &&
	       (s[1] == ':' || s[1] == '|') && (end - s == 2 || is_slash(s[2]));
}

int
path_uri_parse(struct path_uri *out, struct json_doc *doc, struct slice uri,
    char *error, size_t error_cap)
{
	struct parts p = { 0 };
	char *path;

	*out = (struct path_uri){ .uri = uri };
	clean(&p, doc, uri);
	if (take_scheme(&p, error, error_cap) < 0 ||
	    check_no_query(&p, error, error_cap) < 0 ||
	    take_host(&p, error, error_cap) < 0)
		return -EBADMSG;
	out->uri = (struct slice){ p.text, p.len };
	if (!is_localhost(p.host) || is_drive(&p)) {
		out->foreign = true;
		return 0;
	}
	path = json_alloc(doc, p.len + 2);
	if (!decode_path(&p, path))
		return fail(
		    error, error_cap, "'%.*s' is invalid on 'linux'", out->uri);
	squeeze(path);
	out->path = path;
	return 0;
}

void
path_uri_write(struct buf *b, const char *path)
{
	static const char hex_digits[] = "0123456789ABCDEF";

	buf_puts(b, path[0] == '/' ? "file://" : "file:///");
	for (const unsigned char *s = (const unsigned char *)path; *s; s++) {
		if (*s > ' ' && *s < 0x7f &&
		    strchr("\"#%<>?`{}\\", *s) == NULL) {
			buf_put_u8(b, *s);
		} else {
			buf_put_u8(b, '%');
			buf_put_u8(b, (uint8_t)hex_digits[*s >> 4]);
			buf_put_u8(b, (uint8_t)hex_digits[*s & 15]);
		}
	}
}

void
json_path(struct json_writer *w, const char *path)
{
	struct buf b;

	buf_init(&b, 8 + strlen(path) * 3);
	path_uri_write(&b, path);
	json_string(w, (const char *)b.data, b.len);
	buf_clear(&b);
}
