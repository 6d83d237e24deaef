/* SPDX-License-Identifier: ISC */
/*
 * Whether a sandboxed command failed because it was denied something, as the
 * peer guesses it and clients decide by it (doc/sandbox.md part D). Plain C, no
 * operating system.
 */
#ifndef DENIAL_H
#define DENIAL_H

#include "retention.h"

/* From the exit code (128 + n for signal n) and what is retained of the
 * output. */
bool denial_is_likely(const struct retention *output, int exit_code);

#endif
