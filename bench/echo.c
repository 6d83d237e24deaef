/* SPDX-License-Identifier: ISC */
/*
 * Round trips.
 */
#include "echo.h"

#define ECHO_BYTES 32
#define START_ID   (1 << 30) /* of the start; writes count from 1 */

static void
on_started(struct load *l, struct peer *p, const struct rpc_message *m)
{
	l->done = message_id(m) == START_ID;
}

void
echo_start(struct peer *p)
{
	/* A terminal must not echo for itself. */
	static const char *const plain[] = { "cat", NULL };
	static const char *const tty[] = { "sh", "-c",
		"stty raw -echo && echo && exec cat", NULL };
	struct load *l = p->load;
	struct peer_command command = {
		.argv = l->tty ? tty : plain, .tty = l->tty, .pipe_stdin = true
	};

	l->on_message = on_started;
	peer_start(p, "echo", START_ID, &command);
	load_run(l);
}

struct round_trip {
	int64_t id;    /* of the write; a server drops one that comes twice */
	uint64_t left; /* bytes */
	bool answered;
};

static void
on_echo(struct load *l, struct peer *p, const struct rpc_message *m)
{
	struct round_trip *r = l->mode;
	uint64_t n = message_bytes(m, "chunk");

	if (message_is(m, "process/exited"))
		log_fatal("the echo ended");
	r->answered |= message_id(m) == r->id;
	r->left -= n < r->left ? n : r->left;
	l->done = r->left == 0 && r->answered;
}

void
echo_run(struct peer *p, uint64_t count, struct figures *f)
{
	struct load *l = p->load;
	size_t size = l->size > 0 ? l->size : ECHO_BYTES;
	_cleanup_free_ uint8_t *text = xmalloc(size);
	void *before = l->mode;
	static int64_t id;
	struct round_trip r;

	memset(text, 'x', size);
	l->on_message = on_echo;
	l->mode = &r;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = load_clock_ns();

		r = (struct round_trip){ .id = ++id, .left = size };
		peer_write(p, "echo", r.id, text, size);
		load_run(l);
		if (f != NULL)
			figures_add(f, load_clock_ns() - begin);
	}
	l->mode = before;
}
