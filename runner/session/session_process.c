/* SPDX-License-Identifier: ISC */
/*
 * The processes of a session: found by id, and kept after they closed until
 * they are forgotten.
 */
#include "session.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loop.h"
#include "recorder.h"
#include "siphash.h"

/* bytes of a command line kept for process/list */
#define COMMAND_KEPT_BYTES 4096

/*
 * The retained output of all closed processes is limited to what this many
 * running ones may retain.
 */
#define CLOSED_OUTPUTS_MAX 256

struct process_key {
	struct slice id;
	bool v0;
};

static bool
match_process(const struct table_node *node, const void *arg)
{
	const struct process_key *key = arg;
	const struct session_process *p =
	    TABLE_OBJECT(node, const struct session_process, node);

	return p->v0 == key->v0 && !p->orphaned &&
	       slice_equal(key->id, (struct slice){ p->id, p->id_len });
}

static struct session_process *
find(struct session *s, struct process_key key)
{
	struct table_node *node = table_find(&s->processes,
	    siphash_bytes(key.id.ptr, key.id.len), match_process, &key);

	return node ? TABLE_OBJECT(node, struct session_process, node) : NULL;
}

struct session_process *
session_find(struct session *s, struct slice id)
{
	return find(s, (struct process_key){ id, false });
}

struct session_process *
session_find_v0(struct session *s, struct slice id)
{
	return find(s, (struct process_key){ id, true });
}

struct session_process *
session_process_new(struct session *s, struct slice id)
{
	struct session_process *p = xcalloc(1, sizeof(*p) + id.len + 1);

	p->session = s;
	TAILQ_INIT(&p->waiters);
	memcpy(p->id, id.ptr, id.len);
	p->id_len = id.len;
	return p;
}

void
session_add(struct session *s, struct session_process *p)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	p->started_wall_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	p->started_mono_ms = now_ms();
	p->number = ++s->starts;
	table_insert(&s->processes, &p->node, siphash_bytes(p->id, p->id_len));
	TAILQ_INSERT_TAIL(&s->started, p, link);
}

void
session_note_command(struct session_process *p, char *const *argv)
{
	struct buf text;

	buf_init(&text, COMMAND_KEPT_BYTES);
	for (; *argv != NULL && !p->command_cut; argv++) {
		size_t n = strlen(*argv) + 1;

		p->command_cut = n > COMMAND_KEPT_BYTES - text.len;
		if (!p->command_cut)
			buf_put(&text, *argv, n);
	}
	p->command = (char *)text.data;
	p->command_len = text.len;
}

static void
session_process_free(struct session_process *p)
{
	process_clear(&p->process);
	recorder_end(p);
	free(p->start_id);
	free(p->command);
	free(p);
}

static void
plan_forgetting(struct session *s)
{
	struct session_process *first = TAILQ_FIRST(&s->closed);
	int64_t ms;
	struct timeval tv;

	if (first == NULL)
		return;
	ms = first->forget_ms - now_ms();
	tv = timeval_of_ms(ms < 0 ? 0 : (uint64_t)ms);
	loop_add(&s->forget_event, &tv);
}

void
session_process_forget_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct session_process *p;

	while (
	    (p = TAILQ_FIRST(&s->closed)) != NULL && p->forget_ms <= now_ms()) {
		s->output_kept -= p->output_kept;
		if (s->oldest_kept == p)
			s->oldest_kept = TAILQ_NEXT(p, closed_link);
		TAILQ_REMOVE(&s->closed, p, closed_link);
		TAILQ_REMOVE(&s->started, p, link);
		table_remove(&s->processes, &p->node);
		session_process_free(p);
	}
	plan_forgetting(s);
}

/*
 * If there is too much, the output of the oldest processes is dropped. How they
 * ended can still be asked.
 */
static void
keep_output(struct session_process *p)
{
	struct session *s = p->session;
	uint64_t most = s->config.retention_bytes * CLOSED_OUTPUTS_MAX;

	p->output_kept = process_state_memory(&p->process.state);
	s->output_kept += p->output_kept;
	if (s->oldest_kept == NULL)
		s->oldest_kept = p;
	while (s->output_kept > most && s->oldest_kept != p) {
		struct session_process *oldest = s->oldest_kept;

		process_state_drop(&oldest->process.state);
		s->output_kept -= oldest->output_kept;
		oldest->output_kept = 0;
		s->oldest_kept = TAILQ_NEXT(oldest, closed_link);
	}
}

/*
 * An orphaned process is forgotten at once, because no client can ask about it.
 */
void
session_note_closed(struct session_process *p)
{
	struct session *s = p->session;

	recorder_end(p);
	p->forget_ms = p->orphaned ? 0 : now_ms() + s->config.closed_ttl_ms;
	if (p->orphaned) {
		TAILQ_INSERT_HEAD(&s->closed, p, closed_link);
	} else {
		TAILQ_INSERT_TAIL(&s->closed, p, closed_link);
		keep_output(p);
	}
	if (TAILQ_FIRST(&s->closed) == p)
		plan_forgetting(s);
}
