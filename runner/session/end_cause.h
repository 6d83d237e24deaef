/* SPDX-License-Identifier: ISC */
/*
 * Finds out why a command ended: by itself, because somebody ended it, or at
 * which limit.
 */
#ifndef END_CAUSE_H
#define END_CAUSE_H

#include "control.h"

struct session_process;

/* Only for a command that was reaped. */
enum end_cause end_cause(const struct session_process *p);

#endif
