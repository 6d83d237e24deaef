/* SPDX-License-Identifier: ISC */
/*
 * The audit log: who connected, as which identity, what was run and how it
 * ended (execd-audit(5)). Each event is one JSON object. It goes to a file, to
 * syslog, to the journal, or to several of them. It never contains a
 * credential, and a session's id is cut so that it cannot be used to resume the
 * session.
 */
#pragma once

#include "base.h"
#include "conf_value.h"
#include "control_spawn.h"
#include "json.h"
#include "queue.h"

/* The identity has no value of its own. */
#define AUDIT_FILES_UNSET UINT8_MAX

/* Destinations of records, in the order of audit_kinds[] in audit_log.c. */
enum audit_place { AUDIT_FILE, AUDIT_SYSLOG, AUDIT_JOURNAL, AUDIT_PLACES };

/* The start of a command that a record is about. */
struct audit_start {
	/* "": the record is about something else */
	char session[CONTROL_SESSION_ID_MAX];
	char process[CONTROL_PROCESS_MAX];
};

/* A record that waits for a destination that does not take it at the moment. */
struct audit_held {
	STAILQ_ENTRY(audit_held) link;
	struct buf text, fields;
	struct audit_start start;
};

/* A logger that is restarted is back sooner than this. */
#define AUDIT_GRACE_MS 2000
#define AUDIT_HELD_MAX 1024 /* records */

struct audit_sink {
	/* NULL: not configured, like all destinations without a path */
	char *path;
	uint32_t number; /* its number in root's list */
	int fd;		 /* owned, or -1 */
	bool torn;	 /* AUDIT_FILE: the last line is cut */
	bool failing;	 /* the last record could not be written */
	uint64_t lost;	 /* records since the last one that was written */
	STAILQ_HEAD(, audit_held) held;
	unsigned nheld;
	int64_t held_since_ms;
	int held_for; /* the -errno for which they wait */
};

/* [audit] */
struct audit_rules {
	struct audit_sink sinks[AUDIT_PLACES];
	bool required;	  /* without records no session is opened */
	uint64_t records; /* written, counted for each destination */
	uint64_t lost;	  /* not written, likewise */
	uint8_t files;	  /* enum audit_files */
	struct strings redact_names, redact_values;
	/* Called for a running command whose start could not be recorded
	 * anywhere. */
	void (*unrecorded)(const struct audit_start *start);
};

struct audit_event {
	struct buf text;
	struct json_writer json;
	struct buf fields; /* some of the members, as fields of the journal */
	struct audit_start start;
	bool refusal;
};

extern const struct conf_type audit_files_type; /* uint8_t */

void audit_rules_init(struct audit_rules *a);
void audit_rules_close(struct audit_rules *a);

/* Tells whether there is an audit log. */
bool audit_is_kept(const struct audit_rules *a);

/* Root opens or makes the file, which only its owner can read, and the sockets.
 * With execd -t it only checks whether it could. Returns 0, or -errno with
 * *place naming what was tried, and why not in `why`. */
int audit_place(
    struct audit_rules *a, const char **place, char why[CONTROL_WHY_MAX]);

/* Begin an event, add its members, and then call audit_end(). */
void audit_begin(struct audit_event *e, const char *event);
void audit_string(struct audit_event *e, const char *key, const char *value);
void audit_flag(struct audit_event *e, const char *key, bool value);
void audit_number(struct audit_event *e, const char *key, uint64_t value);

/*
 * Writes the record to all destinations. A destination that does not take it
 * has AUDIT_GRACE_MS, in which the record and others after it wait. Returns 0,
 * or -errno if the record is missing somewhere. The beginning of this is
 * logged, and the missing records are counted; the next record that can be
 * written there says how many. a->required decides what must not happen without
 * a record.
 */
int audit_end(struct audit_event *e, struct audit_rules *a);

/* The record of one of the last refusals, also where there is no audit log, as
 * JSON; the first is the oldest. NULL: there is none any more. */
#define AUDIT_REFUSALS_MAX 64
const char *audit_refusal(size_t i);

/* Tells whether a destination lacks a record and has taken none since. */
bool audit_is_failing(const struct audit_rules *a);

/* Tells whether records wait for a destination. */
bool audit_is_waiting(const struct audit_rules *a);

/* Returns for how long the oldest record has waited for a destination, or 0 if
 * none waits. */
uint64_t audit_lag_ms(const struct audit_rules *a, int64_t now);

/* Tries the failing destinations again. Records that have waited too long are
 * lost, and a->unrecorded is called for starts among them. */
void audit_retry(struct audit_rules *a, int64_t now);
