/* SPDX-License-Identifier: ISC */
/*
 * The front-end's system calls (confine.c loads them last).
 */
#ifndef FRONTEND_POLICY_H
#define FRONTEND_POLICY_H

/* 0 or -errno. */
int policy_load(void);

#endif
