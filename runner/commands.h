/* SPDX-License-Identifier: ISC */
/* Session mode: the runner obeys the broker's commands (execd-runner(8)). */
#pragma once

struct event_base;

/*
 * Serves the session that the broker configures over CONTROL_FD. Does not
 * return; the program exits when the session ends.
 */
void commands_run(struct event_base *base, char **env)
    __attribute__((noreturn));
