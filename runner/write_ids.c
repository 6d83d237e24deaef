/*
 * The last write ids a process accepted.
 */
#include "write_ids.h"

#include "siphash.h"

#define WRITE_IDS_FIRST 16

void
write_ids_clear(struct write_ids *w)
{
	free(w->ids);
	*w = (struct write_ids){ 0 };
}

bool
write_ids_has(const struct write_ids *w, struct slice id)
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
grow(struct write_ids *w)
{
	w->cap = w->cap ? w->cap * 2 : WRITE_IDS_FIRST;
	if (w->cap > WRITE_IDS_MAX)
		w->cap = WRITE_IDS_MAX;
	w->ids = xreallocarray(w->ids, w->cap, sizeof(*w->ids));
}

void
write_ids_add(struct write_ids *w, struct slice id)
{
	uint32_t at;

	if (w->count < WRITE_IDS_MAX) {
		if (w->count == w->cap)
			grow(w);
		at = w->count++;
	} else {
		at = w->next;
		w->next = (w->next + 1) % WRITE_IDS_MAX;
	}
	siphash128(siphash_process_key(), id.ptr, id.len, w->ids[at]);
}
