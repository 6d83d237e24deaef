/* SPDX-License-Identifier: ISC */
/*
 * Typed access to params: members with their JSON types. Error messages are
 * those of the peer.
 */
#include "args.h"

#include "base64.h"

static const struct json_value json_null_value = { .type = JSON_NULL };

void
args_fail(struct args *a, const char *fmt, ...)
{
	va_list ap;

	if (a->wrong)
		return;
	a->wrong = true;
	va_start(ap, fmt);
	vsnprintf(a->error, sizeof(a->error), fmt, ap);
	va_end(ap);
}

static void
describe(const struct json_value *v, char *text, size_t cap)
{
	switch (v->type) {
	case JSON_NULL:
		snprintf(text, cap, "null");
		break;
	case JSON_BOOL:
		snprintf(
		    text, cap, "boolean `%s`", v->boolean ? "true" : "false");
		break;
	case JSON_NUMBER:
		snprintf(text, cap, "number");
		break;
	case JSON_STRING:
		snprintf(text, cap, "string \"%.*s\"",
		    (int)(v->text.len < 200 ? v->text.len : 200), v->text.ptr);
		break;
	case JSON_ARRAY:
		snprintf(text, cap, "sequence");
		break;
	case JSON_OBJECT:
		snprintf(text, cap, "map");
		break;
	}
}

static void
fail_type(struct args *a, const struct json_value *v, const char *expected)
{
	char kind[256];

	describe(v, kind, sizeof(kind));
	args_fail(a, "invalid type: %s, expected %s", kind, expected);
}

static void
fail_missing(struct args *a, const char *key)
{
	if (a->wrong || a->missing)
		return;
	a->missing = true;
	snprintf(a->error, sizeof(a->error), "missing field `%s`", key);
}

void
args_take(struct args *a, struct json_doc *doc, const struct json_value *params)
{
	*a = (struct args){ .doc = doc, .params = params };
	if (params == NULL)
		a->params = &json_null_value;
}

void
args_begin(struct args *a, const char *name)
{
	char expected[96];

	if (a->params->type == JSON_OBJECT) {
		a->object = a->params;
		return;
	}
	snprintf(expected, sizeof(expected), "struct %s", name);
	fail_type(a, a->params, expected);
}

void
args_init(struct args *a, struct json_doc *doc, const struct json_value *params,
    const char *name)
{
	args_take(a, doc, params);
	args_begin(a, name);
}

int
args_end(const struct args *a)
{
	return a->wrong || a->missing ? -EBADMSG : 0;
}

void
args_none(struct args *a)
{
	const struct json_value *v = a->params;

	if (v->type != JSON_NULL && (v->type != JSON_OBJECT || v->count > 0))
		fail_type(a, v, "unit");
}

/* Returns the member, or NULL after reporting that it is missing. */
static const struct json_value *
args_required(struct args *a, const char *key)
{
	const struct json_value *v = json_get(a->object, key);

	if (v == NULL)
		fail_missing(a, key);
	return v;
}

/* Returns the member, or NULL if it is absent or null. */
static const struct json_value *
args_optional(struct args *a, const char *key)
{
	const struct json_value *v = json_get(a->object, key);

	return v == NULL || v->type == JSON_NULL ? NULL : v;
}

bool
args_expect(struct args *a, const struct json_value *v, enum json_type type,
    const char *expected)
{
	if (v == NULL)
		return false;
	if (v->type != type)
		fail_type(a, v, expected);
	return v->type == type;
}

struct slice
args_string(struct args *a, const char *key)
{
	const struct json_value *v = args_required(a, key);

	if (!args_expect(a, v, JSON_STRING, "a string"))
		return (struct slice){ "", 0 };
	return v->text;
}

bool
args_opt_string(struct args *a, const char *key, struct slice *out)
{
	const struct json_value *v = args_optional(a, key);

	*out = (struct slice){ "", 0 };
	if (!args_expect(a, v, JSON_STRING, "a string"))
		return false;
	*out = v->text;
	return true;
}

bool
args_bool(struct args *a, const char *key)
{
	const struct json_value *v = args_required(a, key);

	return args_expect(a, v, JSON_BOOL, "a boolean") && v->boolean;
}

bool
args_default_bool(struct args *a, const char *key, bool fallback)
{
	const struct json_value *v = json_get(a->object, key);

	if (v == NULL)
		return fallback;
	return args_expect(a, v, JSON_BOOL, "a boolean") && v->boolean;
}

bool
args_opt_bool(struct args *a, const char *key, bool fallback)
{
	const struct json_value *v = args_optional(a, key);

	if (v == NULL)
		return fallback;
	return args_expect(a, v, JSON_BOOL, "a boolean") && v->boolean;
}

static uint64_t
take_u64(struct args *a, const struct json_value *v)
{
	uint64_t n = 0;

	if (args_expect(a, v, JSON_NUMBER, "u64") && json_to_u64(v, &n) < 0)
		args_fail(a, "invalid number");
	return n;
}

uint64_t
args_u64(struct args *a, const char *key)
{
	return take_u64(a, args_required(a, key));
}

uint64_t
args_opt_u64(struct args *a, const char *key, uint64_t fallback)
{
	const struct json_value *v = args_optional(a, key);

	return v == NULL ? fallback : take_u64(a, v);
}

bool
args_opt_number(struct args *a, const char *key, uint64_t *out)
{
	const struct json_value *v = args_optional(a, key);

	*out = v == NULL ? 0 : take_u64(a, v);
	return v != NULL;
}

static uint64_t
take_range(
    struct args *a, const struct json_value *v, uint64_t min, uint64_t max)
{
	uint64_t n = take_u64(a, v);

	if (v != NULL && (n < min || n > max))
		args_fail(a, "%.*s must be between %" PRIu64 " and %" PRIu64,
		    (int)v->key.len, v->key.ptr, min, max);
	return n;
}

uint64_t
args_range(struct args *a, const char *key, uint64_t min, uint64_t max)
{
	return take_range(a, args_required(a, key), min, max);
}

uint64_t
args_opt_range(struct args *a, const char *key, uint64_t min, uint64_t max,
    uint64_t fallback)
{
	const struct json_value *v = args_optional(a, key);

	return v == NULL ? fallback : take_range(a, v, min, max);
}

static const struct json_value *
take_all_strings(struct args *a, const struct json_value *v)
{
	for (const struct json_value *m = v->first; m != NULL; m = m->next)
		if (!args_expect(a, m, JSON_STRING, "a string"))
			break;
	return v;
}

const struct json_value *
args_strings(struct args *a, const char *key)
{
	static const struct json_value none = { .type = JSON_ARRAY };
	const struct json_value *v = args_required(a, key);

	return args_expect(a, v, JSON_ARRAY, "a sequence")
		   ? take_all_strings(a, v)
		   : &none;
}

const struct json_value *
args_list(struct args *a, const char *key)
{
	const struct json_value *v = args_required(a, key);

	return args_expect(a, v, JSON_ARRAY, "a sequence") ? v : NULL;
}

const struct json_value *
args_default_list(struct args *a, const char *key)
{
	const struct json_value *v = json_get(a->object, key);

	return v != NULL && args_expect(a, v, JSON_ARRAY, "a sequence") ? v
									: NULL;
}

const struct json_value *
args_string_map(struct args *a, const char *key)
{
	static const struct json_value none = { .type = JSON_OBJECT };
	const struct json_value *v = args_required(a, key);

	return args_expect(a, v, JSON_OBJECT, "a map") ? take_all_strings(a, v)
						       : &none;
}

static const struct json_value *
take_object(struct args *a, const struct json_value *v, const char *name)
{
	char expected[96];

	snprintf(expected, sizeof(expected), "struct %s", name);
	return args_expect(a, v, JSON_OBJECT, expected) ? v : NULL;
}

const struct json_value *
args_object(struct args *a, const char *key, const char *name)
{
	return take_object(a, args_required(a, key), name);
}

const struct json_value *
args_opt_object(struct args *a, const char *key, const char *name)
{
	return take_object(a, args_optional(a, key), name);
}

/*
 * Typed access to params whose text has a meaning: an enum, base64 or a path.
 */

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
