/* SPDX-License-Identifier: ISC */
/*
 * The dialects of the reference runner (doc/protocol.md section 18), versions 1
 * and 6: one command, with its parent at the other end of a pipe. The operating
 * system is behind host.h.
 */
#ifndef DIALECT_FRAMES_H
#define DIALECT_FRAMES_H

#include <stdint.h>

/*
 * Serves one spawn_request of the parent that the host knows. Returns the
 * program's exit code: that of the command if it was reported, 1 if the parent
 * broke the protocol or went away.
 */
uint32_t dialect_frames_run(void);

#endif
