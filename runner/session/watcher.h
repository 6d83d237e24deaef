/* SPDX-License-Identifier: ISC */
/*
 * Connections that watch a session: they are told what the attached one is
 * told of processes, and may ask about them, but change nothing. They stop
 * no command by not reading; what they miss is said.
 */
#ifndef WATCHER_H
#define WATCHER_H

#include "session.h"

/* A new one; fd is taken over. */
void watcher_add(struct session *s, int fd, const struct control_watch *order);

/* An event of a process. */
void watchers_tell(struct session_process *p, const struct process_event *e);

/* Writes what was composed and frees those that are over; once per turn of
 * the event loop. */
void watchers_flush(struct session *s);

#endif
