/* SPDX-License-Identifier: ISC */
/*
 * The key process's system calls.
 */
#ifndef KEYS_POLICY_H
#define KEYS_POLICY_H

/* 0 or -errno. */
int policy_load(void);

#endif
