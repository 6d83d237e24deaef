/* SPDX-License-Identifier: ISC */
/*
 * The sandbox: the process that holds the namespaces and the view of one policy
 * and starts what runs in them (doc/sandbox.md C1). The runner starts it as
 * `execd-runner --sandbox`, and it listens to nobody else.
 */
#ifndef SANDBOX_MAIN_H
#define SANDBOX_MAIN_H

/*
 * Serves on CONTROL_FD until the runner closes it. A file helper runs `files`.
 */
void sandbox_run(void (*files)(void)) __attribute__((noreturn));

#endif
