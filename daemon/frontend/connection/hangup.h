/* SPDX-License-Identifier: ISC */
/*
 * Clients that their runners have and that hang up: the runner hears it and
 * says so, if it can. One that stands still must not keep a session attached.
 */
#ifndef HANGUP_H
#define HANGUP_H

#include "connection.h"

/* Once, before the first connection. */
void hangup_init(void);

/* Tells handoff_hung_up() once; nothing of what the client sends is read. 0 or
 * -errno. */
int hangup_watch(const struct connection *c);

/* Before its socket is closed, which others may still have open. */
void hangup_forget(const struct connection *c);

#endif
