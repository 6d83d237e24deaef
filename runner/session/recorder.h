/* SPDX-License-Identifier: ISC */
/*
 * Decides which terminals of the session are recorded (recording.h). If one
 * cannot be recorded, its command goes on without a recording. If the operator
 * requires recordings, the command is not started, or is ended.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process_start_params;
struct request;
struct session_process;

/*
 * Called before a command that is to be recorded starts. Returns false if it
 * must not start; then the request was answered.
 */
bool recorder_begin(struct request *r, struct session_process *sp,
    const struct process_start_params *p, char *const argv[],
    char *const envp[]);

void recorder_output(struct session_process *sp, const void *data, size_t len);
void recorder_input(struct session_process *sp, const void *data, size_t len);
void recorder_resize(struct session_process *sp, unsigned rows, unsigned cols);
void recorder_end(struct session_process *sp);

#endif
