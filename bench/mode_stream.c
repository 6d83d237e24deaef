/* SPDX-License-Identifier: ISC */
/*
 * Bytes in bulk: what a command writes, what it is sent, and what happens
 * when nobody reads.
 */
#include "base.h"
#include "figures.h"
#include "peer.h"

#define CHUNK_BYTES    (64u << 10) /* of one process/write */
#define WINDOW	       8	   /* writes without an answer */
#define ARGUMENT_MAX   64
#define FLOOD_MIN_SIZE (256u << 10) /* seen before the reader stops */

struct transfer {
	uint64_t bytes; /* of output, decoded */
	uint64_t sent;	/* writes */
	uint64_t answered;
	bool closed;
};

static void
show_rate(uint64_t bytes, uint64_t begin_ns)
{
	figures_show("seconds", (double)(load_clock_ns() - begin_ns) / 1e9);
	figures_show("bytes", (double)bytes);
}

/* --- Output ------------------------------------------------------------- */

static void
on_output(struct load *l, struct peer *p, const struct rpc_message *m)
{
	struct transfer *t = l->mode;

	t->bytes += message_bytes(m, "chunk");
	message_check_exit(m, "the source");
	l->done = t->closed = message_is(m, "process/closed");
}

void
mode_output(struct load *l)
{
	char bytes[ARGUMENT_MAX], blocks[ARGUMENT_MAX], block[ARGUMENT_MAX];
	/* head writes 8 KiB at a time; dd as much as it is told. */
	const char *const head[] = { "head", "-c", bytes, "/dev/zero", NULL };
	const char *const dd[] = { "dd", "if=/dev/zero", "status=none", block,
		blocks, NULL };
	struct peer_command command = { .argv = l->size > 0 ? dd : head,
		.tty = l->tty };
	struct transfer t = { 0 };
	struct peer *p = peer_open(l);
	uint64_t begin, wire;

	if (l->size > 0)
		l->bytes -= l->bytes % l->size;
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)l->bytes);
	snprintf(block, sizeof(block), "bs=%llu", (unsigned long long)l->size);
	snprintf(blocks, sizeof(blocks), "count=%llu",
	    (unsigned long long)(l->size ? l->bytes / l->size : 0));
	l->on_message = on_output;
	l->mode = &t;
	load_moment(l, "begin");
	begin = load_clock_ns();
	wire = p->received;
	if (l->bytes > 0) {
		peer_start(p, "output", 1, &command);
		load_run(l);
	}
	show_rate(l->bytes, begin);
	load_moment(l, "end");
	figures_show("wire", (double)(p->received - wire));
	if (t.bytes != l->bytes)
		log_fatal("%llu bytes of output came, not %llu",
		    (unsigned long long)t.bytes, (unsigned long long)l->bytes);
}

/* --- Input -------------------------------------------------------------- */

static void
send_chunks(struct load *l, struct peer *p, struct transfer *t)
{
	static const uint8_t chunk[CHUNK_BYTES];

	while (
	    t->sent < l->bytes / CHUNK_BYTES && t->sent - t->answered < WINDOW)
		peer_write(
		    p, "input", (int64_t)++t->sent, chunk, sizeof(chunk));
}

static void
on_input(struct load *l, struct peer *p, const struct rpc_message *m)
{
	const struct json_value *status = message_member(m, "status");
	struct transfer *t = l->mode;

	if (message_id(m) > 0 &&
	    (status == NULL || !json_is(status, "accepted")))
		log_fatal("a write was not accepted");
	message_check_exit(m, "the sink");
	t->answered += message_id(m) > 0;
	send_chunks(l, p, t);
	l->done = message_is(m, "process/closed");
}

void
mode_stdin(struct load *l)
{
	char count[ARGUMENT_MAX];
	const char *const argv[] = { "dd", "bs=64k", "iflag=fullblock",
		"of=/dev/null", "status=none", count, NULL };
	struct peer_command command = { .argv = argv, .pipe_stdin = true };
	struct transfer t = { 0 };
	struct peer *p = peer_open(l);
	uint64_t begin;

	l->bytes -= l->bytes % CHUNK_BYTES;
	snprintf(count, sizeof(count), "count=%llu",
	    (unsigned long long)(l->bytes / CHUNK_BYTES));
	l->on_message = on_input;
	l->mode = &t;
	load_moment(l, "begin");
	begin = load_clock_ns();
	if (l->bytes > 0) {
		peer_start(p, "input", 0, &command);
		load_run(l);
	}
	show_rate(l->bytes, begin);
	load_moment(l, "end");
}

/* --- A reader that stops ------------------------------------------------ */

static void
on_flood(struct load *l, struct peer *p, const struct rpc_message *m)
{
	struct transfer *t = l->mode;

	t->bytes += message_bytes(m, "chunk");
	l->done = t->bytes > FLOOD_MIN_SIZE;
}

/* Each connection floods itself, and is then not read any more. What the
 * server holds for it is for the driver to measure, at "stopped". */
void
mode_slow(struct load *l)
{
	static const char *const argv[] = { "cat", "/dev/zero", NULL };
	struct peer_command command = { .argv = argv };
	struct transfer t;

	for (size_t i = 0; i < l->connections; i++)
		peer_open(l);
	l->on_message = on_flood;
	l->mode = &t;
	load_moment(l, "begin");
	for (size_t i = 0; i < l->connections; i++) {
		t = (struct transfer){ 0 };
		peer_start(l->peers[i], "flood", 1, &command);
		load_run(l);
		peer_pause(l->peers[i], true);
	}
	load_moment(l, "stopped");
	load_moment(l, "end");
	figures_show("connections", (double)l->connections);
}
