/* SPDX-License-Identifier: ISC */
/*
 * Limits log lines about connections that were never accepted. A flood must not
 * fill the disk, and the lines of one source must not hide those of another.
 * Lines that are left out are counted, so that a reader of the log knows that
 * they are missing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* per source and kind: at most LOG_LIMIT_LINES lines in this time */
#define LOG_LIMIT_MS	10000
#define LOG_LIMIT_LINES 10
/* lines per second, for all sources of one matter */
#define LOG_LIMIT_ALL	   50
#define LOG_LIMIT_SESSIONS 50 /* factor for LOG_SESSION */
/* sources and kinds that are counted separately */
#define LOG_LIMIT_SLOTS 64

/* Each matter has its own limits. A flood of failures therefore costs no lines
 * of another matter. */
enum log_matter {
	LOG_FAILURE,  /* what a client did wrong */
	LOG_DECISION, /* what was done about it, or could not be done */
	LOG_SESSION,  /* sessions that start and end; many of them are normal */
	LOG_MATTERS
};

struct log_limit {
	struct {
		uint64_t key;
		int64_t since_ms;
		unsigned lines, left_out;
	} slots[LOG_LIMIT_SLOTS];
	int64_t second_ms;
	/* left_out: lines of sources that have no slot any more */
	unsigned lines, left_out;
	unsigned factor; /* multiplies the limits; 0 counts as 1 */
};

/*
 * Returns true if another line of this kind about this source may be logged.
 * Then *own and *others are the numbers of lines that were left out before, of
 * this source and of all others. The caller logs these numbers first; they are
 * not returned again. `now` is in milliseconds.
 */
bool log_limit_permits(struct log_limit *l, uint64_t key, int64_t now,
    unsigned *own, unsigned *others);

/* The same for the log of this program. It also logs how many lines were left
 * out. `peer` is "websocket ADDRESS:PORT"; the port is ignored. */
bool log_permits(enum log_matter matter, const char *peer, const char *kind);
