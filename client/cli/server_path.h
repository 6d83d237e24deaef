/* SPDX-License-Identifier: ISC */
/*
 * Paths of a server on the command line: :PATH, and NAME:PATH of a server that
 * has a name.
 */
#ifndef SERVER_PATH_H
#define SERVER_PATH_H

#include "ctl.h"

/* The part behind the colon, or NULL: a path of this machine. */
const char *server_path_part(const char *argument);

/* The server that NAME: names, before the connection; all must name the same.
 * An exit status. */
int server_path_choose(struct ctl *ctl, const char *argument);

/* Of a command all of whose paths are the server's: *argument without the
 * server that it names, if it names one. An exit status. */
int server_path_take(struct ctl *ctl, const char **argument);

#endif
