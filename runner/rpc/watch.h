/* SPDX-License-Identifier: ISC */
/*
 * fs/watchMissing: tells the client once when a missing path appears, or when
 * the present one changes. Belongs to the connection.
 */
#ifndef WATCH_H
#define WATCH_H

struct session;

/* Removes the watch of the attached connection, if there is one. */
void watch_stop(struct session *s);

#endif
