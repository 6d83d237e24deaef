/* SPDX-License-Identifier: ISC */
/*
 * The sandbox: the process that holds the namespaces and the view of one policy
 * and starts what runs in them (doc/sandbox.md C1). Started by the runner as
 * `execd-runner --nest`; it hears nobody else.
 */
#ifndef SANDBOX_MAIN_H
#define SANDBOX_MAIN_H

/* Serves on CONTROL_FD until the runner goes. `files` is what a file helper
 * runs. */
void sandbox_run(void (*files)(void)) __attribute__((noreturn));

#endif
