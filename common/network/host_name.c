/* SPDX-License-Identifier: ISC */
#include "host_name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define LABEL_MAX 63 /* RFC 1035 section 2.3.4 */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Underscores are no letters of host names, but resolvers know such names. */
static bool
is_name_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

static char
to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Writes an address of IPv4 as the mapped form and both in one text. */
static void
set_address(struct host_name *h, const struct in6_addr *address)
{
	h->is_address = true;
	h->address = *address;
	if (IN6_IS_ADDR_V4MAPPED(address))
		inet_ntop(
		    AF_INET, &address->s6_addr[12], h->text, sizeof(h->text));
	else
		inet_ntop(AF_INET6, address, h->text, sizeof(h->text));
}

static bool
parse_address4(struct host_name *h, const char *text)
{
	struct in6_addr mapped = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, &mapped.s6_addr[12]) != 1)
		return false;
	set_address(h, &mapped);
	return true;
}

static bool
parse_address6(struct host_name *h, const char *text)
{
	struct in6_addr address;

	if (inet_pton(AF_INET6, text, &address) != 1)
		return false;
	set_address(h, &address);
	return true;
}

/*
 * A name whose last label is a number would be an address for inet_aton(3):
 * "127.1" or "0x7f.1".
 */
static bool
ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *last = dot != NULL ? dot + 1 : name;

	if (last[0] == '0' && last[1] == 'x')
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	return last[strspn(last, "0123456789")] == '\0';
}

static bool
is_name(const char *name)
{
	size_t label = 0;

	for (const char *c = name; *c != '\0'; c++) {
		if (*c == '.' && label == 0)
			return false;
		label = *c == '.' ? 0 : label + 1;
		if (label > LABEL_MAX || (*c != '.' && !is_name_char(*c)))
			return false;
	}
	return label > 0 && !ends_in_number(name);
}

/* Returns the text within brackets, or -EINVAL for one bracket alone. */
static int
remove_brackets(struct slice *text, bool *brackets)
{
	*brackets = text->len > 0 && text->ptr[0] == '[';
	if (!*brackets)
		return 0;
	if (text->len < 2 || text->ptr[text->len - 1] != ']')
		return -EINVAL;
	*text = (struct slice){ text->ptr + 1, text->len - 2 };
	return 0;
}

int
host_name_parse(struct host_name *h, struct slice text)
{
	bool brackets;

	*h = (struct host_name){ 0 };
	if (remove_brackets(&text, &brackets) < 0)
		return -EINVAL;
	if (text.len > 0 && text.ptr[text.len - 1] == '.' && !brackets)
		text.len--;
	if (text.len == 0 || text.len >= sizeof(h->text))
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] & 0x80)
			return -EILSEQ;
		h->text[i] = to_lower(text.ptr[i]);
		if (h->text[i] == '\0')
			return -EINVAL;
	}
	if (brackets || strchr(h->text, ':') != NULL)
		return parse_address6(h, h->text) ? 0 : -EINVAL;
	return parse_address4(h, h->text) || is_name(h->text) ? 0 : -EINVAL;
}

uint16_t
host_port_parse(struct slice text)
{
	unsigned port = 0;

	if (text.len == 0 || text.len > 5)
		return 0;
	for (size_t i = 0; i < text.len; i++) {
		if (!is_digit(text.ptr[i]))
			return 0;
		port = port * 10 + (unsigned)(text.ptr[i] - '0');
	}
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

void
host_port_split(struct slice text, struct slice *host, struct slice *port)
{
	const char *last =
	    text.len > 0 ? memrchr(text.ptr, ':', text.len) : NULL;
	size_t before = last != NULL ? (size_t)(last - text.ptr) : 0;

	*host = text;
	*port = (struct slice){ text.ptr, 0 };
	if (before == 0)
		return;
	if (text.ptr[0] == '[' ? text.ptr[before - 1] != ']'
			       : memchr(text.ptr, ':', before) != NULL)
		return;
	host->len = before;
	*port = (struct slice){ last + 1, text.len - before - 1 };
}
