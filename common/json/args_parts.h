/* SPDX-License-Identifier: ISC */
/*
 * What args.c and args_decode.c share: members found, and their type.
 */
#ifndef ARGS_PARTS_H
#define ARGS_PARTS_H

#include "args.h"

/* The member, or NULL after noting that it is missing. */
const struct json_value *args_required(struct args *a, const char *key);

/* The member, or NULL when it is absent or null. */
const struct json_value *args_optional(struct args *a, const char *key);

/* Is there a value, of that type? One of another type is an error, with
 * `expected` for what it should be. */
bool args_expect(struct args *a, const struct json_value *v,
    enum json_type type, const char *expected);

#endif
