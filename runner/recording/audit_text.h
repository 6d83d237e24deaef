/* SPDX-License-Identifier: ISC */
/*
 * What clients wrote, for records of fixed size.
 */
#ifndef AUDIT_TEXT_H
#define AUDIT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "control.h"
#include "util.h"

/* Of a text up to its first NUL what there is room for, and a NUL. True: that
 * is not all of it. */
bool audit_copy(char *to, size_t room, struct slice text);

/* An id of a process, UTF-8, so that no two of a session look alike: what is
 * not all of one ends in a mark with a hash that nobody outside can compute,
 * and so does what ends like a mark by itself. */
void audit_copy_id(char to[CONTROL_PROCESS_MAX], struct slice id);

#endif
