/* SPDX-License-Identifier: ISC */
/*
 * Session mode: what the broker tells this runner (execd-runner(8)).
 */
#ifndef COMMANDS_H
#define COMMANDS_H

struct event_base;

/* Serves the session that the broker configures over CONTROL_FD. Does not
 * return: the program exits with the session. */
void commands_run(struct event_base *base, char **env)
    __attribute__((noreturn));

#endif
