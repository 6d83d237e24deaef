/* SPDX-License-Identifier: ISC */
/*
 * Serves a session: connects methods, helpers, held requests and watched
 * directories with the one interface that the session knows.
 */
#ifndef SERVER_H
#define SERVER_H

struct session_server;

/* The state is kept in server.c, because a program serves only one session. */
extern const struct session_server server;

#endif
