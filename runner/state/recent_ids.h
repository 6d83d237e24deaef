/* SPDX-License-Identifier: ISC */
/*
 * Remembers the last ids of operations that were carried out, so that none is
 * carried out twice: writes to a process (doc/protocol.md section 7.6) and
 * starts in a session. The oldest id is forgotten first. Plain C without system
 * calls.
 *
 * An id is remembered as 128 bits of a keyed hash. The key never leaves the
 * program, so nobody can construct two ids with the same hash, and an
 * accidental match is too unlikely to matter.
 */
#pragma once

#include "base.h"

#define RECENT_IDS_MAX 4096

struct recent_ids {
	uint64_t (*ids)[2]; /* owned; a ring once it is full */
	uint32_t count;
	uint32_t cap;
	uint32_t next; /* index of the oldest, when full */
};

void recent_ids_clear(struct recent_ids *w);
bool recent_ids_has(const struct recent_ids *w, struct slice id);
void recent_ids_add(struct recent_ids *w, struct slice id);
