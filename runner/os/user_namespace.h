/* SPDX-License-Identifier: ISC */
/*
 * Makes a user namespace for the sandboxes of a user. Program: execd-runner as
 * root.
 */
#pragma once

/*
 * user is "UID:GID". Sends the descriptor on the control channel as
 * SPAWN_OPENED, without waiting for anybody. Returns the exit code. Root
 * only.
 */
int user_namespace_run(const char *user);
