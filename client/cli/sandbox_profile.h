/* SPDX-License-Identifier: ISC */
/*
 * Names of sandbox profiles -> the context that process/start takes
 * (doc/sandbox.md section A3).
 */
#ifndef SANDBOX_PROFILE_H
#define SANDBOX_PROFILE_H

#include <stdbool.h>

#include "buf.h"

/* Appends the JSON text for a command in `cwd`, which is the workspace. With
 * network, sockets are allowed. False: there is no such profile. */
bool sandbox_profile_write(
    struct buf *b, const char *profile, const char *cwd, bool network);

#endif
