/* SPDX-License-Identifier: ISC */
/*
 * Lines of the log about those who never came in: a flood must not fill the
 * disk, nor may one source's lines hide another's, and whoever reads the log
 * must know that something is missing there.
 */
#ifndef LOG_LIMIT_H
#define LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_MS	   10000 /* of one source and kind there may be so many */
#define LOG_LIMIT_LINES	   10
#define LOG_LIMIT_ALL	   50 /* a second, of all of one matter */
#define LOG_LIMIT_SESSIONS 50 /* times as many of LOG_SESSION */
#define LOG_LIMIT_SLOTS	   64 /* sources and kinds that are told apart */

/* Failures cost who floods nothing: their lines have no part in the others'. */
enum log_matter {
	LOG_FAILURE,  /* what somebody did wrong */
	LOG_DECISION, /* what was done about it, or could not be done */
	LOG_SESSION,  /* sessions that come and go; more of them are usual */
	LOG_MATTERS
};

struct log_limit {
	struct {
		uint64_t key;
		int64_t since_ms;
		unsigned lines, left_out;
	} slots[LOG_LIMIT_SLOTS];
	int64_t second_ms;
	unsigned lines, left_out; /* left out: of nobody in the slots */
	unsigned factor;	  /* so many times the lines; 0: once */
};

/*
 * May there be another line of this kind about that source? *own and *others
 * are how many of it, and of all others, were left out before, if there may:
 * that is to be logged first, and then forgotten.
 */
bool log_limit_permits(struct log_limit *l, uint64_t key, int64_t now,
    unsigned *own, unsigned *others);

/* The same for this program's log, which hears of what was left out. peer:
 * "websocket ADDRESS:PORT", of which the port does not count. */
bool log_permits(enum log_matter matter, const char *peer, const char *kind);

#endif
