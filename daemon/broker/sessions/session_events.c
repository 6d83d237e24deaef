/* SPDX-License-Identifier: ISC */
/*
 * Reports of runners. A report that is not in the table below, or is
 * impossible, ends the runner and its session.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "broker_state.h"
#include "dispose.h"
#include "dispose_channel.h"
#include "log.h"
#include "seqpacket.h"
#include "session_audit.h"
#include "session_limit.h"
#include "session_recording.h"
#include "session_registry.h"
#include "session_spare.h"
#include "spawn_client.h"

/* The most reports that are read at once; more than a socket holds. */
#define REPORTS_MAX 1024

static bool
take_detached(struct session *s, const uint8_t *packet, size_t len)
{
	struct control_detached d;

	if (control_get(packet, len, RUNNER_EVENT_DETACHED, &d) < 0 ||
	    d.end > CHANNEL_END_RUNNER ||
	    d.generation > s->attachment.generation)
		return false;
	if (d.generation > s->attachment.reported)
		s->attachment.reported = d.generation;
	if (d.generation == s->attachment.generation) {
		s->attachment.end = d.end;
		s->attachment.empty = d.empty;
	}
	/* The connection may have ended before the runner reported it. */
	session_limit_end_empty(&broker, s);
	return true;
}

static bool
take_unwatched(struct session *s, const uint8_t *packet, size_t len)
{
	struct control_unwatched u;

	return control_get(packet, len, RUNNER_EVENT_UNWATCHED, &u) == 0 &&
	       u.end <= CHANNEL_END_RUNNER &&
	       session_watch_ended(s, u.number, u.end);
}

static int
take_end(struct session *s, const uint8_t *packet, size_t len)
{
	if (control_get(packet, len, RUNNER_EVENT_END, NULL) < 0)
		return -EBADMSG;
	if (s->state == SESSION_STATE_TERMINATING)
		return 0;
	s->asked_to_end = true;
	session_end_reason(s, "its client ended it");
	if (session_may_log(s))
		log_info(
		    "session %.*s: its client ends it", ID_LOG_CHARS, s->id);
	session_terminate(&broker, s);
	return 0;
}

/* Returns 0, -EBADMSG, or another -errno if the session must not go on. */
static int
take_one(struct session *s, const uint8_t *packet, size_t len)
{
	switch (control_peek(packet, len)) {
	case RUNNER_EVENT_DETACHED:
		return take_detached(s, packet, len) ? 0 : -EBADMSG;
	case RUNNER_EVENT_UNWATCHED:
		return take_unwatched(s, packet, len) ? 0 : -EBADMSG;
	case RUNNER_EVENT_END:
		return take_end(s, packet, len);
	case RUNNER_EVENT_IDENTITY:
		return session_adopt_again(s, packet, len);
	case RUNNER_EVENT_RUNNING:
		return session_audit_running(s, packet, len);
	case RUNNER_EVENT_RECORDING_FILE:
		return session_recording_event(&broker, s, packet, len);
	default:
		return session_audit_report(&broker, s, packet, len);
	}
}

/* Nothing more is read from the runner. */
static void
hang_up(struct session *s)
{
	s->runner.hung_up = true;
	event_source_set_events(&s->runner.control, 0);
}

static void
give_up(struct session *s)
{
	spawn_kill(s->runner.pid);
	hang_up(s);
}

static void
judge(struct session *s, int err)
{
	if (err == -EBADMSG)
		log_error(0,
		    "session %.*s: impossible message from its runner: "
		    "killing it",
		    ID_LOG_CHARS, s->id);
	else if (err < 0)
		session_end_reason(s, "the audit log cannot be written");
	if (err < 0)
		give_up(s);
}

void
session_take_report(struct session *s, const uint8_t *packet, size_t len)
{
	judge(s, take_one(s, packet, len));
}

static void
take_packet(
    struct session *s, const uint8_t *packet, size_t len, int *fds, size_t nfds)
{
	if (nfds > 0)
		judge(s, -EBADMSG);
	/* Reports of a FOREIGN runner are read and dropped, so that it never
	 * waits. */
	else if (s->state != SESSION_STATE_UNKNOWN &&
		 s->state != SESSION_STATE_FOREIGN)
		session_take_report(s, packet, len);
	else if (s->state == SESSION_STATE_UNKNOWN &&
		 !session_adopt_report(&broker, s, packet, len))
		judge(s, -EBADMSG);
	dispose(fds, nfds);
}

/* Reads what the runner has reported so far, and notes the end of the
 * channel. */
void
session_take_reports(struct session *s)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n = -EAGAIN;
	int count = 0;

	while (!s->runner.hung_up &&
	       (n = seqpacket_recv(s->runner.control.fd, packet, sizeof(packet),
		    fds, &nfds)) > 0) {
		take_packet(s, packet, (size_t)n, fds, nfds);
		if (++count == REPORTS_MAX)
			return; /* others have their turn */
	}
	if (n != -EAGAIN && !s->runner.hung_up)
		hang_up(s);
}

/* The channel ended, but the process may still run. Nobody could reach it any
 * more, so it is ended now. */
void
session_control_ready(struct event_source *source, uint32_t events)
{
	struct session *s =
	    EVENT_SOURCE_OWNER(source, struct session, runner.control);

	if (s->state == SESSION_STATE_SPARE) {
		session_spare_lost(&broker, s);
		return;
	}
	session_take_reports(s);
	if (s->runner.hung_up || events & (EPOLLHUP | EPOLLERR)) {
		spawn_kill(s->runner.pid);
		dispose_channel(event_source_detach(&s->runner.control));
		s->runner.hung_up = true;
	}
}
