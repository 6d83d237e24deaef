/* SPDX-License-Identifier: ISC */
/*
 * Looks into the beginning of a long message: what it asks for, and where the
 * string begins that makes it long. A hint that is checked later: the whole
 * message, less that string, still meets json.c.
 */
#ifndef JSONRPC_FIND_H
#define JSONRPC_FIND_H

#include <stddef.h>

/* Offset of the first byte of the string params.KEY, right behind its quote,
 * in a message whose `method`, which must come before, is METHOD. 0: `text`
 * does not reach that far, it is another message, or one with escapes where
 * none are needed. */
size_t rpc_find_string(
    const char *text, size_t len, const char *method, const char *key);

#endif
