/* SPDX-License-Identifier: ISC */
/*
 * Writes a record to each kind of destination. No function waits long, because
 * the broker does nothing else meanwhile.
 */
#ifndef AUDIT_SINKS_H
#define AUDIT_SINKS_H

#include "audit_log.h"
#include "control_spawn.h"

/* The forms of a record. text is one line without its end. */
struct audit_record {
	struct slice text;
	struct slice fields; /* for the journal, each complete */
};

struct audit_kind {
	const char *name; /* its name in messages */
	unsigned kind;	  /* enum control_place_kind */
	/* Returns 0 or -errno. */
	int (*write)(struct audit_sink *s, const struct audit_record *r);
};

/* Describes the destination to root. */
void audit_sink_place(
    const struct audit_sink *s, unsigned kind, struct control_place *place);

extern const struct audit_kind audit_kinds[AUDIT_PLACES];

/* Appends a field of the journal's own protocol
 * (systemd.io/JOURNAL_NATIVE_PROTOCOL). */
void audit_put_field(struct buf *b, const char *name, struct slice value);

#endif
