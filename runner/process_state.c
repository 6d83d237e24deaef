/*
 * What a client can know of one process.
 */
#include "process_state.h"

void
process_state_init(struct process_state *s, size_t retention_bytes)
{
	*s = (struct process_state){ .next_seq = 1 };
	retention_init(&s->retention, retention_bytes);
}

void
process_state_clear(struct process_state *s)
{
	retention_clear(&s->retention);
}

uint64_t
process_state_output(
    struct process_state *s, enum stream stream, const void *data, size_t len)
{
	retention_append(&s->retention, s->next_seq, stream, data, len);
	s->last_output_seq = s->next_seq;
	s->output_bytes += len;
	return s->next_seq++;
}

uint64_t
process_state_exited(struct process_state *s, int exit_code)
{
	s->exited = true;
	s->exit_code = exit_code;
	return s->next_seq++;
}

uint64_t
process_state_closed(struct process_state *s)
{
	s->closed = true;
	return s->next_seq++;
}

bool
process_state_has_news(const struct process_state *s, uint64_t after_seq)
{
	if (s->closed)
		return true;
	if (s->exited && after_seq < s->next_seq - 1)
		return true;
	/* The newest chunk is always retained. */
	return s->last_output_seq > after_seq;
}

uint64_t
process_state_read(const struct process_state *s, const struct process_query *q,
    void (*visit)(const struct retention_chunk *chunk, void *arg), void *arg)
{
	struct retention_cursor c = retention_first(&s->retention);
	struct retention_chunk chunk;
	uint64_t bytes = 0, last = 0;

	while (retention_next(&s->retention, &c, &chunk)) {
		if (chunk.seq <= q->after_seq)
			continue;
		if (last != 0 &&
		    (bytes > q->max_bytes || chunk.len > q->max_bytes - bytes))
			break;
		visit(&chunk, arg);
		bytes += chunk.len;
		last = chunk.seq;
	}
	if (q->max_bytes != UINT64_MAX && last != 0)
		return last + 1;
	return s->next_seq;
}
