/* SPDX-License-Identifier: ISC */
/*
 * What the operator may ask, and how it is answered: one table. Every request
 * is on record, also one that was refused.
 */
#ifndef CTL_REQUEST_H
#define CTL_REQUEST_H

#include "ctl_socket.h"

/* One that was understood. Strings are of the document, which outlives it. */
struct ctl_request {
	struct broker *broker;
	struct ctl_client *client;
	const char *command;
	char session[CONTROL_SESSION_ID_MAX]; /* as asked for, or "" */
	char reason[CTL_REASON_MAX + 1];      /* or "" */
	/* a failure: a word for programs, a sentence for people */
	const char *code;
	char message[8192];
};

struct ctl_command {
	const char *name;
	bool session, reason; /* it must be told them; else it must not */
	/* Writes the members of the result. 0, or ctl_refuse(). */
	int (*answer)(struct ctl_request *r, struct json_writer *w);
};

/* ctl_commands.c: ends with a row without a name. */
extern const struct ctl_command ctl_commands[];

/* LISTING: writes the next of its sessions; false: that was the end. */
bool ctl_list_more(struct broker *m, struct ctl_client *c);

/* Carries a request out and writes the answer to c->out. */
void ctl_carry_out(
    struct broker *m, struct ctl_client *c, const char *line, size_t len);

/* Sets why the request fails, and returns -EINVAL. */
int ctl_refuse(struct ctl_request *r, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A failure as the answer. */
void ctl_write_error(struct buf *b, const char *code, const char *message);

#endif
