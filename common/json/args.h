/* SPDX-License-Identifier: ISC */
/*
 * Typed access to params. A decoder reads its members in a straight line and
 * checks for errors once at the end:
 *
 *	p->id = args_string(&a, "processId");
 *	p->tty = args_bool(&a, "tty");
 *	return args_end(&a);
 *
 * Unknown members are ignored. The first error is kept, in the words of the
 * peer's decoder (doc/protocol.md section 4). A wrong type takes precedence
 * over a missing field, because serde reads the whole object before it looks
 * for missing fields.
 */
#pragma once

#include "path_uri.h"

#define ARGS_ERROR_MAX 1024

struct args {
	struct json_doc *doc; /* arena for decoded values; not owned */
	const struct json_value *params; /* never NULL */
	const struct json_value *object;
	bool wrong; /* a value of the wrong type or form */
	bool missing;
	char error[ARGS_ERROR_MAX];
};

/* Takes params of any type, before one of the two below. NULL counts as null.
 */
void args_take(
    struct args *a, struct json_doc *doc, const struct json_value *params);
/* Begins with an object. `name` is the name of the peer's struct, for the
 * message "expected struct NAME". */
void args_begin(struct args *a, const char *name);
/* For methods without params: null, {} and absent are accepted. */
void args_none(struct args *a);
/* args_take() and args_begin(). */
void args_init(struct args *a, struct json_doc *doc,
    const struct json_value *params, const char *name);

/* Returns 0, or -EBADMSG with a->error set. */
int args_end(const struct args *a);

/* Required members. On error these functions return an empty value. */
struct slice args_string(struct args *a, const char *key);
bool args_bool(struct args *a, const char *key);
uint64_t args_u64(struct args *a, const char *key);
/* Values outside min..max are refused. */
uint64_t args_range(
    struct args *a, const char *key, uint64_t min, uint64_t max);
const struct json_value *args_strings(struct args *a, const char *key);
const struct json_value *args_string_map(struct args *a, const char *key);
const struct json_value *args_object(
    struct args *a, const char *key, const char *name);
/* Returns the index in variants[], which ends with NULL. */
int args_enum(struct args *a, const char *key, const char *const variants[]);
/* Standard base64. The decoded bytes are in the arena. */
struct slice args_base64(struct args *a, const char *key);
/* A file URI; see path_uri.h. A foreign URI is no error here. */
struct path_uri args_path(struct args *a, const char *key);

/* A list with members of any type, which the caller checks. NULL on error. */
const struct json_value *args_list(struct args *a, const char *key);
/* Takes the value itself as a file URI. For members of lists. */
struct path_uri args_path_value(struct args *a, const struct json_value *v);

/* Optional members. If the member is absent or null, these functions return
 * `fallback` (or false, NULL or 0). */
bool args_opt_string(struct args *a, const char *key, struct slice *out);
uint64_t args_opt_u64(struct args *a, const char *key, uint64_t fallback);
/* Like args_opt_u64(), but returns false if there is no value. */
bool args_opt_number(struct args *a, const char *key, uint64_t *out);
uint64_t args_opt_range(struct args *a, const char *key, uint64_t min,
    uint64_t max, uint64_t fallback);
bool args_opt_bool(struct args *a, const char *key, bool fallback);
bool args_opt_path(struct args *a, const char *key, struct path_uri *out);
const struct json_value *args_opt_object(
    struct args *a, const char *key, const char *name);
bool args_opt_base64(struct args *a, const char *key, struct slice *out);

/* Optional members that must not be null ("not null" in doc/protocol.md). If
 * the member is absent, the result is `fallback`. */
bool args_default_bool(struct args *a, const char *key, bool fallback);
/* NULL if absent. */
const struct json_value *args_default_list(struct args *a, const char *key);
int args_default_enum(struct args *a, const char *key,
    const char *const variants[], int fallback);

/* Like args_enum(), but `fallback` if absent or null. */
int args_opt_enum(struct args *a, const char *key, const char *const variants[],
    int fallback);

/* Reports an error that the caller found in a value. */
void args_fail(struct args *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns true if v is not NULL and has this type. Another type is reported as
 * an error; `expected` says what was expected. */
bool args_expect(struct args *a, const struct json_value *v,
    enum json_type type, const char *expected);
