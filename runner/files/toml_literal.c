/* SPDX-License-Identifier: ISC */
/*
 * The values of TOML 1.0 that are no strings.
 */
#include "toml_literal.h"

#include <stdint.h>
#include <string.h>

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

bool
toml_is_date(struct slice text)
{
	return take_date(&text.ptr, &text.len) && text.len == 0;
}

bool
toml_is_literal(struct slice text)
{
	const char *p = text.ptr;
	size_t n = text.len;

	return slice_equal(text, SLICE("true")) ||
	       slice_equal(text, SLICE("false")) || is_integer(p, n) ||
	       is_float(p, n) || is_moment(p, n);
}
