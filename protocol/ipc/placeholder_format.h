/*
 * What the list of a user's masks looks like, for the monitor that makes it
 * and for runners, which read the key and add paths: a letter, the key as 32
 * hexadecimal digits, a NUL, then paths that end with NUL.
 */
#ifndef PLACEHOLDER_FORMAT_H
#define PLACEHOLDER_FORMAT_H

#define MASK_LIST_LIVE	     "L" /* its server may be alive */
#define MASK_LIST_ORPHAN     "O" /* it is not: emptied once it was swept */
#define MASK_LIST_KEY_DIGITS 32
#define MASK_LIST_HEADER     (1 + MASK_LIST_KEY_DIGITS + 1)
#define MASK_LIST_MAX_BYTES  (1u << 20)

#endif
