/* SPDX-License-Identifier: ISC */
/*
 * The directory of the lists of placeholders (execd.conf(5)), which is the
 * broker's.
 */
#ifndef PLACEHOLDER_LISTS_H
#define PLACEHOLDER_LISTS_H

#include <sys/types.h>

/* A descriptor, which execve(2) does not close, or -errno. What lies there
 * becomes that user's. Root only. */
int placeholder_lists_open(uid_t uid);

#endif
