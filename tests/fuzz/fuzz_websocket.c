/* SPDX-License-Identifier: ISC */
/*
 * websocket: whatever comes in, it means the same in one piece, byte by byte
 * and cut at random. The first byte chooses the cuts, the limits and, by 0x40,
 * the side: a server's parser or a client's.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../websocket_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
init(struct trace *t, uint8_t seed)
{
	uint64_t limit = seed & 0x80 ? 100 : 1 << 20;

	trace_init(t, limit);
	if (seed & 0x40)
		websocket_parser_init_client(&t->parser, limit);
}

static void
run(struct trace *t, const uint8_t *data, size_t len, uint8_t seed,
    size_t piece_max)
{
	uint32_t random = seed;

	init(t, seed);
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
	init(&whole, data[0]);
	trace_feed(&whole, data + 1, len - 1);
	run(&cut, data + 1, len - 1, data[0], 1);
	compare(&whole, &cut);
	run(&cut, data + 1, len - 1, data[0], 1 + data[0] % 64);
	compare(&whole, &cut);
	trace_clear(&whole);
	return 0;
}
