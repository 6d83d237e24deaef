/*
 * process_state and retention: sequence numbers without a gap, whole chunks
 * within the limit, and the answers of process/read.
 */
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

	*next = process_state_read(s, &q, note, &seen);
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

/* PROTOCOL.md section 7.5, as the peer answered. */
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
		assert_true(s.retention.dropped_bytes > 0);
		process_state_clear(&s);
	}
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_read_pages),
		cmocka_unit_test(test_news),
		cmocka_unit_test(test_retention_holds_its_limit),
		cmocka_unit_test(test_oversize_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
