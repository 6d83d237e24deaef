/* SPDX-License-Identifier: ISC */
/*
 * What execctl remembers of the commands it started and that have not ended
 * as far as it knows: one file each, in the user's own directory. The
 * protocol has no list of sessions, and a session can only be resumed by who
 * knows its id.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include "ctl.h"

struct record {
	char *session, *process; /* owned, all of them */
	char *url;
	char *environment; /* NULL: it was no named one */
	char *command;	   /* the argv, for people */
	bool tty;
	int64_t pid;	    /* of the execctl that is attached; 0: none */
	int64_t started_ms; /* since 1970 */
};

void record_clear(struct record *r);
/* Nothing depends on it: a failure is told with --verbose. */
void record_write(const struct ctl *ctl, const struct record *r);
void record_remove(const char *session);
/* Every record, oldest first. 0 or -errno. */
int record_each(void (*visit)(void *arg, const struct record *r), void *arg);
/* The one whose session begins with `prefix`. 0, -ENOENT, or -EEXIST: more
 * than one. */
int record_find(const char *prefix, struct record *out);
/* Is an execctl attached to it now, on this machine? */
bool record_attached(const struct record *r);

#endif
