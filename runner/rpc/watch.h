/* SPDX-License-Identifier: ISC */
/*
 * fs/watchMissing: tells the client once when paths that were missing appear,
 * or the one that was there changes. Belongs to the connection.
 */
#ifndef WATCH_H
#define WATCH_H

struct session;

/* Forgets the watch of the attached connection, if there is one. */
void watch_stop(struct session *s);

#endif
