/* SPDX-License-Identifier: ISC */
/*
 * The program of an ask: URL. It finds or makes a server, prints one line that
 * says where it is, and holds it until its standard input ends (execctl(1)).
 */
#ifndef LEASE_H
#define LEASE_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"

#define LEASE_LINE_MAX 8192 /* bytes of the answer, without the newline */

struct lease {
	pid_t pid;    /* 0: there is no program */
	int to, from; /* its standard input and output; -1: closed */
	int ended;    /* a pidfd; readable when the program has ended */
	struct buf line;
};

/* The strings are owned; NULL if the answer does not have them. */
struct lease_answer {
	char *url;
	char *token_file;
	char *ca_file;
};
void lease_answer_clear(struct lease_answer *a);

void lease_init(struct lease *l);
/* Starts the program in a session of its own; /bin/sh runs the command.
 * Returns 0 or -errno. */
int lease_begin(struct lease *l, const char *command);
/* Reads what has arrived of the answer. Returns 0; -EAGAIN: poll `from' and
 * `ended'; -ESRCH: the program ended instead; -EBADMSG: this is no answer. With
 * the last two the caller frees *error. */
int lease_read(struct lease *l, struct lease_answer *a, char **error);
/* Tells whether the program has ended, and how; the caller frees *how. */
bool lease_has_ended(const struct lease *l, char **how);
/* Ends its standard input and does not wait. */
void lease_release(struct lease *l);
/* Ends its standard input and waits up to 5 s, sends SIGTERM and waits up to
 * 2 s, and sends SIGKILL to what is left of its process group. */
void lease_end(struct lease *l);

#endif
