/* SPDX-License-Identifier: ISC */
/*
 * fs/watch: tells the client about every change of a file or a directory.
 * Watches belong to the connection.
 */
#ifndef WATCHES_H
#define WATCHES_H

struct session;

/* The connection has ended; removes all watches. */
void watches_stop(struct session *s);

/* The client reads again. */
void watches_resume(struct session *s);

/*
 * fs/watchMissing: tells the client once when a missing path appears, or when
 * the present one changes. There is one for each connection; removes it.
 */
void watch_stop(struct session *s);

#endif
