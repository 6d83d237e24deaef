/* SPDX-License-Identifier: ISC */
/*
 * Access to the values of messages, for programs that do not include
 * common/json/json.h.
 */
#include "client.h"

const struct json_value *
execd_json_get(const struct json_value *v, const char *key)
{
	return json_get(v, key);
}

const struct json_value *
execd_json_first(const struct json_value *v)
{
	return v ? v->first : NULL;
}

const struct json_value *
execd_json_next(const struct json_value *v)
{
	return v ? v->next : NULL;
}

const char *
execd_json_string(const struct json_value *v, size_t *len)
{
	if (v == NULL || v->type != JSON_STRING)
		return NULL;
	*len = v->text.len;
	return v->text.ptr;
}

int64_t
execd_json_number(const struct json_value *v, int64_t fallback)
{
	int64_t number;

	if (v == NULL || json_to_i64(v, &number) < 0)
		return fallback;
	return number;
}

bool
execd_json_bool(const struct json_value *v, bool fallback)
{
	return v != NULL && v->type == JSON_BOOL ? v->boolean : fallback;
}
