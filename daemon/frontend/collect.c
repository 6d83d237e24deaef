/*
 * Messages that are put together (front-end).
 */
#include "collect.h"

#include "connection.h"
#include "frontend.h"

/* Of each connection this much is there whatever others hold: an initialize
 * is smaller. */
#define ALWAYS_BYTES (64u << 10)

/* Together they may hold so many of the largest messages. */
#define LARGEST_TOGETHER 4

static uint64_t held;

/* What of a message counts. */
static uint64_t
counted(size_t len)
{
	return len > ALWAYS_BYTES ? len - ALWAYS_BYTES : 0;
}

bool
collect(struct connection *c, const void *p, size_t len)
{
	uint64_t more = counted(c->message.len + len) - counted(c->message.len);

	if (c->message.limit == 0)
		buf_init(&c->message, config.max_message_bytes);
	if (held + more > config.max_message_bytes * LARGEST_TOGETHER)
		return false;
	buf_put(&c->message, p, len);
	if (c->message.failed)
		return false;
	held += more;
	return true;
}

struct buf
collect_take(struct connection *c)
{
	struct buf message = c->message;

	held -= counted(message.len);
	buf_init(&c->message, message.limit);
	return message;
}

void
collect_drop(struct connection *c)
{
	struct buf message = collect_take(c);

	buf_clear(&message);
}
