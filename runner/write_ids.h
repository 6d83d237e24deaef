/*
 * The last write ids a process accepted, first in first out (PROTOCOL.md
 * section 7.6). Plain C, no operating system.
 *
 * An id is remembered as 128 bits of a keyed hash whose key never leaves the
 * program: nobody can make two ids meet on purpose, and by chance it does not
 * happen.
 */
#ifndef WRITE_IDS_H
#define WRITE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util.h"

#define WRITE_IDS_MAX 4096

struct write_ids {
	uint64_t (*ids)[2]; /* owned; a ring once it is full */
	uint32_t count;
	uint32_t cap;
	uint32_t next; /* oldest, when full */
};

void write_ids_clear(struct write_ids *w);
bool write_ids_has(const struct write_ids *w, struct slice id);
void write_ids_add(struct write_ids *w, struct slice id);

#endif
