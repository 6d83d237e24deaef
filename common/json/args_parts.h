/* SPDX-License-Identifier: ISC */
/*
 * Shared by args.c and args_decode.c: finds members and checks their type.
 */
#ifndef ARGS_PARTS_H
#define ARGS_PARTS_H

#include "args.h"

/* Returns the member, or NULL after reporting that it is missing. */
const struct json_value *args_required(struct args *a, const char *key);

/* Returns the member, or NULL if it is absent or null. */
const struct json_value *args_optional(struct args *a, const char *key);

/* Returns true if v is not NULL and has this type. Another type is reported as
 * an error; `expected` says what was expected. */
bool args_expect(struct args *a, const struct json_value *v,
    enum json_type type, const char *expected);

#endif
