/* SPDX-License-Identifier: ISC */
#include "path_uri.h"

#include <ctype.h>

#include "path_map.h"
#include "windows_path.h"

#define RELATIVE_URI "invalid URI: relative URL without a base"
#define BAD_HOST     "invalid URI: invalid international domain name"

/* A URI while it is being parsed. All memory is in the arena. */
struct parts {
	/* without blanks around it and without tabs and newlines inside */
	char *text;
	size_t len;
	size_t at;   /* offset after what was parsed */
	char *uri;   /* the result: "file://", host, normalised path */
	size_t host; /* offset of the host in uri */
	size_t path; /* offset of the path in uri */
	size_t end;
	bool climbs; /* it has a ".." */
};

static int
fail(char *error, size_t cap, const char *text)
{
	snprintf(error, cap, "%s", text);
	return -EBADMSG;
}

/* Copies the URI without the C0 controls and blanks around it, and without tabs
 * and newlines inside. */
static void
clean(struct parts *p, struct json_doc *doc, struct slice uri)
{
	const char *s = uri.ptr, *end = uri.ptr + uri.len;

	while (s < end && (unsigned char)*s <= ' ')
		s++;
	while (end > s && (unsigned char)end[-1] <= ' ')
		end--;
	p->text = json_alloc(doc, (size_t)(end - s) + 1);
	/* An escaped character becomes three characters. */
	p->uri = json_alloc(doc, 16 + 3 * (size_t)(end - s));
	for (; s < end; s++)
		if (*s != '\t' && *s != '\n' && *s != '\r')
			p->text[p->len++] = *s;
	p->text[p->len] = '\0';
}

static bool
is_scheme_char(char c, bool first)
{
	return isalpha((unsigned char)c) ||
	       (!first && (isdigit((unsigned char)c) ||
			      (c != '\0' && strchr("+-.", c) != NULL)));
}

static int
take_scheme(struct parts *p, char *error, size_t cap)
{
	size_t n = 0;

	while (n < p->len && is_scheme_char(p->text[n], n == 0))
		n++;
	if (n == 0 || n == p->len || p->text[n] != ':')
		return fail(error, cap, RELATIVE_URI);
	for (size_t i = 0; i < n; i++)
		p->text[i] = (char)tolower((unsigned char)p->text[i]);
	p->at = n + 1;
	if (n == 4 && memcmp(p->text, "file", 4) == 0)
		return 0;
	snprintf(error, cap, "unsupported path URI scheme `%.*s`",
	    (int)(n < 300 ? n : 300), p->text);
	return -EBADMSG;
}

static int
check_no_query(const struct parts *p, char *error, size_t cap)
{
	for (size_t i = p->at; i < p->len; i++) {
		if (p->text[i] == '?')
			return fail(error, cap,
			    "query parameters are not allowed in path URIs");
		if (p->text[i] == '#')
			return fail(error, cap,
			    "fragments are not allowed in path URIs");
	}
	return 0;
}

static bool
is_slash(char c)
{
	return c == '/' || c == '\\';
}

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the byte at s, unescaped. *took is the number of characters used. An
 * invalid escape is taken as text. */
static unsigned char
unescape(const char *s, size_t n, size_t *took)
{
	int high = n >= 3 && s[0] == '%' ? hex(s[1]) : -1;
	int low = high >= 0 ? hex(s[2]) : -1;

	*took = low >= 0 ? 3 : 1;
	return low >= 0 ? (unsigned char)(high << 4 | low)
			: (unsigned char)s[0];
}

/* Returns true for "X:" or "X|", a drive letter, which is neither a host nor a
 * path of this system. */
static bool
is_drive(const char *s, size_t n)
{
	return n == 2 && isalpha((unsigned char)s[0]) &&
	       (s[1] == ':' || s[1] == '|');
}

/* Returns true for an IPv6 address in brackets. */
static bool
is_address(const char *s, size_t n)
{
	if (n < 4 || s[0] != '[' || s[n - 1] != ']')
		return false;
	for (size_t i = 1; i + 1 < n; i++)
		if (hex(s[i]) < 0 && s[i] != ':' && s[i] != '.')
			return false;
	return true;
}

/* Appends the host, unescaped and in lower case. Returns false if it is no
 * valid host. */
static bool
append_host(struct parts *p, const char *s, size_t n)
{
	bool address = is_address(s, n);
	size_t took;

	for (size_t i = 0; i < n; i += took) {
		unsigned char c = unescape(s + i, n - i, &took);

		if (!address && (c <= ' ' || c == 0x7f ||
				    memchr("#%/:<>?@[\\]^|", c, 14) != NULL))
			return false;
		p->uri[p->end++] = (char)tolower(c);
	}
	return true;
}

/* Parses "//HOST", if it comes before the path. */
static int
take_host(struct parts *p, char *error, size_t cap)
{
	size_t begin = p->at + 2, end = begin;

	memcpy(p->uri, "file://", 7);
	p->host = p->path = p->end = 7;
	if (p->len - p->at < 2 || !is_slash(p->text[p->at]) ||
	    !is_slash(p->text[p->at + 1]))
		return 0;
	while (end < p->len && !is_slash(p->text[end]))
		end++;
	if (is_drive(p->text + begin, end - begin)) {
		p->at = begin;
		return 0;
	}
	if (!append_host(p, p->text + begin, end - begin))
		return fail(error, cap, BAD_HOST);
	if (p->end - p->host == 9 &&
	    memcmp(p->uri + p->host, "localhost", 9) == 0)
		p->end = p->host;
	p->path = p->end;
	p->at = end;
	return 0;
}

/* Returns 1 for "." and 2 for "..", where each dot may be written as %2e;
 * otherwise 0. */
static int
dots(const char *s, size_t n)
{
	size_t took;
	int count = 0;

	for (size_t i = 0; i < n; i += took, count++)
		if (unescape(s + i, n - i, &took) != '.')
			return 0;
	return count <= 2 ? count : 0;
}

/* Appends a slash and a segment. Characters that a URI may not contain are
 * escaped. */
static void
append_segment(struct parts *p, const char *s, size_t n)
{
	static const char digits[] = "0123456789ABCDEF";
	bool drive = p->end == p->path && is_drive(s, n);

	p->uri[p->end++] = '/';
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c > ' ' && c < 0x7f && strchr("\"<>`{}", c) == NULL) {
			p->uri[p->end++] = (char)c;
		} else {
			p->uri[p->end++] = '%';
			p->uri[p->end++] = digits[c >> 4];
			p->uri[p->end++] = digits[c & 15];
		}
	}
	if (drive)
		p->uri[p->end - 1] = ':';
}

static bool
has_drive(const struct parts *p)
{
	return p->end - p->path >= 3 && is_drive(p->uri + p->path + 1, 2) &&
	       (p->end - p->path == 3 || p->uri[p->path + 3] == '/');
}

/* Removes the last segment, for "..". An empty segment counts as one, and an
 * escaped slash is part of its segment. A drive letter is not removed. */
static void
remove_last(struct parts *p)
{
	if (has_drive(p) && p->end - p->path == 3)
		return;
	while (p->end > p->path && p->uri[--p->end] != '/')
		continue;
}

static void
take_path(struct parts *p)
{
	size_t i = p->at;

	if (i < p->len && is_slash(p->text[i]))
		i++;
	for (;;) {
		size_t end = i;
		int n;

		while (end < p->len && !is_slash(p->text[end]))
			end++;
		n = dots(p->text + i, end - i);
		if (n == 2) {
			p->climbs = true;
			remove_last(p);
		}
		if (n == 0)
			append_segment(p, p->text + i, end - i);
		if (end >= p->len) {
			if (n > 0)
				append_segment(p, "", 0);
			return;
		}
		i = end + 1;
	}
}

/* Resolves "." and ".." in the decoded path, and removes doubled and trailing
 * slashes. Dots and slashes that are still here come from escapes or from empty
 * segments (quirk Q14). */
static void
resolve(char *path)
{
	char *to = path;
	const char *from = path;

	while (*from != '\0') {
		const char *name = from + strspn(from, "/");
		size_t n = strcspn(name, "/");

		from = name + n;
		if (n == 2 && memcmp(name, "..", 2) == 0) {
			while (to > path && *--to != '/')
				continue;
		} else if (n > 1 || (n == 1 && *name != '.')) {
			*to++ = '/';
			memmove(to, name, n);
			to += n;
		}
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

/* Decodes the path to bytes. Returns false if it contains a NUL. */
static bool
decode_path(const struct parts *p, char *path)
{
	size_t at = 0, took;

	for (size_t i = p->path; i < p->end; i += took) {
		path[at] = (char)unescape(p->uri + i, p->end - i, &took);
		if (path[at++] == '\0')
			return false;
	}
	path[at] = '\0';
	resolve(path);
	return true;
}

/* --- a client with drive letters ---------------------------------------- */

#define NO_MAP	"; path-map can map it"
#define OUTSIDE "; it lies under no root of path-map"
#define ABOVE	"; it lies above a root of path-map"

const char *
path_uri_hint(const struct path_uri *p)
{
	return p->hint != NULL ? p->hint : "";
}

bool
path_uri_is_windows(struct slice text)
{
	return path_map_used() != NULL && windows_path_begins(text);
}

/* Looks a plain path up in the map. */
static int
map_plain(struct path_uri *out, struct json_doc *doc, struct slice text,
    char *error, size_t cap)
{
	const struct path_map *map = path_map_used();
	char *path, why[PATH_MAP_WHY_MAX];
	int err;

	path =
	    json_alloc(doc, path_map_room(map, text.len < WINDOWS_PATH_MAX_BYTES
						   ? text.len
						   : WINDOWS_PATH_MAX_BYTES));
	err = path_map_in(map, text, path, &out->elsewhere, why);
	if (err == 0) {
		out->path = path;
		return 0;
	}
	if (err == -EINVAL) {
		snprintf(error, cap, "path-map: %s", why);
		return -EBADMSG;
	}
	out->foreign = true;
	out->outside = err == -ENOENT;
	out->hint = err == -ENOENT ? OUTSIDE : ABOVE;
	return 0;
}

/* Tells whether the first name begins with a drive letter. */
static bool
begins_with_drive(const struct parts *p)
{
	return p->end - p->path >= 3 && is_drive(p->uri + p->path + 1, 2) &&
	       p->uri[p->path + 2] == ':';
}

/* Looks the URI up in the map. An escape may be anything in a name but a
 * separator: whoever wrote that did not mean a name of Windows. */
static int
map_uri(struct path_uri *out, struct json_doc *doc, const struct parts *p,
    char *error, size_t cap)
{
	char *text = json_alloc(doc, p->end - p->path + 1);
	const char *fault = NULL;
	size_t n = 0, took;

	if (p->path > p->host)
		fault = "a path of the network (UNC) is not permitted";
	else if (p->climbs)
		fault = "`..` is not permitted";
	for (size_t i = p->path + 1; fault == NULL && i < p->end; i += took) {
		text[n] = (char)unescape(p->uri + i, p->end - i, &took);
		if (took > 1 && is_slash(text[n]))
			fault = "an escaped separator is not permitted";
		n++;
	}
	if (fault == NULL)
		return map_plain(
		    out, doc, (struct slice){ text, n }, error, cap);
	snprintf(error, cap, "path-map: `%.*s`: %s",
	    (int)(p->end < 300 ? p->end : 300), p->uri, fault);
	return -EBADMSG;
}

int
path_uri_parse(struct path_uri *out, struct json_doc *doc, struct slice uri,
    char *error, size_t error_cap)
{
	struct parts p = { 0 };
	char *path;

	*out = (struct path_uri){ .uri = uri };
	if (path_uri_is_windows(uri))
		return map_plain(out, doc, uri, error, error_cap);
	clean(&p, doc, uri);
	if (take_scheme(&p, error, error_cap) < 0 ||
	    check_no_query(&p, error, error_cap) < 0 ||
	    take_host(&p, error, error_cap) < 0)
		return -EBADMSG;
	take_path(&p);
	out->uri = (struct slice){ p.uri, p.end };
	if (path_map_used() != NULL &&
	    (p.path > p.host || begins_with_drive(&p)))
		return map_uri(out, doc, &p, error, error_cap);
	if (p.path > p.host || has_drive(&p)) {
		out->foreign = true;
		out->hint = p.path > p.host ? NULL : NO_MAP;
		return 0;
	}
	path = json_alloc(doc, p.end - p.path + 2);
	if (!decode_path(&p, path)) {
		snprintf(error, error_cap, "'%.*s' is invalid on 'linux'",
		    (int)(p.end < 300 ? p.end : 300), p.uri);
		return -EBADMSG;
	}
	out->path = path;
	return 0;
}

/* --- writing ------------------------------------------------------------ */

/* Returns the position of the colon if the first name looks like a drive
 * letter, otherwise NULL. The caller escapes this colon, because the path would
 * be read as a client's path otherwise. With a map, a longer name is read so,
 * too. */
static const char *
drive_mark(const char *path)
{
	const char *name = path + strspn(path, "/");
	size_t n = strcspn(name, "/");

	if (path_map_used() != NULL && n > 2)
		n = 2;
	return is_drive(name, n) ? name + 1 : NULL;
}

/* Appends the path with escapes. The colon at `mark` (NULL: none) is one. */
static void
write_escaped(struct buf *b, const char *path, const char *mark)
{
	static const char hex_digits[] = "0123456789ABCDEF";
	const unsigned char *colon = (const unsigned char *)mark;

	for (const unsigned char *s = (const unsigned char *)path; *s; s++) {
		if (*s > ' ' && *s < 0x7f && s != colon &&
		    strchr("\"#%<>?`{}\\", *s) == NULL) {
			buf_put_u8(b, *s);
		} else {
			buf_put_u8(b, '%');
			buf_put_u8(b, (uint8_t)hex_digits[*s >> 4]);
			buf_put_u8(b, (uint8_t)hex_digits[*s & 15]);
		}
	}
}

/* Writes the client's name of the path. Returns false if it has none. */
static bool
write_mapped(struct buf *b, const char *path)
{
	const struct path_map *map = path_map_used();
	struct buf text;
	bool mapped;

	buf_init(&text, PATH_MAP_TEXT_MAX + strlen(path) + 1);
	mapped = path_map_out(map, path, &text);
	if (mapped) {
		buf_put_u8(&text, '\0');
		buf_puts(b, "file:///");
		write_escaped(b, (const char *)text.data, NULL);
	}
	buf_clear(&text);
	return mapped;
}

size_t
path_uri_room(const char *path)
{
	size_t n = 8 + strlen(path) * 3;

	return path_map_used() == NULL ? n : n + 3 * PATH_MAP_TEXT_MAX;
}

void
path_uri_write(struct buf *b, const char *path)
{
	if (path_map_used() != NULL && write_mapped(b, path))
		return;
	buf_puts(b, path[0] == '/' ? "file://" : "file:///");
	write_escaped(b, path, drive_mark(path));
}

void
json_path(struct json_writer *w, const char *path)
{
	struct buf b;

	buf_init(&b, path_uri_room(path));
	path_uri_write(&b, path);
	json_string(w, (const char *)b.data, b.len);
	buf_clear(&b);
}

void
json_key_path(struct json_writer *w, const char *key, const char *path)
{
	json_key(w, key);
	json_path(w, path);
}
