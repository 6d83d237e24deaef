/* SPDX-License-Identifier: ISC */
/*
 * Looks at the beginning of a long message to find out what it asks for, and
 * where its long string begins. The result is only a hint: the whole message
 * without that string is parsed by json.c later.
 */
#ifndef JSONRPC_FIND_H
#define JSONRPC_FIND_H

#include <stddef.h>

/*
 * Returns the offset of the first byte of the string params.KEY, after its
 * quote. The message must have the `method` METHOD before its params. Returns 0
 * if `text` does not reach that far, if it is another message, or if a key or
 * the method is written with escapes.
 */
size_t rpc_find_string(
    const char *text, size_t len, const char *method, const char *key);

#endif
