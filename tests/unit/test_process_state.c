/* SPDX-License-Identifier: ISC */
/*
 * process_state and retention: sequence numbers without a gap, whole chunks
 * within the limit, and the answers of process/read.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "process_state.h"
#include "util.h"

struct seen {
	uint64_t seqs[64];
	size_t n, bytes;
	char text[256];
	bool crosses;
};

static void
note(const struct retention_chunk *chunk, void *arg)
{
	struct seen *s = arg;

	if (s->n < nitems(s->seqs))
		s->seqs[s->n] = chunk->seq;
	s->n++;
	if (s->bytes + chunk->len < sizeof(s->text))
		memcpy(s->text + s->bytes, chunk->data, chunk->len);
	s->bytes += chunk->len;
}

static struct seen
read_all(
    const struct process_state *s, uint64_t after, uint64_t max, uint64_t *next)
{
	struct process_query q = { after, max };
	struct seen seen = { 0 };

	*next = process_state_read(s, &q, note, &seen, &seen.crosses);
	return seen;
}

static void
test_sequence(void **state)
{
	struct process_state s;

	process_state_init(&s, 1000);
	assert_int_equal(process_state_output(&s, STREAM_STDOUT, "a", 1), 1);
	assert_int_equal(process_state_exited(&s, 7), 2);
	assert_int_equal(process_state_output(&s, STREAM_STDERR, "b", 1), 3);
	assert_int_equal(process_state_closed(&s), 4);
	assert_int_equal(s.next_seq, 5);
	process_state_clear(&s);
}

/* doc/protocol.md section 7.5, as the peer answered. */
static void
test_read_pages(void **state)
{
	static const struct {
		uint64_t after, max, next;
		const char *text;
	} rows[] = {
		{ 0, UINT64_MAX, 6, "aaaabbbbcccc" },
		{ 0, 0, 2, "aaaa" },
		{ 0, 1, 2, "aaaa" },
		{ 0, 7, 2, "aaaa" },
		{ 0, 8, 3, "aaaabbbb" },
		{ 1, 5, 3, "bbbb" },
		{ 3, 5, 6, "" },
		{ 3, UINT64_MAX, 6, "" },
		{ 1000, 0, 6, "" },
		{ UINT64_MAX, UINT64_MAX, 6, "" },
	};
	struct process_state s;

	process_state_init(&s, 1000);
	process_state_output(&s, STREAM_STDOUT, "aaaa", 4);
	process_state_output(&s, STREAM_STDOUT, "bbbb", 4);
	process_state_output(&s, STREAM_STDERR, "cccc", 4);
	process_state_exited(&s, 0);
	process_state_closed(&s);
	for (size_t i = 0; i < nitems(rows); i++) {
		uint64_t next;
		struct seen seen =
		    read_all(&s, rows[i].after, rows[i].max, &next);

		assert_int_equal(next, rows[i].next);
		assert_int_equal(seen.bytes, strlen(rows[i].text));
		assert_memory_equal(seen.text, rows[i].text, seen.bytes);
	}
	process_state_clear(&s);
}

static void
test_news(void **state)
{
	struct process_state s;

	process_state_init(&s, 1000);
	assert_false(process_state_has_news(&s, 0));
	process_state_output(&s, STREAM_PTY, "x", 1);
	assert_true(process_state_has_news(&s, 0));
	assert_false(process_state_has_news(&s, 1));
	assert_false(process_state_has_news(&s, 99));
	process_state_exited(&s, 0);
	assert_true(process_state_has_news(&s, 1));
	assert_false(process_state_has_news(&s, 2));
	process_state_closed(&s);
	assert_true(process_state_has_news(&s, 99));
	process_state_clear(&s);
}

static void
test_retention_holds_its_limit(void **state)
{
	static const size_t sizes[] = { 1, 7, 100, 4096, 65536 };
	static uint8_t data[65536];

	for (size_t i = 0; i < nitems(sizes); i++) {
		struct process_state s;
		uint64_t next;
		struct seen seen;

		process_state_init(&s, 1u << 20);
		for (size_t sent = 0; sent < (3u << 20); sent += sizes[i])
			process_state_output(&s, STREAM_STDOUT, data, sizes[i]);
		seen = read_all(&s, 0, UINT64_MAX, &next);
		assert_true(seen.bytes <= 1u << 20);
		assert_true(seen.bytes + sizes[i] > 1u << 20);
		assert_int_equal(next, s.next_seq);
		assert_int_equal(
		    retention_dropped(&s.tail) + seen.bytes, s.output_bytes);
		assert_true(seen.crosses);
		process_state_clear(&s);
	}
}

/* Chunks as long as they get fill the memory they are kept in. (Sanitizers'
 * malloc counts nothing.) */
static void
test_long_chunks_waste_nothing(void **state)
{
	static const uint8_t chunk[64 << 10];
	const size_t limit = 1 << 20;
	struct mallinfo2 before = mallinfo2(), after;
	struct process_state s;

	process_state_init(&s, limit);
	for (int i = 0; i < 64; i++)
		process_state_output(&s, STREAM_STDOUT, chunk, sizeof(chunk));
	after = mallinfo2();
	assert_int_equal(s.tail.bytes, limit);
	assert_true(after.uordblks + after.hblkhd <
		    before.uordblks + before.hblkhd + limit + limit / 4);
	process_state_clear(&s);
}

/* One chunk larger than all that may be kept: kept until the next. */
static void
test_oversize_chunk(void **state)
{
	struct process_state s;
	uint64_t next;

	process_state_init(&s, 10);
	process_state_output(&s, STREAM_STDOUT, "0123456789abcdef", 16);
	assert_int_equal(read_all(&s, 0, UINT64_MAX, &next).bytes, 16);
	process_state_output(&s, STREAM_STDOUT, "x", 1);
	assert_int_equal(read_all(&s, 0, UINT64_MAX, &next).bytes, 1);
	assert_int_equal(read_all(&s, 0, UINT64_MAX, &next).seqs[0], 2);
	process_state_clear(&s);
}

/* Chunks of 10 bytes, made as a reader of a pipe would: no longer than the
 * head has room for. Returns the chunks. */
static unsigned
fill(struct process_state *s, size_t bytes)
{
	unsigned chunks = 0;

	while (s->output_bytes < bytes) {
		size_t n = process_state_chunk_max(s);

		process_state_output(s,
		    chunks % 2 ? STREAM_STDERR : STREAM_STDOUT, "0123456789",
		    n < 10 ? n : 10);
		chunks++;
	}
	return chunks;
}

static void
test_head_is_filled_exactly(void **state)
{
	static const size_t heads[] = { 0, 1, 9, 10, 25, 40 };

	for (size_t i = 0; i < nitems(heads); i++) {
		struct process_state s;
		struct process_gap gap;
		struct seen seen;
		uint64_t next;

		process_state_init(&s, 1000);
		process_state_keep(&s, heads[i], 20);
		fill(&s, 200);
		gap = process_state_gap(&s);
		assert_int_equal(s.head.bytes, heads[i]);
		assert_true(s.tail.bytes <= 20);
		seen = read_all(&s, 0, UINT64_MAX, &next);
		assert_true(seen.crosses);
		assert_int_equal(seen.bytes, heads[i] + s.tail.bytes);
		assert_int_equal(gap.bytes + seen.bytes, s.output_bytes);
		assert_int_equal(gap.end_bytes + s.tail.bytes, s.output_bytes);
		assert_int_equal(gap.after_seq, (heads[i] + 9) / 10);
		process_state_clear(&s);
	}
}

/* The gap is told where it lies between what the client has and what it
 * gets. Of 20 chunks 3 are in the head, 2 in the tail. */
static void
test_gap_is_told_where_it_is(void **state)
{
	static const struct {
		uint64_t after, max;
		bool crosses;
	} rows[] = {
		{ 0, UINT64_MAX, true },
		{ 0, 30, false },
		{ 0, 40, true },
		{ 2, 10, false },
		{ 2, 20, true },
		{ 3, 0, true },
		{ 17, 0, true },
		{ 18, 0, false },
		{ 18, UINT64_MAX, false },
		{ 20, UINT64_MAX, false },
	};
	struct process_state s;
	struct process_gap gap;

	process_state_init(&s, 1000);
	process_state_keep(&s, 30, 20);
	assert_int_equal(fill(&s, 200), 20);
	gap = process_state_gap(&s);
	assert_int_equal(gap.after_seq, 3);
	assert_int_equal(gap.last_seq, 18);
	assert_int_equal(gap.bytes, 150);
	assert_int_equal(gap.end_bytes, 180);
	assert_int_equal(s.tail.dropped_bytes[STREAM_STDOUT], 70);
	assert_int_equal(s.tail.dropped_bytes[STREAM_STDERR], 80);
	for (size_t i = 0; i < nitems(rows); i++) {
		uint64_t next;

		if (read_all(&s, rows[i].after, rows[i].max, &next).crosses !=
		    rows[i].crosses)
			fail_msg("row %zu", i);
	}
	process_state_clear(&s);
}

/* Without a gap none is told, however the output is kept. */
static void
test_no_gap(void **state)
{
	for (size_t head = 0; head <= 100; head += 10) {
		struct process_state s;
		uint64_t next;

		process_state_init(&s, 1000);
		process_state_keep(&s, head, 100 - head);
		fill(&s, 100);
		assert_false(read_all(&s, 0, UINT64_MAX, &next).crosses);
		assert_int_equal(read_all(&s, 0, UINT64_MAX, &next).bytes, 100);
		assert_int_equal(process_state_gap(&s).bytes, 0);
		process_state_clear(&s);
	}
}

/* All of it becomes the gap, which is told to whoever has not seen it all. */
static void
test_dropped(void **state)
{
	for (size_t head = 0; head <= 100; head += 50) {
		struct process_state s;
		struct process_gap gap;
		struct seen seen;
		uint64_t next;

		process_state_init(&s, 1000);
		process_state_keep(&s, head, 100 - head);
		assert_int_equal(process_state_memory(&s), 0);
		assert_int_equal(fill(&s, 300 - 2 * head), 30 - head / 5);
		process_state_exited(&s, 7);
		process_state_closed(&s);
		assert_true(process_state_memory(&s) >= 100);
		process_state_drop(&s);
		assert_int_equal(process_state_memory(&s), 0);
		seen = read_all(&s, 0, UINT64_MAX, &next);
		assert_true(seen.crosses && seen.n == 0);
		assert_int_equal(next, s.next_seq);
		assert_true(
		    read_all(&s, s.last_output_seq - 1, 10, &next).crosses);
		assert_false(
		    read_all(&s, s.last_output_seq, 10, &next).crosses);
		gap = process_state_gap(&s);
		assert_int_equal(gap.after_seq, 0);
		assert_int_equal(gap.last_seq, s.last_output_seq);
		assert_int_equal(gap.bytes, s.output_bytes);
		assert_int_equal(gap.end_bytes, s.output_bytes);
		assert_true(process_state_has_news(&s, s.next_seq));
		process_state_clear(&s);
	}
}

/* Nothing is dropped before it was taken, also beyond the limit. */
static void
test_output_that_waits(void **state)
{
	static char chunk[CHUNK_MAX_BYTES];
	struct process_state s;
	struct seen seen;
	uint64_t next;

	process_state_init(&s, 1000);
	process_state_taken(&s, 9);
	process_state_wait(&s, 2 * sizeof(chunk));
	assert_false(process_state_is_full(&s));
	for (uint64_t i = 1; i <= 3; i++) {
		process_state_output(&s, STREAM_STDOUT, chunk, sizeof(chunk));
		assert_int_equal(process_state_is_full(&s), i > 1);
	}
	process_state_taken(&s, 0);
	assert_int_equal(read_all(&s, 0, UINT64_MAX, &next).n, 3);
	process_state_taken(&s, 1);
	assert_true(process_state_is_full(&s));
	process_state_taken(&s, 2);
	assert_false(process_state_is_full(&s));
	seen = read_all(&s, 2, UINT64_MAX, &next);
	assert_int_equal(seen.n, 1);
	assert_false(seen.crosses);
	assert_true(read_all(&s, 1, UINT64_MAX, &next).crosses);
	process_state_taken(&s, UINT64_MAX);
	assert_int_equal(s.tail.bytes, 0);
	process_state_clear(&s);

	/* A limit below one chunk lets chunks through one by one. */
	process_state_init(&s, 1000);
	process_state_wait(&s, 1);
	assert_false(process_state_is_full(&s));
	process_state_output(&s, STREAM_STDOUT, "a", 1);
	assert_true(process_state_is_full(&s));
	process_state_clear(&s);
}

/* None is dropped before it arrived, and what arrived stays for others. */
static void
test_output_that_is_held(void **state)
{
	static char chunk[CHUNK_MAX_BYTES];
	struct process_state s;
	uint64_t next;

	process_state_init(&s, 1000);
	process_state_arrived(&s, 9);
	process_state_hold(&s, 3 * sizeof(chunk));
	for (uint64_t i = 1; i <= 3; i++) {
		assert_false(process_state_is_full(&s));
		process_state_output(&s, STREAM_STDOUT, chunk, sizeof(chunk));
	}
	assert_true(process_state_is_full(&s));
	process_state_arrived(&s, sizeof(chunk) - 1);
	assert_true(process_state_is_full(&s));
	process_state_arrived(&s, sizeof(chunk));
	assert_false(process_state_is_full(&s));
	process_state_arrived(&s, 0);
	assert_false(process_state_is_full(&s));
	assert_int_equal(read_all(&s, 0, UINT64_MAX, &next).n, 3);
	process_state_output(&s, STREAM_STDOUT, chunk, sizeof(chunk));
	assert_int_equal(read_all(&s, 0, UINT64_MAX, &next).n, 3);
	/* The client names more bytes than there are. Later output has not
	 * arrived for all that. */
	process_state_arrived(&s, UINT64_MAX);
	for (uint64_t i = 1; i <= 3; i++)
		process_state_output(&s, STREAM_STDOUT, chunk, sizeof(chunk));
	assert_true(process_state_is_full(&s));
	process_state_clear(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_read_pages),
		cmocka_unit_test(test_news),
		cmocka_unit_test(test_retention_holds_its_limit),
		cmocka_unit_test(test_long_chunks_waste_nothing),
		cmocka_unit_test(test_oversize_chunk),
		cmocka_unit_test(test_head_is_filled_exactly),
		cmocka_unit_test(test_gap_is_told_where_it_is),
		cmocka_unit_test(test_no_gap),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_output_that_waits),
		cmocka_unit_test(test_output_that_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
