/* SPDX-License-Identifier: ISC */
/*
 * run --json: writes one JSON object per line for each event.
 */
#ifndef RUN_JSON_H
#define RUN_JSON_H

#include "run.h"

void run_json_started(struct run *r, const char *sandbox_type);
void run_json_output(
    struct run *r, enum execd_stream stream, const void *data, size_t len);
void run_json_gap(struct run *r, uint64_t events, uint64_t bytes);
void run_json_exited(struct run *r, const struct execd_exit *how);

#endif
