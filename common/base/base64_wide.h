/* SPDX-License-Identifier: ISC */
/*
 * base64 in steps of many bytes, for base64.c only. The instructions that the
 * processor has are found at run time. Without them these functions process
 * nothing, and the caller works byte by byte.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Encodes whole steps from the front of src. Returns the number of bytes
 * processed, a multiple of 3. dst must have room for the encoding of all n
 * bytes. */
size_t base64_encode_wide(char *dst, const uint8_t *src, size_t n);

/*
 * Decodes whole steps from the front of src and stops before the first step
 * that holds a character outside the alphabet. Returns the number of characters
 * processed, a multiple of 4. Never writes beyond the room that all n
 * characters decode to. dst may be src.
 */
size_t base64_decode_wide(uint8_t *dst, const char *src, size_t n);
