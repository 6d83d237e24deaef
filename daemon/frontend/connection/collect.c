/* SPDX-License-Identifier: ISC */
/*
 * Collects messages that cannot be relayed piece by piece.
 */
#include "collect.h"

#include "frontend.h"

/* Each connection may always hold this much. An initialize is smaller. */
#define ALWAYS_BYTES (64u << 10)

/* All messages together may hold as much as this many of the largest. */
#define LARGEST_TOGETHER 4

static uint64_t held;

/* Returns how many bytes of a message count against the limit. */
static uint64_t
counted(size_t len)
{
	return len > ALWAYS_BYTES ? len - ALWAYS_BYTES : 0;
}

bool
collect(struct buf *message, const void *p, size_t len)
{
	uint64_t more = counted(message->len + len) - counted(message->len);

	if (message->limit == 0)
		buf_init(message, config.max_message_bytes);
	if (held + more > config.max_message_bytes * LARGEST_TOGETHER)
		return false;
	buf_put(message, p, len);
	if (message->failed)
		return false;
	held += more;
	return true;
}

struct buf
collect_take(struct buf *message)
{
	struct buf taken = *message;

	held -= counted(taken.len);
	buf_init(message, taken.limit);
	return taken;
}

void
collect_drop(struct buf *message)
{
	struct buf taken = collect_take(message);

	buf_clear(&taken);
}
