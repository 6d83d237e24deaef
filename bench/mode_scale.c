/* SPDX-License-Identifier: ISC */
/*
 * Many at rest: sessions without a command, commands that sleep. At each stage
 * the driver measures what they cost; an echo beside them is timed.
 */
#include "base.h"
#include "echo.h"

#define LABEL_MAX 64

/* What a stage says: names carry its number. */
static void
end_stage(struct load *l, uint64_t stage, struct figures *setup)
{
	struct figures f = { 0 };
	char name[LABEL_MAX];

	snprintf(name, sizeof(name), "stage %llu", (unsigned long long)stage);
	load_moment(l, name);
	if (l->count > 0) {
		echo_run(l->peers[0], l->count, &f);
		snprintf(name, sizeof(name), "echo_us.%llu",
		    (unsigned long long)stage);
		figures_show_us(name, &f);
	}
	snprintf(
	    name, sizeof(name), "setup_us.%llu", (unsigned long long)stage);
	figures_show_us(name, setup);
	figures_clear(&f);
	figures_clear(setup);
}

/* The first session, which counts, is the one that has the echo. */
void
mode_sessions(struct load *l)
{
	struct figures setup = { 0 };
	uint64_t n = 0;

	load_moment(l, "begin");
	for (size_t i = 0; l->stages[i] != 0; i++) {
		for (; n < l->stages[i]; n++) {
			uint64_t begin = load_clock_ns();

			peer_open(l);
			figures_add(&setup, load_clock_ns() - begin);
			if (n == 0 && l->count > 0)
				echo_start(l->peers[0]);
		}
		end_stage(l, l->stages[i], &setup);
	}
	load_moment(l, "end");
}

static void
on_sleeping(struct load *l, struct peer *p, const struct rpc_message *m)
{
	if (message_is(m, "process/exited"))
		log_fatal("a sleeper ended");
	l->done = message_id(m) > 1;
}

static void
start_sleeper(struct load *l, uint64_t n)
{
	static const char *const argv[] = { "sleep", "3600", NULL };
	struct peer_command command = { .argv = argv };
	char id[LABEL_MAX];

	snprintf(id, sizeof(id), "sleeper-%llu", (unsigned long long)n);
	l->on_message = on_sleeping;
	peer_start(l->peers[n % l->connections], id, (int64_t)n + 2, &command);
	load_run(l);
}

void
mode_processes(struct load *l)
{
	struct figures setup = { 0 };
	uint64_t n = 0;

	for (size_t i = 0; i < l->connections; i++)
		peer_open(l);
	if (l->count > 0)
		echo_start(l->peers[0]);
	load_moment(l, "begin");
	for (size_t i = 0; l->stages[i] != 0; i++) {
		for (; n < l->stages[i]; n++) {
			uint64_t begin = load_clock_ns();

			start_sleeper(l, n);
			figures_add(&setup, load_clock_ns() - begin);
		}
		end_stage(l, l->stages[i], &setup);
	}
	load_moment(l, "end");
}
