/* SPDX-License-Identifier: ISC */
/*
 * Paths of Windows as text: which form they have, and which names Windows could
 * give a file. Nothing is looked up. A separator is a slash of either kind.
 */
#pragma once

#include "base.h"

/* The longest path, in bytes. Windows itself has this many UTF-16 units. */
#define WINDOWS_PATH_MAX_BYTES 32767

/* Returns true for either kind of slash. */
bool windows_is_separator(char c);

/* Tells whether a text can only be a path of Windows: it begins with a drive
 * letter and a colon, with a backslash, or with two slashes of any kind. */
bool windows_path_begins(struct slice text);

/* Checks that the text is "X:" or begins with "X:" and a separator. Returns
 * NULL, or a static text that says what it is instead: a path of the network or
 * of a device, or one that depends on a current directory. */
const char *windows_path_form_fault(struct slice text);

/* Takes the next name off the front of *rest, and skips separators and names
 * that are ".". Returns false at the end. */
bool windows_path_next(struct slice *rest, struct slice *name);

/* Returns NULL if Windows could give this name to a file, or a static text that
 * says why not: ".." and the names of devices, with any extension; a colon,
 * which begins an alternate stream; a wildcard or control character; a dot or
 * blank at the end, which Windows ignores; bytes that are not UTF-8. */
const char *windows_name_fault(struct slice name);

/* Compares as Windows does, except that only ASCII letters have two cases. */
bool windows_name_equal(struct slice a, struct slice b);
