/* SPDX-License-Identifier: ISC */
/*
 * The last ids of what was done, first in first out, so that it is not done
 * again: of writes to a process (doc/protocol.md section 7.6), of starts in a
 * session. Plain C, no operating system.
 *
 * An id is remembered as 128 bits of a keyed hash whose key never leaves the
 * program: nobody can make two ids meet on purpose, and by chance it does not
 * happen.
 */
#ifndef RECENT_IDS_H
#define RECENT_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util.h"

#define RECENT_IDS_MAX 4096

struct recent_ids {
	uint64_t (*ids)[2]; /* owned; a ring once it is full */
	uint32_t count;
	uint32_t cap;
	uint32_t next; /* oldest, when full */
};

void recent_ids_clear(struct recent_ids *w);
bool recent_ids_has(const struct recent_ids *w, struct slice id);
void recent_ids_add(struct recent_ids *w, struct slice id);

#endif
