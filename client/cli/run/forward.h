/* SPDX-License-Identifier: ISC */
/*
 * execctl run -L: ports here that lead to ports on the loopback of the command
 * that runs (process/forward of execd-protocol(7)).
 */
#ifndef FORWARD_H
#define FORWARD_H

struct run;

/*
 * Listens on 127.0.0.1 for each --forward of the command line. Returns 0, or an
 * exit status after a message. Connections are taken when the command has
 * started: then forward_update() is called.
 */
int forward_begin(struct run *r);
void forward_update(struct run *r);

/* Hangs up, and frees what forward_begin() made. */
void forward_end(struct run *r);

#endif
