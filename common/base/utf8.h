/* SPDX-License-Identifier: ISC */
/*
 * UTF-8, whole or in pieces (RFC 3629): no overlong forms, no surrogates,
 * nothing beyond U+10FFFF.
 */
#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>
#include <stdint.h>

/* DFA step over n bytes; 0 is "complete", 1 is "refused", else inside a
 * character. Fast over ASCII. */
uint32_t utf8_check(uint32_t state, const uint8_t *p, size_t n);

/* Offset of the first byte that does not belong, or n. */
size_t utf8_find_invalid(const void *p, size_t n);

#endif
