/* SPDX-License-Identifier: ISC */
/*
 * Opens the places of the list, which are in the file system and on the
 * network.
 */
#pragma once

#include "base.h"
#include "control_spawn.h"

/* The place exists and has no descriptor. */
#define PLACE_NONE (-4096)

/* Opens the place, or of a listener nothing. With `check` it only finds out
 * whether this can be done. Returns a descriptor, the caller's, PLACE_NONE, or
 * -errno, for some errors with the reason in why. */
int place_open(
    const struct control_place *p, bool check, char *why, size_t len);

/* Binds the socket of a listener. Returns 0 or -errno. */
int place_bind(int fd, const struct control_place *p);

/* Sets who may connect to the listener's path. Returns 0 or -errno. */
int place_permit(const struct control_place *p);
