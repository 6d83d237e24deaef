/* SPDX-License-Identifier: ISC */
/*
 * The format of the list of a user's placeholders: a letter, the key as 32
 * hexadecimal digits, a NUL, then paths that each end with a NUL. The broker
 * makes the list. Runners read the key and add paths.
 */
#ifndef PLACEHOLDER_FORMAT_H
#define PLACEHOLDER_FORMAT_H

/* the execd that made it may still run */
#define PLACEHOLDER_LIST_LIVE "L"
/* it does not; emptied after the cleanup */
#define PLACEHOLDER_LIST_ORPHAN	    "O"
#define PLACEHOLDER_LIST_KEY_DIGITS 32
#define PLACEHOLDER_LIST_HEADER	    (1 + PLACEHOLDER_LIST_KEY_DIGITS + 1)
#define PLACEHOLDER_LIST_MAX_BYTES  (1u << 20)

#endif
