/*
 * Listening addresses: parsed and bound by the monitor, accepted from by the
 * front-end. A bound socket outlives every front-end.
 */
#ifndef LISTENER_H
#define LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "control.h"

struct listener {
	enum listener_kind kind;
	int fd;	    /* LISTENER_WS: listening. LISTENER_STDIO: input */
	int out_fd; /* LISTENER_STDIO: output, else -1 */
	bool loopback;
	char url[80]; /* with the real port, for the line on stdout */
};

/* Parses `--listen URL` and binds. 0, or an enum exit_code after the error
 * was written to stderr in the peer's words (PROTOCOL.md section 1.1). */
int listener_open(struct listener *l, const char *url);
void listener_close(struct listener *l);

#endif
