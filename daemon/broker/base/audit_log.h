/* SPDX-License-Identifier: ISC */
/*
 * The audit log: who came in, as whom, what was run and what became of it
 * (execd-audit(5)). One JSON object for each event, to a file, to syslog, to
 * the journal, or to several of them. Nothing in it is a credential, and a
 * session's id is cut so that it cannot be resumed with what stands there.
 */
#ifndef AUDIT_LOG_H
#define AUDIT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "conf_value.h"
#include "control.h"
#include "json.h"
#include "queue.h"

/* Of no identity of its own. */
#define AUDIT_FILES_UNSET UINT8_MAX

/* Where records go, in the order of audit_kinds[] in audit_log.c. */
enum audit_place { AUDIT_FILE, AUDIT_SYSLOG, AUDIT_JOURNAL, AUDIT_PLACES };

/* The start of a command that a record is about. */
struct audit_start {
	char session[CONTROL_SESSION_ID_MAX]; /* "": it is about something else
					       */
	char process[CONTROL_PROCESS_MAX];
};

/* A record that waits for a place that is away for a moment. */
struct audit_held {
	STAILQ_ENTRY(audit_held) link;
	struct buf text, fields;
	struct audit_start start;
};

/* A logger that is started anew is back sooner than this. */
#define AUDIT_GRACE_MS 2000
#define AUDIT_HELD_MAX 1024 /* records */

struct audit_sink {
	char *path;	 /* NULL: none; with them it is configured */
	uint32_t number; /* of root's list */
	int fd;		 /* owned, or -1 */
	bool torn;	 /* AUDIT_FILE: the last line is not whole */
	bool failing;	 /* the last record did not get there */
	uint64_t lost;	 /* so many since it did */
	STAILQ_HEAD(, audit_held) held;
	unsigned nheld;
	int64_t held_since_ms;
	int held_for; /* the -errno that they wait because of */
};

/* [audit] */
struct audit_rules {
	struct audit_sink sinks[AUDIT_PLACES];
	bool required;	  /* no audit, no session */
	uint64_t records; /* written, each place counted */
	uint64_t lost;	  /* not written, likewise */
	uint8_t files;	  /* enum audit_files */
	struct strings redact_names, redact_values;
	/* A command runs and its start can be nowhere on record. */
	void (*unrecorded)(const struct audit_start *start);
};

struct audit_event {
	struct buf text;
	struct json_writer json;
	struct buf fields; /* the same, of the journal: a few */
	struct audit_start start;
};

extern const struct conf_type audit_files_type; /* uint8_t */

void audit_rules_init(struct audit_rules *a);
void audit_rules_close(struct audit_rules *a);

/* Is there a log at all? */
bool audit_is_kept(const struct audit_rules *a);

/* Has root open the file, or make it, readable for its owner alone, and the
 * sockets; with execd -t it finds out whether it could. 0, or -errno with
 * *place, what was tried. */
int audit_place(struct audit_rules *a, const char **place);

/* An event and its members, then audit_end(). */
void audit_begin(struct audit_event *e, const char *event);
void audit_string(struct audit_event *e, const char *key, const char *value);
void audit_flag(struct audit_event *e, const char *key, bool value);
void audit_number(struct audit_event *e, const char *key, uint64_t value);

/*
 * Writes it everywhere. Where it does not get there it waits for
 * AUDIT_GRACE_MS, and others behind it. 0, or -errno if it is missing
 * somewhere: that is logged when it begins, and counted; the first record that
 * gets there again says how many are missing. What must not happen without a
 * record is a->required's.
 */
int audit_end(struct audit_event *e, struct audit_rules *a);

/* Is a record missing somewhere, and nothing written there since? */
bool audit_is_failing(const struct audit_rules *a);

/* Do records wait for a place? */
bool audit_is_waiting(const struct audit_rules *a);

/* Tries whether it works again. Records that have waited too long are lost, and
 * a->unrecorded is told of starts among them. True: nothing fails now. */
bool audit_retry(struct audit_rules *a, int64_t now);

#endif
