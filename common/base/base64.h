/* SPDX-License-Identifier: ISC */
/*
 * Standard base64 with padding (RFC 4648 section 4), the hot path of output.
 */
#ifndef BASE64_H
#define BASE64_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Characters that n bytes encode to. */
static inline size_t
base64_encoded_len(size_t n)
{
	return (n + 2) / 3 * 4;
}

/* Upper bound of the bytes that n characters decode to. */
static inline size_t
base64_decoded_max(size_t n)
{
	return (n + 3) / 4 * 3;
}

/* Writes base64_encoded_len(n) characters, no NUL. Returns that number. The
 * fastest code this processor has is chosen at run time. */
size_t base64_encode(char *dst, const void *src, size_t n);

/*
 * Strict and canonical: no blanks, no URL alphabet, padding required, unused
 * bits zero (doc/protocol.md section 4). dst holds base64_decoded_max(n) bytes
 * and may be src itself. Returns the number of bytes, or -EBADMSG with one of
 *	Invalid symbol 33, offset 0.
 *	Invalid padding
 *	Invalid last symbol 108, offset 2.
 * in error[].
 */
#define BASE64_ERROR_MAX 64
ssize_t base64_decode(
    void *dst, const char *src, size_t n, char error[BASE64_ERROR_MAX]);

#endif
