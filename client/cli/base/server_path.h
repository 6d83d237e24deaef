/* SPDX-License-Identifier: ISC */
/*
 * Server paths on the command line: :PATH, and NAME:PATH for a named server.
 */
#ifndef SERVER_PATH_H
#define SERVER_PATH_H

#include "execctl.h"

/* Returns the part after the colon, or NULL for a path on this machine. */
const char *server_path_part(const char *argument);

/* Chooses the server of NAME:PATH before the connection. All arguments must
 * name the same one. Returns 0, or an exit status after a message. */
int server_path_choose(struct execctl *ctl, const char *argument);

/* For commands that take only server paths. If *argument names a server,
 * chooses it and removes the name. Returns 0, or an exit status after a
 * message. */
int server_path_take(struct execctl *ctl, const char **argument);

#endif
