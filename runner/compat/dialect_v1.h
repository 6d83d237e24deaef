/* SPDX-License-Identifier: ISC */
/*
 * The reference runner's dialect (doc/protocol.md section 18): one command,
 * with its parent at the other end of a pipe. It shares all process code with
 * the session.
 */
#ifndef DIALECT_V1_H
#define DIALECT_V1_H

struct event_base;

/*
 * Serves one spawn_request. Returns the program's exit code: 0 if the command's
 * exit was reported, 1 if the parent broke the protocol or went away.
 */
int dialect_v1_run(struct event_base *base, int in_fd, int out_fd);

/* The same over two named pipes, which are opened in this order: in, out. */
int dialect_v1_run_paths(
    struct event_base *base, const char *in, const char *out);

#endif
