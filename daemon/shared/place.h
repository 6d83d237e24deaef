/* SPDX-License-Identifier: ISC */
/*
 * Places of the list, in the file system and on the network.
 */
#ifndef PLACE_H
#define PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "control.h"

/* It is there, and has no descriptor. */
#define PLACE_NONE (-4096)

/* Binds, opens, or with `check` finds out whether that can be done. The
 * descriptor, the caller's, PLACE_NONE, or -errno, some with a reason in why.
 */
int place_open(
    const struct control_place *p, bool check, char *why, size_t len);

/* Who may connect to the listener's path. 0 or -errno. */
int place_permit(const struct control_place *p);

#endif
