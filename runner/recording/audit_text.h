/* SPDX-License-Identifier: ISC */
/* Copies text that clients wrote into records of fixed size. */
#ifndef AUDIT_TEXT_H
#define AUDIT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "control.h"
#include "util.h"

/*
 * Copies text up to its first NUL, as far as there is room, and adds a NUL.
 * Returns true if that is not the whole text.
 */
bool audit_copy(char *to, size_t room, struct slice text);

/*
 * Copies a process id (UTF-8) so that no two ids of a session look alike. A
 * shortened id ends in a mark with a keyed hash, which nobody outside can
 * compute. An id that already ends like a mark gets one too.
 */
void audit_copy_id(char to[CONTROL_PROCESS_MAX], struct slice id);

#endif
