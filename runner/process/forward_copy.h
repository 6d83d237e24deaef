/* SPDX-License-Identifier: ISC */
/*
 * One forwarded connection (process/forward): copies standard input to a
 * connected socket and what the socket sends to standard output. The runner
 * starts it as `execd-runner --forward`, as a process of the session, so that a
 * forwarded connection has the output, the back-pressure, the limits, the
 * resuming and the end of every other process.
 */
#pragma once

#define FORWARD_FD 3 /* the socket */

/*
 * Serves the socket on FORWARD_FD until the server has ended its direction,
 * because a client sees the end of output only at the end of a process. The end
 * of standard input is passed on. Returns the exit status: 0; or 1 if the
 * connection was refused or broken, which standard error says.
 */
int forward_copy_run(void);
