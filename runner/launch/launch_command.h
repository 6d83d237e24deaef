/* SPDX-License-Identifier: ISC */
/* The outer launcher: the caller's standard handles on one side, frames of the
 * inner launcher on the other. Both functions return the exit status. */
#ifndef LAUNCH_COMMAND_H
#define LAUNCH_COMMAND_H

#include "launch_text.h"

/* Runs the command of the options. */
unsigned launch_command(
    const struct launch_options *o, const char *const *environment);

/* Passes frames on as they are. */
unsigned launch_relay(void);

#endif
