/* SPDX-License-Identifier: ISC */
/*
 * Typed access to params whose text has a meaning: an enum, base64 or a path.
 */
#include "args.h"

#include <stdio.h>

#include "args_parts.h"
#include "base64.h"

static void
fail_variant(struct args *a, struct slice got, const char *const variants[])
{
	char list[512];
	size_t n = 0, at = 0;

	while (variants[n] != NULL)
		n++;
	at = (size_t)snprintf(list, sizeof(list), "%s", n > 2 ? "one of " : "");
	for (size_t i = 0; i < n && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s`%s`",
		    i == 0   ? ""
		    : n == 2 ? " or "
			     : ", ",
		    variants[i]);
	args_fail(a, "unknown variant `%.*s`, expected %s",
	    (int)(got.len < 200 ? got.len : 200), got.ptr, list);
}

static int
take_enum(
    struct args *a, const struct json_value *v, const char *const variants[])
{
	if (!args_expect(a, v, JSON_STRING, "string or map"))
		return 0;
	for (int i = 0; variants[i] != NULL; i++)
		if (json_is(v, variants[i]))
			return i;
	fail_variant(a, v->text, variants);
	return 0;
}

int
args_enum(struct args *a, const char *key, const char *const variants[])
{
	return take_enum(a, args_required(a, key), variants);
}

int
args_opt_enum(
    struct args *a, const char *key, const char *const variants[], int fallback)
{
	const struct json_value *v = args_optional(a, key);

	return v == NULL ? fallback : take_enum(a, v, variants);
}

int
args_default_enum(
    struct args *a, const char *key, const char *const variants[], int fallback)
{
	const struct json_value *v = json_get(a->object, key);

	return v == NULL ? fallback : take_enum(a, v, variants);
}

static struct slice
take_base64(struct args *a, const struct json_value *v)
{
	char error[BASE64_ERROR_MAX];
	ssize_t n;
	char *bytes;

	if (!args_expect(a, v, JSON_STRING, "a string"))
		return (struct slice){ "", 0 };
	bytes = json_alloc(a->doc, base64_decoded_max(v->text.len));
	n = base64_decode(bytes, v->text.ptr, v->text.len, error);
	if (n < 0) {
		args_fail(a, "%s", error);
		return (struct slice){ "", 0 };
	}
	return (struct slice){ bytes, (size_t)n };
}

struct slice
args_base64(struct args *a, const char *key)
{
	return take_base64(a, args_required(a, key));
}

bool
args_opt_base64(struct args *a, const char *key, struct slice *out)
{
	const struct json_value *v = args_optional(a, key);

	*out = v ? take_base64(a, v) : (struct slice){ "", 0 };
	return v != NULL;
}

static struct path_uri
take_path(struct args *a, const struct json_value *v)
{
	struct path_uri path = { .path = "/" };
	char error[512];

	if (args_expect(a, v, JSON_STRING, "a string") &&
	    path_uri_parse(&path, a->doc, v->text, error, sizeof(error)) < 0)
		args_fail(a, "%s", error);
	return path;
}

struct path_uri
args_path_value(struct args *a, const struct json_value *v)
{
	return take_path(a, v);
}

struct path_uri
args_path(struct args *a, const char *key)
{
	return take_path(a, args_required(a, key));
}

bool
args_opt_path(struct args *a, const char *key, struct path_uri *out)
{
	const struct json_value *v = args_optional(a, key);

	if (v != NULL)
		*out = take_path(a, v);
	return v != NULL;
}
