/* SPDX-License-Identifier: ISC */
/*
 * Connections that watch a session. They get the same events of processes as
 * the attached one and may ask about them, but change nothing. A watcher that
 * does not read never pauses a command; it is told later that it missed
 * something.
 */
#ifndef WATCHER_H
#define WATCHER_H

#include "session.h"

/* Adds a watcher. Takes fd over. */
void watcher_add(
    struct session *s, int fd, const struct control_watch *command);

/* Sends an event of a process to all watchers. */
void watchers_tell(struct session_process *p, const struct process_event *e);

/*
 * Writes the messages composed so far and frees the watchers that have ended.
 * Called once in each turn of the event loop.
 */
void watchers_flush(struct session *s);

#endif
