/* SPDX-License-Identifier: ISC */
/*
 * The directory of the lists of placeholders (execd(8)), which belongs to the
 * broker.
 */
#ifndef PLACEHOLDER_LISTS_H
#define PLACEHOLDER_LISTS_H

#include <sys/types.h>

/* Returns a descriptor, which execve(2) does not close, or -errno. Files in the
 * directory become that user's. Only for root. */
int placeholder_lists_open(uid_t uid);

#endif
