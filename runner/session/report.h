/* SPDX-License-Identifier: ISC */
/*
 * Writes the state of a process and how it ended, as process/wait answers it
 * (doc/protocol.md section 17).
 */
#ifndef REPORT_H
#define REPORT_H

#include "control.h"
#include "request.h"

struct session_process;

/*
 * Writes members into an object that is open: running, exitCode, closed, and
 * how it ended: signal, core, timedOut, oomKilled, rusage.
 */
void report_write(struct json_writer *w, const struct session_process *p);

/* Answers process/wait. */
void report_reply(struct channel *ch, const struct session_process *p,
    const struct rpc_id *id);

/*
 * Finds out why a command ended: by itself, because somebody ended it, or at
 * which limit.
 */

struct session_process;

/* Only for a command that was reaped. */
enum end_cause end_cause(const struct session_process *p);

#endif
