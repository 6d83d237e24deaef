/* SPDX-License-Identifier: ISC */
/*
 * Commands: from process/start to process/closed, several at a time.
 */
#include "base.h"
#include "figures.h"
#include "peer.h"

#define ID_MAX 64

struct slot {
	struct peer *peer;
	uint64_t started_ns;
};

struct spawn {
	struct slot *slots; /* owned; connections x inflight */
	size_t nslots;
	uint64_t left; /* to be started */
	uint64_t running;
	uint64_t serial;
	struct figures closed;
};

static void
start_one(struct load *l, struct spawn *s, size_t slot)
{
	static const char *const argv[] = { "/bin/true", NULL };
	struct peer_command command = {
		.argv = argv, .tty = l->tty, .sandbox = l->sandbox
	};
	char id[ID_MAX];

	if (s->left == 0)
		return;
	s->left--;
	s->running++;
	snprintf(
	    id, sizeof(id), "%zu.%llu", slot, (unsigned long long)++s->serial);
	s->slots[slot].started_ns = load_clock_ns();
	peer_start(s->slots[slot].peer, id, (int64_t)s->serial, &command);
}

static void
on_message(struct load *l, struct peer *p, const struct rpc_message *m)
{
	struct spawn *s = l->mode;
	struct slice id;
	size_t slot;

	message_check_exit(m, "a command");
	if (!message_is(m, "process/closed"))
		return;
	id = message_member(m, "processId")->text;
	slot = strtoul(id.ptr, NULL, 10);
	if (slot >= s->nslots || s->slots[slot].peer != p)
		log_fatal("the server closed %.*s, which is not running",
		    (int)id.len, id.ptr);
	figures_add(&s->closed, load_clock_ns() - s->slots[slot].started_ns);
	s->running--;
	start_one(l, s, slot);
	l->done = s->left == 0 && s->running == 0;
}

static void
run_commands(struct load *l, struct spawn *s, uint64_t count)
{
	if (count == 0)
		return;
	s->left = count;
	for (size_t i = 0; i < s->nslots; i++)
		start_one(l, s, i);
	load_run(l);
}

void
mode_spawn(struct load *l)
{
	struct spawn s = { .nslots = l->connections * l->inflight };
	uint64_t begin;

	s.slots = xcalloc(s.nslots, sizeof(*s.slots));
	for (size_t i = 0; i < l->connections; i++)
		peer_open(l);
	for (size_t i = 0; i < s.nslots; i++)
		s.slots[i].peer = l->peers[i % l->npeers];
	l->on_message = on_message;
	l->mode = &s;
	run_commands(l, &s, l->warmup);
	s.closed.n = 0;
	load_moment(l, "begin");
	begin = load_clock_ns();
	run_commands(l, &s, l->count);
	figures_show("seconds", (double)(load_clock_ns() - begin) / 1e9);
	load_moment(l, "end");
	figures_show("ops", (double)l->count);
	figures_show_us("closed_us", &s.closed);
	figures_clear(&s.closed);
	free(s.slots);
}
