/* SPDX-License-Identifier: ISC */
/*
 * The URLs a client connects to (execctl(1)):
 *
 *	ws://HOST[:PORT][/PATH]  wss://...  unix:PATH  stdio:COMMAND
 *	ask:COMMAND
 */
#pragma once

#include <stdbool.h>

#define URL_MAX 4096 /* bytes */

enum endpoint_kind {
	ENDPOINT_WS,
	ENDPOINT_WSS,
	ENDPOINT_UNIX,
	ENDPOINT_STDIO,
	ENDPOINT_ASK, /* the command says which of the others it is */
};

/* The strings are owned; NULL where the kind has none. */
struct endpoint {
	enum endpoint_kind kind;
	char *host; /* without brackets */
	char *port;
	char *authority; /* HOST[:PORT] as written */
	char *path;	 /* of the HTTP request; / for ENDPOINT_UNIX */
	char *file;	 /* ENDPOINT_UNIX */
	char *command;	 /* ENDPOINT_STDIO, ENDPOINT_ASK; /bin/sh runs it */
};

/* Returns 0, or -EINVAL with a constant text in *why. Free with
 * endpoint_clear() in both cases. */
int endpoint_parse(struct endpoint *e, const char *url, const char **why);
void endpoint_clear(struct endpoint *e);

/* Tells whether the server is on this machine. */
bool endpoint_is_local(const struct endpoint *e);
