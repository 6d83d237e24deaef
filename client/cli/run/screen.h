/* SPDX-License-Identifier: ISC */
/*
 * A command's output changes modes of the user's terminal. This file remembers
 * them, so that execctl can reset them when it leaves the command. Pure.
 */
#pragma once

#include "base.h"

/* State of the modes that are known; all zero at the beginning. */
struct screen {
	uint32_t changed; /* a bit for each mode */
	enum { SCREEN_TEXT, SCREEN_ESCAPE, SCREEN_BRACKET, SCREEN_MODE } state;
	unsigned int modes[8]; /* of the sequence that is read */
	size_t count;
};

/* Bytes that screen_restore() writes at most, with a NUL. */
#define SCREEN_RESTORE_MAX 128

/* Looks at output. A sequence may be cut anywhere. */
void screen_watch(struct screen *s, const char *data, size_t len);
/* Writes the sequences that bring the terminal back, and forgets the changes.
 */
void screen_restore(struct screen *s, char text[SCREEN_RESTORE_MAX]);
