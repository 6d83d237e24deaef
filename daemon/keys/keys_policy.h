/* SPDX-License-Identifier: ISC */
/*
 * The system calls that execd-keys may make.
 */
#ifndef KEYS_POLICY_H
#define KEYS_POLICY_H

/* Loads the filter. Returns 0 or -errno. */
int policy_load(void);

#endif
