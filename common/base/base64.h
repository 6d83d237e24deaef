/* SPDX-License-Identifier: ISC */
/*
 * Standard base64 with padding (RFC 4648 section 4). All output of commands
 * passes through it, so it is written for speed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the number of characters that n bytes encode to. */
static inline size_t
base64_encoded_len(size_t n)
{
	return (n + 2) / 3 * 4;
}

/* Returns an upper bound for the bytes that n characters decode to. */
static inline size_t
base64_decoded_max(size_t n)
{
	return (n + 3) / 4 * 3;
}

/* Writes base64_encoded_len(n) characters to dst, without a NUL, and returns
 * their number. The fastest code for this processor is chosen at run time. */
size_t base64_encode(char *dst, const void *src, size_t n);

/*
 * Decodes strictly: no blanks, no URL alphabet, padding is required, and unused
 * bits must be zero (doc/protocol.md section 4). dst must have room for
 * base64_decoded_max(n) bytes and may be src. Returns the number of bytes, or
 * -EBADMSG with a message in error[], for example:
 *	Invalid symbol 33, offset 0.
 *	Invalid padding
 *	Invalid last symbol 108, offset 2.
 */
#define BASE64_ERROR_MAX 64
ssize_t base64_decode(
    void *dst, const char *src, size_t n, char error[BASE64_ERROR_MAX]);

/* Decodes the URL alphabet without padding (RFC 4648 section 5) as strictly.
 * *bytes, which the caller owns, also when there are none. Returns the number
 * of bytes, or -EBADMSG. */
ssize_t base64_decode_url(const char *src, size_t n, uint8_t **bytes);
