/* SPDX-License-Identifier: ISC */
/*
 * How a record gets to where records go. None waits long: the broker does
 * nothing else meanwhile.
 */
#ifndef AUDIT_SINKS_H
#define AUDIT_SINKS_H

#include "audit_log.h"

/* What a record is made of; text is one line without its end. */
struct audit_record {
	struct slice text;
	struct slice fields; /* of the journal, each complete */
};

struct audit_kind {
	const char *name; /* in messages */
	unsigned kind;	  /* enum control_place_kind */
	/* 0 or -errno. */
	int (*write)(struct audit_sink *s, const struct audit_record *r);
};

/* What root knows of it. */
void audit_sink_place(
    const struct audit_sink *s, unsigned kind, struct control_place *place);

extern const struct audit_kind audit_kinds[AUDIT_PLACES];

/* A field of the journal's own protocol: systemd.io/JOURNAL_NATIVE_PROTOCOL. */
void audit_put_field(struct buf *b, const char *name, struct slice value);

#endif
