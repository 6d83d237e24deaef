/* SPDX-License-Identifier: ISC */
/*
 * The modes of a terminal in the encoding of SSH (RFC 4254 section 8, and RFC
 * 8160 for IUTF8), by which a client makes a command's terminal like its own.
 * Speeds and the size of a character are left out: a pseudo terminal has none.
 */
#pragma once

#include <termios.h>

#include "base.h"

/* Enough for every mode that there is: 5 bytes each, and the end. */
#define TERMINAL_MODES_MAX 512

/* Writes the modes to text[TERMINAL_MODES_MAX]. Returns their length. */
size_t terminal_modes_put(const struct termios *t, uint8_t *text);

/*
 * Sets in *t what is encoded, as far as this system knows it; the rest stays as
 * it was. Stops where the encoding is cut off.
 */
void terminal_modes_take(struct termios *t, const void *text, size_t len);
