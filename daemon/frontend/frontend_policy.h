/* SPDX-License-Identifier: ISC */
/*
 * The system calls that the front-end may make. confine.c loads the filter as
 * its last step.
 */
#ifndef FRONTEND_POLICY_H
#define FRONTEND_POLICY_H

/* Loads the filter. Returns 0 or -errno. */
int policy_load(void);

#endif
