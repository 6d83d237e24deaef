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

#endif
