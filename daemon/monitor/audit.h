/*
 * The audit log: who came in, as whom, what was run and what became of it
 * (execd-audit(5)). One JSON object for each event, to a file, to syslog, to
 * the journal, or to several of them. Nothing in it is a credential, and a
 * session's id is cut so that it cannot be resumed with what stands there.
 */
#ifndef AUDIT_H
#define AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "conf_value.h"
#include "json.h"

/* Of no identity of its own. */
#define AUDIT_FILES_UNSET UINT8_MAX

/* Where records go, in the order of audit_kinds[] in audit.c. */
enum audit_place { AUDIT_FILE, AUDIT_SYSLOG, AUDIT_JOURNAL, AUDIT_PLACES };

struct audit_sink {
	char *path;    /* NULL: none; with them it is configured */
	int fd;	       /* owned, or -1 */
	bool torn;     /* AUDIT_FILE: the last line is not whole */
	bool failing;  /* the last record did not get there */
	uint64_t lost; /* so many since it did */
};

/* [audit] */
struct audit_rules {
	struct audit_sink sinks[AUDIT_PLACES];
	bool required;	  /* no audit, no session */
	uint64_t records; /* written, each place counted */
	uint64_t lost;	  /* not written, likewise */
	uint8_t files;	  /* enum audit_files */
	struct strings redact_names, redact_values;
};

struct audit_event {
	struct buf text;
	struct json_writer json;
	struct buf fields; /* the same, of the journal: a few */
};

extern const struct conf_type audit_files_type; /* uint8_t */

void audit_rules_init(struct audit_rules *a);
void audit_rules_close(struct audit_rules *a);

/* Is there a log at all? */
bool audit_is_kept(const struct audit_rules *a);

/* Could audit_open() do its work? Changes nothing. 0, or -errno with *place,
 * what was tried. */
int audit_check(const struct audit_rules *a, const char **place);

/* Opens the file, or makes it, readable for its owner alone, and the sockets.
 * 0, or -errno with *place. */
int audit_open(struct audit_rules *a, const char **place);

/* An event and its members, then audit_end(). */
void audit_begin(struct audit_event *e, const char *event);
void audit_string(struct audit_event *e, const char *key, const char *value);
void audit_flag(struct audit_event *e, const char *key, bool value);
void audit_number(struct audit_event *e, const char *key, uint64_t value);

/*
 * Writes it everywhere. 0, or -errno if it is missing somewhere: that is
 * logged when it begins, and counted; the first record that gets there again
 * says how many are missing. What must not happen without a record is
 * a->required's.
 */
int audit_end(struct audit_event *e, struct audit_rules *a);

/* Is a record missing somewhere, and nothing written there since? */
bool audit_is_failing(const struct audit_rules *a);

/* Tries whether it works again. True: nothing fails now. */
bool audit_retry(struct audit_rules *a);

#endif
