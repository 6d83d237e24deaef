/* SPDX-License-Identifier: ISC */
/*
 * What must not stand in a record: secrets in the arguments of a command or
 * in a URL, found by name ("--token x", "API_KEY=x", "Authorization: x",
 * "password" in JSON), by place ("https://user:x@host") or by their own look
 * ("ghp_..."). Each is replaced by REDACTED_MARK, and counted.
 *
 * It is the runner that does it, before anything is told to the broker: the
 * arguments are still apart here, patterns meet hostile text in no program
 * with privilege, and no secret is ever sent. A runner that was taken over
 * can leave its own session's secrets in, as it can lie about its commands.
 *
 * Pure. The work is linear in the text; of names and values only the first
 * bytes are compared with patterns (REDACT_COMPARED_BYTES).
 */
#ifndef REDACT_H
#define REDACT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "redact_limits.h"

#define REDACTED_MARK	      "[redacted]"
#define REDACT_COMPARED_BYTES 256

/* Configured patterns beside the built-in rules: * and ?, whatever the case,
 * compared with a whole name or value. */
struct redact_rules {
	struct slice names[REDACT_PATTERNS_MAX];
	struct slice values[REDACT_PATTERNS_MAX];
	size_t nnames, nvalues;
};

/* The patterns of two texts, one on each line, which outlive the rules. What
 * is beyond REDACT_PATTERNS_MAX was refused before. */
void redact_rules_init(
    struct redact_rules *rules, const char *names, const char *values);

/* What one word of a command leaves for the next: "--password", "x". */
struct redact_state {
	enum { REDACT_NOTHING, REDACT_VALUE, REDACT_PAIR } next;
	unsigned count; /* secrets found so far */
};

/* Appends the word to *out, which may be full before its end. */
void redact_word(struct redact_state *state, const struct redact_rules *rules,
    struct slice word, struct buf *out);

#endif
