/* SPDX-License-Identifier: ISC */
/*
 * A session that is attached while another connection of its identity wants it.
 * Its client may have lost its network without a packet that says so, so
 * whoever holds the connection looks for a sign of life: the front-end, or the
 * runner that has the client's socket. If there is none, the connection is
 * closed, as if its client had gone, and the session is free. Whoever cannot
 * answer counts as alive.
 */
#include "base.h"
#include "session_registry.h"

#include "broker_state.h"
#include "frontend_child.h"

/* Longer than PROBE_MS (liveness.h), and less than the 3 s in which a client
 * has its answer. */
#define PROBE_WAIT_MS 2600

static uint32_t last_number;

static void
too_late(evutil_socket_t fd, short what, void *arg)
{
	broker.on->session_probed(&broker, arg);
}

bool
session_probe(struct broker *m, struct session *s, uint32_t conn, int *fd)
{
	struct control_probe ask = { .conn = s->attachment.conn };

	/* A connection whose CLOSE is not answered yet is ending anyway. */
	if (s->probe.number != 0 || s->attachment.close_asked)
		return false;
	if (++last_number == 0)
		last_number = 1;
	ask.number = last_number;
	s->probe.number = ask.number;
	s->probe.conn = conn;
	s->probe.channel_fd = steal_fd(fd);
	watch_time(&s->probe.timer, PROBE_WAIT_MS, too_late, s);
	log_debug("session %.*s: wanted by connection %u while connection %u "
		  "has it",
	    ID_LOG_CHARS, s->id, conn, ask.conn);
	frontend_send(m->frontend, BROKER_EV_PROBE, &ask, -1);
	return true;
}

int
session_probe_take(struct session *s)
{
	if (s->probe.number == 0)
		return -1;
	watch_end(&s->probe.timer);
	s->probe.number = 0;
	return steal_fd(&s->probe.channel_fd);
}

void
session_probe_runner(struct broker *m, struct session *s)
{
	struct control_runner_probe ask = { .number = s->probe.number };

	if (s->runner.version < RUNNER_PROBES)
		m->on->session_probed(m, s);
	else
		session_send_command(s, RUNNER_COMMAND_PROBE, &ask, NULL, 0);
}

int
session_probe_report(struct session *s, const union runner_report *r)
{
	uint32_t number = r->probe.number;

	if (number == 0) {
		broker.sessions->owing -= s->runner.asked_ms > 0;
		s->runner.asked_ms = 0;
	}
	/* The answer may come too late. */
	if (number != 0 && number == s->probe.number)
		broker.on->session_probed(&broker, s);
	return 0;
}

/* --- whether runners answer ---------------------------------------------- */

void
session_ask_all(struct registry *r)
{
	const struct control_runner_probe ask = { .number = 0 };
	struct session *s;

	TABLE_FOREACH (s, &r->by_id, by_id) {
		if (s->runner.asked_ms > 0 || s->runner.hung_up ||
		    s->runner.version < RUNNER_LIMITS)
			continue;
		s->runner.asked_ms = now_ms();
		r->owing++;
		/* One that reads nothing more does not answer either. */
		session_send_command(s, RUNNER_COMMAND_PROBE, &ask, NULL, 0);
	}
}

bool
session_is_silent(const struct session *s)
{
	return s->runner.asked_ms > 0 &&
	       now_ms() - s->runner.asked_ms >= SESSION_ANSWER_MS;
}
