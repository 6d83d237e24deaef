/*
 * websocket: whatever comes in, it means the same in one piece, byte by byte
 * and cut at random. The first byte chooses the cuts and the limits.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../websocket_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
run(struct trace *t, const uint8_t *data, size_t len, uint8_t seed,
    size_t piece_max)
{
	uint32_t random = seed;
	uint64_t limit = seed & 0x80 ? 100 : 1 << 20;

	trace_init(t, limit, limit * 2);
	while (len > 0) {
		size_t n;

		random = random * 1664525 + 1013904223;
		n = 1 + (random >> 16) % piece_max;
		if (n > len)
			n = len;
		trace_feed(t, data, n);
		data += n;
		len -= n;
	}
}

static void
compare(struct trace *a, struct trace *b)
{
	assert(strcmp(trace_string(a), trace_string(b)) == 0);
	assert(a->over == b->over && a->status == b->status);
	assert(a->error == b->error);
	assert(a->over || a->open == b->open);
	trace_clear(b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct trace whole, cut;

	if (len == 0)
		return 0;
	trace_init(&whole, data[0] & 0x80 ? 100 : 1 << 20,
	    data[0] & 0x80 ? 200 : 2 << 20);
	trace_feed(&whole, data + 1, len - 1);
	run(&cut, data + 1, len - 1, data[0], 1);
	compare(&whole, &cut);
	run(&cut, data + 1, len - 1, data[0], 1 + data[0] % 64);
	compare(&whole, &cut);
	trace_clear(&whole);
	return 0;
}
