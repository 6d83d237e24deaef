/* SPDX-License-Identifier: ISC */
/*
 * Typed access to params, read in a straight line and checked once:
 *
 *	p->id = args_string(&a, "processId");
 *	p->tty = args_bool(&a, "tty");
 *	return args_end(&a);
 *
 * Unknown members are ignored. The first error is kept, in the words of the
 * peer's decoder (doc/protocol.md section 4): a wrong type comes before a
 * missing field, as serde reads the object before it looks for what is missing.
 */
#ifndef ARGS_H
#define ARGS_H

#include "json.h"
#include "path_uri.h"

#define ARGS_ERROR_MAX 1024

struct args {
	struct json_doc *doc; /* arena for decoded values; not owned */
	const struct json_value *object;
	bool wrong; /* a value of the wrong type or form */
	bool missing;
	char error[ARGS_ERROR_MAX];
};

/* `name` is the peer's struct name, for "expected struct NAME". params may be
 * NULL (absent counts as null). */
void args_init(struct args *a, struct json_doc *doc,
    const struct json_value *params, const char *name);

/* 0, or -EBADMSG with a->error set. */
int args_end(const struct args *a);

/* Params of a method that takes none: null, {} or absent. 0 or -EBADMSG. */
int args_none(
    struct args *a, struct json_doc *doc, const struct json_value *params);

/* Required members. On error they return an empty value. */
struct slice args_string(struct args *a, const char *key);
bool args_bool(struct args *a, const char *key);
uint64_t args_u64(struct args *a, const char *key);
/* Refused outside of min..max. */
uint64_t args_range(
    struct args *a, const char *key, uint64_t min, uint64_t max);
const struct json_value *args_strings(struct args *a, const char *key);
const struct json_value *args_string_map(struct args *a, const char *key);
const struct json_value *args_object(
    struct args *a, const char *key, const char *name);
/* Index into variants[] (NULL-terminated). */
int args_enum(struct args *a, const char *key, const char *const variants[]);
/* Standard base64; bytes live in the arena. */
struct slice args_base64(struct args *a, const char *key);
/* A file URI; see path_uri.h. A foreign URI is not an error here. */
struct path_uri args_path(struct args *a, const char *key);

/* A list of anything; its members are the caller's to check. NULL on error. */
const struct json_value *args_list(struct args *a, const char *key);
/* The value itself as a file URI: for members of lists. */
struct path_uri args_path_value(struct args *a, const struct json_value *v);

/* Optional members: absent or null is `fallback` (or false / NULL / 0). */
bool args_opt_string(struct args *a, const char *key, struct slice *out);
uint64_t args_opt_u64(struct args *a, const char *key, uint64_t fallback);
/* As args_opt_u64; false: there is none. */
bool args_opt_number(struct args *a, const char *key, uint64_t *out);
uint64_t args_opt_range(struct args *a, const char *key, uint64_t min,
    uint64_t max, uint64_t fallback);
bool args_opt_bool(struct args *a, const char *key, bool fallback);
bool args_opt_path(struct args *a, const char *key, struct path_uri *out);
const struct json_value *args_opt_object(
    struct args *a, const char *key, const char *name);
bool args_opt_base64(struct args *a, const char *key, struct slice *out);

/* Default when absent, but null is refused ("not null" in doc/protocol.md). */
bool args_default_bool(struct args *a, const char *key, bool fallback);
/* NULL when absent. */
const struct json_value *args_default_list(struct args *a, const char *key);
int args_default_enum(struct args *a, const char *key,
    const char *const variants[], int fallback);

/* As args_enum, but absent or null is `fallback`. */
int args_opt_enum(struct args *a, const char *key, const char *const variants[],
    int fallback);

/* Sets an error of the caller's own (a value check). */
void args_fail(struct args *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
