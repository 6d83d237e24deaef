/* SPDX-License-Identifier: ISC */
/* What a client can know of one process (process_state.h). */
#include "process_state.h"

#include "util.h"

void
process_state_init(struct process_state *s, size_t retention_bytes)
{
	*s = (struct process_state){ .next_seq = 1 };
	retention_init(&s->head, 0);
	retention_init(&s->tail, retention_bytes);
}

void
process_state_clear(struct process_state *s)
{
	retention_clear(&s->head);
	retention_clear(&s->tail);
}

void
process_state_keep(
    struct process_state *s, size_t head_bytes, size_t tail_bytes)
{
	retention_init(&s->head, head_bytes);
	retention_init(&s->tail, tail_bytes);
}

size_t
process_state_chunk_max(const struct process_state *s)
{
	size_t room = s->head.limit_bytes - s->head.bytes;

	return s->output_bytes == s->head.bytes && room > 0 ? room : SIZE_MAX;
}

uint64_t
process_state_output(
    struct process_state *s, enum stream stream, const void *data, size_t len)
{
	struct retention *r = &s->tail;

	/* All output so far is in the head, and this chunk fits there too. */
	if (process_state_chunk_max(s) != SIZE_MAX &&
	    len <= process_state_chunk_max(s)) {
		r = &s->head;
		s->head_seq = s->next_seq;
	}
	retention_append(r, s->next_seq, stream, data, len);
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

size_t
process_state_memory(const struct process_state *s)
{
	return retention_memory(&s->head) + retention_memory(&s->tail);
}

void
process_state_drop(struct process_state *s)
{
	retention_drop(&s->head);
	retention_drop(&s->tail);
	for (size_t i = 0; i < STREAM_COUNT; i++)
		s->tail.dropped_bytes[i] += s->head.dropped_bytes[i];
	if (s->tail.dropped_seq == 0)
		s->tail.dropped_seq = s->head.dropped_seq;
	retention_init(&s->head, 0);
	s->head_seq = 0;
}

bool
process_state_has_news(const struct process_state *s, uint64_t after_seq)
{
	if (s->closed)
		return true;
	if (s->exited && after_seq < s->next_seq - 1)
		return true;
	/* The newest chunk stays retained until the process is closed. */
	return s->last_output_seq > after_seq;
}

struct process_gap
process_state_gap(const struct process_state *s)
{
	uint64_t bytes = retention_dropped(&s->tail);

	return (struct process_gap){ .after_seq = s->head_seq,
		.last_seq = s->tail.dropped_seq,
		.bytes = bytes,
		.end_bytes = s->head.bytes + bytes };
}

uint64_t
process_state_read(const struct process_state *s, const struct process_query *q,
    void (*visit)(const struct retention_chunk *chunk, void *arg), void *arg,
    bool *crosses)
{
	const struct retention *parts[] = { &s->head, &s->tail };
	uint64_t bytes = 0, last = 0;
	bool full = false;

	for (size_t i = 0; i < nitems(parts) && !full; i++) {
		struct retention_cursor c = retention_first(parts[i]);
		struct retention_chunk chunk;

		while (!full && retention_next(parts[i], &c, &chunk)) {
			if (chunk.seq <= q->after_seq)
				continue;
			full =
			    last != 0 && (bytes > q->max_bytes ||
					     chunk.len > q->max_bytes - bytes);
			if (full)
				break;
			visit(&chunk, arg);
			bytes += chunk.len;
			last = chunk.seq;
		}
	}
	*crosses = q->after_seq < s->tail.dropped_seq &&
		   (s->tail.dropped_seq < last || last == 0);
	if (q->max_bytes != UINT64_MAX && last != 0)
		return last + 1;
	return s->next_seq;
}
