/* SPDX-License-Identifier: ISC */
/*
 * The reference runner's dialect (doc/protocol.md section 18): one command, its
 * parent at the other end of a pipe. Shares all process code with the session.
 */
#ifndef DIALECT_V1_H
#define DIALECT_V1_H

struct event_base;

/* Serves one spawn_request. Returns the program's exit code: 0 when the
 * command's exit was told, 1 when the parent broke the protocol or went. */
int dialect_v1_run(struct event_base *base, int in_fd, int out_fd);

/* The same over two named pipes, opened in this order: in, out. */
int dialect_v1_run_paths(
    struct event_base *base, const char *in, const char *out);

#endif
