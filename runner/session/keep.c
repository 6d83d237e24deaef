/* SPDX-License-Identifier: ISC */
/*
 * A session that its client asked to keep. The broker decides and ends it in
 * time; the runner knows what runs, and tells the next broker.
 */
#include "base.h"
#include "session.h"

static bool
runs(const struct session *s)
{
	const struct session_process *p;

	TAILQ_FOREACH (p, &s->started, link)
		if (!p->process.state.closed)
			return true;
	return false;
}

bool
keep_ask(struct session *s, uint64_t ms, bool while_running, char *reason)
{
	static uint32_t questions;
	struct control_keep_wanted wanted = {
		.number = ++questions,
		.keep = ms > 0 || while_running,
		.running = while_running && runs(s),
		.ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX,
	};
	struct control_keep answer;

	s->ask_keep(&wanted, &answer);
	if (answer.reason[0] != '\0') {
		snprintf(reason, 256, "%s", answer.reason);
		return false;
	}
	s->keep = (struct keep){ .max_ms = answer.max_ms,
		.ms = answer.ms,
		.while_running = while_running,
		.running = wanted.running,
		.idle_ms = now_ms() };
	return true;
}

void
keep_write(struct json_writer *w, const struct session *s)
{
	json_key_u64(w, "keepMs", s->keep.ms);
	json_key_bool(w, "whileRunning", s->keep.while_running);
	json_key_u64(w, "maxMs", s->keep.max_ms);
}

void
keep_report(const struct session *s)
{
	bool attached = channel_is_open(&s->client.channel);
	int64_t now = now_ms();
	struct control_keep_state k = {
		.running = s->keep.running,
		.ms = s->keep.ms,
		.max_ms = s->keep.max_ms,
		.since_ms = (uint64_t)(now - s->keep.idle_ms),
		.detached_ms = attached ? 0 : (uint64_t)(now - s->detached_ms),
	};

	if (s->keep.max_ms > 0)
		s->report(RUNNER_EVENT_KEPT, &k);
}

void
keep_look(struct session *s)
{
	bool running;

	if (!s->keep.while_running)
		return;
	running = runs(s);
	if (running == s->keep.running)
		return;
	s->keep.running = running;
	s->keep.idle_ms = now_ms();
	keep_report(s);
}

bool
keep_remembers(const struct session *s)
{
	return !channel_is_open(&s->client.channel);
}

/* Processes without a client that could ask for them are forgotten as always.
 */
void
keep_attached(struct session *s)
{
	int64_t until = now_ms() + s->config.closed_ttl_ms;
	struct session_process *p;

	TAILQ_FOREACH (p, &s->closed, closed_link)
		if (!p->orphaned && p->forget_ms < until)
			p->forget_ms = until;
}
