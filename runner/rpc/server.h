/* SPDX-License-Identifier: ISC */
/*
 * What serves a session: it puts methods, helpers, held requests and watched
 * directories behind the one interface that the session knows.
 */
#ifndef SERVER_H
#define SERVER_H

struct session_server;

/* One session a program: it keeps its state in this file. */
extern const struct session_server server;

#endif
