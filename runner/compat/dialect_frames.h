/* SPDX-License-Identifier: ISC */
/*
 * This file speaks versions 1 and 6 of the reference runner's frames
 * (doc/protocol.md section 18). A runner has one command, and its parent is at
 * the other end of a pipe. host.h stands for the operating system.
 */
#pragma once

#include <stdint.h>

/*
 * Serves one spawn_request of the parent that the host knows. Returns the
 * program's exit code: that of the command if it was reported, 1 if the parent
 * broke the protocol or went away.
 */
uint32_t dialect_frames_run(void);
