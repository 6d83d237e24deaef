/* SPDX-License-Identifier: ISC */
/*
 * Reads a tree: members by name, and numbers in range.
 */
#include "json.h"

#include <errno.h>
#include <string.h>

const struct json_value *
json_get(const struct json_value *object, const char *key)
{
	size_t n = strlen(key);

	if (object == NULL || object->type != JSON_OBJECT)
		return NULL;
	for (const struct json_value *v = object->first; v; v = v->next)
		if (v->key.len == n && !memcmp(v->key.ptr, key, n))
			return v;
	return NULL;
}

bool
json_is(const struct json_value *string, const char *text)
{
	size_t n = strlen(text);

	return string != NULL && string->type == JSON_STRING &&
	       string->text.len == n && !memcmp(string->text.ptr, text, n);
}

/* Parses digits only. Returns 0, or -ERANGE. */
static int
parse_digits(const char *s, size_t n, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (n == 0)
		return -ERANGE;
	for (size_t i = 0; i < n; i++) {
		unsigned digit = (unsigned char)s[i] - '0';

		if (digit > 9 || v > (max - digit) / 10)
			return -ERANGE;
		v = v * 10 + digit;
	}
	*out = v;
	return 0;
}

int
json_to_u64(const struct json_value *v, uint64_t *out)
{
	if (v->type != JSON_NUMBER)
		return -ERANGE;
	return parse_digits(v->text.ptr, v->text.len, UINT64_MAX, out);
}

int
json_to_i64(const struct json_value *v, int64_t *out)
{
	bool negative;
	uint64_t u;

	if (v->type != JSON_NUMBER)
		return -ERANGE;
	negative = v->text.len > 0 && v->text.ptr[0] == '-';
	if (parse_digits(v->text.ptr + negative, v->text.len - negative,
		(uint64_t)INT64_MAX + negative, &u) < 0)
		return -ERANGE;
	/* The peer takes minus zero for a floating-point number. */
	if (negative && u == 0)
		return -ERANGE;
	*out = negative ? (int64_t)(0 - u) : (int64_t)u;
	return 0;
}
