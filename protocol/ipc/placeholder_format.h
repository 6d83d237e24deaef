/* SPDX-License-Identifier: ISC */
/*
 * What the list of a user's placeholders looks like, for the broker that makes
 * it and for runners, which read the key and add paths: a letter, the key as 32
 * hexadecimal digits, a NUL, then paths that end with NUL.
 */
#ifndef PLACEHOLDER_FORMAT_H
#define PLACEHOLDER_FORMAT_H

#define PLACEHOLDER_LIST_LIVE	    "L" /* its server may be alive */
#define PLACEHOLDER_LIST_ORPHAN	    "O" /* it is not: emptied once it was swept */
#define PLACEHOLDER_LIST_KEY_DIGITS 32
#define PLACEHOLDER_LIST_HEADER	    (1 + PLACEHOLDER_LIST_KEY_DIGITS + 1)
#define PLACEHOLDER_LIST_MAX_BYTES  (1u << 20)

#endif
