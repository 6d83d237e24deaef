/* SPDX-License-Identifier: ISC */
/*
 * A user namespace for the sandboxes of a user, made by root.
 */
#ifndef USER_NAMESPACE_H
#define USER_NAMESPACE_H

/* user: "UID:GID". Sends the descriptor on the control channel as
 * STARTER_OPENED, and waits for nobody. The exit code. Root only. */
int user_namespace_run(const char *user);

#endif
