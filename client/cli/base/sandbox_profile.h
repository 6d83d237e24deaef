/* SPDX-License-Identifier: ISC */
/*
 * Converts a sandbox profile's name to the context that process/start takes
 * (doc/sandbox.md section A3).
 */
#ifndef SANDBOX_PROFILE_H
#define SANDBOX_PROFILE_H

#include <stdbool.h>

#include "buf.h"

/* Appends the JSON text for a command in `cwd`, which becomes the workspace.
 * `network` allows sockets. False: there is no such profile. */
bool sandbox_profile_write(
    struct buf *b, const char *profile, const char *cwd, bool network);

#endif
