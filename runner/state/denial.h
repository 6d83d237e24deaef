/* SPDX-License-Identifier: ISC */
/*
 * Guesses whether a sandboxed command failed because something was denied to
 * it. The guess follows the peer's rules, and clients act on it (doc/sandbox.md
 * part D). Plain C without system calls.
 */
#ifndef DENIAL_H
#define DENIAL_H

#include "retention.h"

/*
 * exit_code is 128 + n for a command that signal n killed. The guess uses this
 * code and the retained output.
 */
bool denial_is_likely(const struct retention *output, int exit_code);

#endif
