/* SPDX-License-Identifier: ISC */
/*
 * Detects that a client has hung up while its runner has it. A runner that
 * works notices and reports this itself. A runner that has stopped must not
 * keep the session attached.
 */
#ifndef HANGUP_H
#define HANGUP_H

#include "connection.h"

/* Call once, before the first connection. */
void hangup_init(void);

/* Watches the client's socket without reading from it. handoff_hung_up() is
 * called once when the client hangs up. Returns 0 or -errno. */
int hangup_watch(const struct connection *c);

/* Stops watching. Call before the socket is closed, because the runner may
 * still have it open. */
void hangup_forget(const struct connection *c);

#endif
