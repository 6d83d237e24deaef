/* SPDX-License-Identifier: ISC */
/*
 * base64 in steps of many bytes, for base64.c alone. What the processor has is
 * found at run time; without it a step takes nothing and the caller does the
 * work byte by byte.
 */
#ifndef BASE64_WIDE_H
#define BASE64_WIDE_H

#include <stddef.h>
#include <stdint.h>

/* Encodes from the front of src while whole steps are left. Returns the bytes
 * taken, a multiple of 3; dst holds all that src encodes to. */
size_t base64_encode_wide(char *dst, const uint8_t *src, size_t n);

/* Decodes from the front of src while whole steps of the alphabet are left,
 * and ends before the first step with anything else in it. Returns the
 * characters taken, a multiple of 4. Writes nothing behind what all n
 * characters decode to; dst may be src. */
size_t base64_decode_wide(uint8_t *dst, const char *src, size_t n);

#endif
