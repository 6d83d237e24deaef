/* SPDX-License-Identifier: ISC */
/*
 * Records of the commands that execctl started and that have not ended as far
 * as it knows. There is one file for each, in the user's own directory. Records
 * are needed because the protocol cannot list sessions, and only a client that
 * knows a session's id can resume it.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include "execctl.h"

struct record {
	char *session, *process; /* all strings are owned */
	char *url;
	char *environment; /* NULL: not a named server */
	char *command;	   /* the argv, for display */
	char *cookie; /* how a proxy finds the session's host; NULL: none */
	bool tty;
	int64_t pid;	    /* of the attached execctl; 0: none */
	int64_t started_ms; /* since 1970 */
};

void record_clear(struct record *r);
/* Saves a record. Records are optional, so a failure is only reported with
 * --verbose. */
void record_write(const struct execctl *ctl, const struct record *r);
void record_remove(const char *session);
/* Visits every record, oldest first. Returns 0 or -errno. */
int record_each(void (*visit)(void *arg, const struct record *r), void *arg);
/* Finds the record whose session begins with `prefix`. Returns 0, -ENOENT, or
 * -EEXIST if there are several. The caller clears *out. */
int record_find(const char *prefix, struct record *out);
/* Tells whether an execctl on this machine is attached to the session now. */
bool record_attached(const struct record *r);

#endif
