/* SPDX-License-Identifier: ISC */
#include "recent_ids.h"

#include "siphash.h"

#define RECENT_IDS_FIRST 16

void
recent_ids_clear(struct recent_ids *w)
{
	free(w->ids);
	*w = (struct recent_ids){ 0 };
}

bool
recent_ids_has(const struct recent_ids *w, struct slice id)
{
	uint64_t hash[2];

	if (w->count == 0)
		return false;
	siphash128(siphash_process_key(), id.ptr, id.len, hash);
	for (uint32_t i = 0; i < w->count; i++)
		if (w->ids[i][0] == hash[0] && w->ids[i][1] == hash[1])
			return true;
	return false;
}

static void
grow(struct recent_ids *w)
{
	w->cap = w->cap ? w->cap * 2 : RECENT_IDS_FIRST;
	if (w->cap > RECENT_IDS_MAX)
		w->cap = RECENT_IDS_MAX;
	w->ids = xreallocarray(w->ids, w->cap, sizeof(*w->ids));
}

void
recent_ids_add(struct recent_ids *w, struct slice id)
{
	uint32_t at;

	if (w->count < RECENT_IDS_MAX) {
		if (w->count == w->cap)
			grow(w);
		at = w->count++;
	} else {
		at = w->next;
		w->next = (w->next + 1) % RECENT_IDS_MAX;
	}
	siphash128(siphash_process_key(), id.ptr, id.len, w->ids[at]);
}
