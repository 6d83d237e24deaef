/* SPDX-License-Identifier: ISC */
/*
 * Which terminals of the session are recorded (recording.h), and what happens
 * when one cannot be: it goes on without, or, where the operator requires it,
 * is not started, or ended.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process_start_params;
struct request;
struct session_process;

/* Before it is started. False: it must not be; the request was answered so. */
bool recorder_begin(struct request *r, struct session_process *sp,
    const struct process_start_params *p, char *const argv[],
    char *const envp[]);

void recorder_output(struct session_process *sp, const void *data, size_t len);
void recorder_input(struct session_process *sp, const void *data, size_t len);
void recorder_resize(struct session_process *sp, unsigned rows, unsigned cols);
void recorder_end(struct session_process *sp);

#endif
