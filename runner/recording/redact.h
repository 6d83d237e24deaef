/* SPDX-License-Identifier: ISC */
/*
 * Removes secrets from text for a record: from the arguments of a command or a
 * URL. Secrets are found by name ("--token x", "API_KEY=x", "Authorization: x",
 * "password" in JSON), by place ("https://user:x@host") or by their form
 * ("ghp_..."). Each is replaced by REDACTED_MARK and counted.
 *
 * The runner does this before anything is reported to the broker. Here the
 * arguments are still separate, hostile text meets patterns in no program with
 * privilege, and no secret is ever sent. A runner that was taken over can leave
 * its own session's secrets in, just as it can lie about its commands.
 *
 * Plain C without system calls. The work is linear in the text; of names and
 * values only the first REDACT_COMPARED_BYTES are compared with patterns.
 */
#pragma once

#include "base.h"
#include "control.h"

#define REDACTED_MARK	      "[redacted]"
#define REDACT_COMPARED_BYTES 256

/*
 * Configured patterns in addition to the built-in rules. They contain * and ?,
 * ignore case, and are compared with a whole name or value.
 */
struct redact_rules {
	struct slice names[REDACT_PATTERNS_MAX];
	struct slice values[REDACT_PATTERNS_MAX];
	size_t nnames, nvalues;
};

/*
 * Reads the patterns from two texts, one on each line; the texts must outlive
 * the rules. More than REDACT_PATTERNS_MAX were refused earlier.
 */
void redact_rules_init(
    struct redact_rules *rules, const char *names, const char *values);

/* What one word of a command means for the next, as in "--password", "x". */
struct redact_state {
	enum { REDACT_NOTHING, REDACT_VALUE, REDACT_PAIR } next;
	unsigned count; /* secrets found so far */
};

/*
 * Appends the redacted word to *out. If *out is too small, out->failed is set.
 */
void redact_word(struct redact_state *state, const struct redact_rules *rules,
    struct slice word, struct buf *out);

/* --- text that clients wrote, for records of fixed size ----------------- */

/*
 * Copies text up to its first NUL, as far as there is room, and adds a NUL.
 * Returns true if that is not the whole text.
 */
bool audit_copy(char *to, size_t room, struct slice text);

/*
 * Copies a process id (UTF-8) so that no two ids of a session look alike. A
 * shortened id ends in a mark with a keyed hash, which nobody outside can
 * compute. An id that already ends like a mark gets one too.
 */
void audit_copy_id(char to[CONTROL_PROCESS_MAX], struct slice id);
