/* SPDX-License-Identifier: ISC */
/*
 * Why a command ended: by itself, because somebody wanted it to, or at which
 * limit.
 */
#ifndef END_CAUSE_H
#define END_CAUSE_H

#include "control.h"

struct session_process;

/* Of one that was reaped. */
enum end_cause end_cause(const struct session_process *p);

#endif
