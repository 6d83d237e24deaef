/* SPDX-License-Identifier: ISC */
/*
 * fs/watch: tells the client of every change of a file or a directory. They
 * belong to the connection.
 */
#ifndef WATCHES_H
#define WATCHES_H

struct session;

/* The connection is over. */
void watches_stop(struct session *s);

/* The client reads again. */
void watches_resume(struct session *s);

#endif
