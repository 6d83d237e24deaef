/*
 * The audit log: who came in, as whom, and what became of the session. One
 * JSON object a line, appended with one write each (execd.conf(5), [audit]).
 * Nothing in it is a credential, and a session's id is cut so that it cannot
 * be resumed with what stands there.
 */
#ifndef AUDIT_H
#define AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "json.h"

/* [audit] */
struct audit_rules {
	char *file;    /* NULL: no audit */
	bool required; /* no audit, no session */
	int fd;	       /* owned, or -1 */
	bool torn;     /* the last line is not whole */
};

struct audit_event {
	struct buf text;
	struct json_writer json;
};

/* Could audit_open() do its work? Changes nothing. 0, or -errno. */
int audit_check(const struct audit_rules *a);

/* Opens the file, or makes it, readable for its owner alone. 0, or -errno. */
int audit_open(struct audit_rules *a);

/* An event and its members, then audit_end(). */
void audit_begin(struct audit_event *e, const char *event);
void audit_string(struct audit_event *e, const char *key, const char *value);
void audit_flag(struct audit_event *e, const char *key, bool value);
void audit_number(struct audit_event *e, const char *key, uint64_t value);

/* Writes it. 0, or -errno after logging; without a file 0. A failure that
 * must stop what is recorded is a->required's. */
int audit_end(struct audit_event *e, struct audit_rules *a);

#endif
