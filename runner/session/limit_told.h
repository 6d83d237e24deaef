/* SPDX-License-Identifier: ISC */
/*
 * What a limit did to a command, told where its reader looks.
 */
#pragma once

struct json_writer;
struct session_process;

/* Writes a line to the command's standard error, or its terminal, for each
 * limit that acted. Called once, when it has ended and before exited is told.
 */
void limit_tell(struct session_process *sp);

/* Writes the members of exited and of process/read that say the same; only
 * those that apply. */
void limit_write(struct json_writer *w, const struct session_process *sp);
