/* SPDX-License-Identifier: ISC */
#include "http_text.h"

#include <strings.h>

#include "base.h"

static bool
is_token_char(char c)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z'))
		return true;
	return c != '\0' && strchr(others, c) != NULL;
}

bool
http_is_token(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_token_char(s.ptr[i]))
			return false;
	return s.len > 0;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns true if a header value may contain these bytes. Bytes beyond ASCII
 * are permitted. */
static bool
is_value(struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool
http_is_visible_ascii(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < 0x21 || s.ptr[i] > 0x7e)
			return false;
	return s.len > 0;
}

struct slice
http_drop(struct slice s, size_t n)
{
	return (struct slice){ s.ptr + n, s.len - n };
}

struct slice
http_trim(struct slice s)
{
	while (s.len > 0 && is_blank(s.ptr[0]))
		s = http_drop(s, 1);
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

bool
http_same_word(struct slice s, struct slice word)
{
	return s.len == word.len && !strncasecmp(s.ptr, word.ptr, s.len);
}

bool
http_split(struct slice *rest, char end, struct slice *part)
{
	const char *at = rest->len ? memchr(rest->ptr, end, rest->len) : NULL;

	*part = *rest;
	if (at == NULL) {
		rest->len = 0;
		return false;
	}
	part->len = (size_t)(at - rest->ptr);
	*rest = http_drop(*rest, part->len + 1);
	return true;
}

int
http_next_line(struct slice *rest, struct slice *line)
{
	if (!http_split(rest, '\n', line))
		return 0;
	if (line->len == 0 || line->ptr[line->len - 1] != '\r')
		return -EBADMSG;
	line->len--;
	return 1;
}

bool
http_list_has(struct slice list, struct slice word)
{
	struct slice item;

	while (list.len > 0) {
		http_split(&list, ',', &item);
		if (http_same_word(http_trim(item), word))
			return true;
	}
	return false;
}

int
http_next_field(struct slice *rest, struct slice *name, struct slice *value)
{
	struct slice line;
	int n = http_next_line(rest, &line);

	if (n <= 0)
		return n;
	if (!http_split(&line, ':', name) || !http_is_token(*name) ||
	    !is_value(line))
		return -EBADMSG;
	*value = http_trim(line);
	return 1;
}
