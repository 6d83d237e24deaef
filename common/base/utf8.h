/* SPDX-License-Identifier: ISC */
/*
 * UTF-8 in one piece or in several (RFC 3629). Overlong forms, surrogates and
 * code points beyond U+10FFFF are refused.
 */
#pragma once

#include "base.h"

struct buf;

/* Advances the state over n bytes and returns the new state. State 0 means
 * complete, and is also the first state. State 1 means refused. Any other state
 * is inside a character. Runs of ASCII are fast. */
uint32_t utf8_check(uint32_t state, const uint8_t *p, size_t n);

/* Returns the offset of the first invalid byte, or n if all bytes are valid. If
 * the text ends inside a character, the offset is n - 1. */
size_t utf8_find_invalid(const void *p, size_t n);

/* Decodes the character at p. n bytes of the text are left, at least one.
 * Returns the length of the character, or 0 if these bytes are no character. */
size_t utf8_next(const uint8_t *p, size_t n, uint32_t *code);

/* Tells whether a terminal or an editor would obey the character: control
 * characters, also those above 0x7f (CSI), what changes the direction of text,
 * and separators of lines. */
bool utf8_controls(uint32_t c);

/* Appends the text for a terminal. Bytes of characters that would control it
 * become \xNN, and bytes that are not UTF-8. */
void utf8_escape(struct buf *b, const char *p, size_t n);

/* Appends the character with this code, which is valid. */
void utf8_put(struct buf *b, uint32_t c);
