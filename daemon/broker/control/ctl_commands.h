/* SPDX-License-Identifier: ISC */
/*
 * What the operator may ask, and how it is answered: one table. Every request
 * is recorded, also one that is refused.
 */
#ifndef CTL_COMMANDS_H
#define CTL_COMMANDS_H

#include "ctl_socket.h"

/* A request that was understood. Its strings belong to the document, which
 * outlives it. */
struct ctl_request {
	struct broker *broker;
	struct ctl_client *client;
	const char *command;
	char session[CONTROL_SESSION_ID_MAX]; /* as the request has it, or "" */
	char reason[CTL_REASON_MAX + 1];      /* as the request has it, or "" */
	/* of a failure: a code for programs, and a sentence for people */
	const char *code;
	char message[8192];
};

struct ctl_command {
	const char *name;
	bool session, reason; /* the request must have it, or must not */
	/* Writes the members of the result. Returns 0, or what ctl_refuse()
	 * returns. */
	int (*answer)(struct ctl_request *r, struct json_writer *w);
};

/* In ctl_commands.c. Ends with a row without a name. */
extern const struct ctl_command ctl_commands[];

/* In the state CTL_LISTING: writes some more sessions. Returns false at the
 * end. */
bool ctl_list_more(struct broker *m, struct ctl_client *c);

/* Carries a request out and writes the answer to c->out. */
void ctl_carry_out(
    struct broker *m, struct ctl_client *c, const char *line, size_t len);

/* Writes a failure as the answer. */
void ctl_write_error(struct buf *b, const char *code, const char *message);

#endif
