/* SPDX-License-Identifier: ISC */
/*
 * What the broker and a runner tell each other. A report that is not in the
 * table below, or is impossible, ends the runner and its session.
 */
#include "base.h"
#include "session_registry.h"

#include "broker_state.h"
#include "dispose.h"
#include "seqpacket.h"
#include "spawn_client.h"

/* --- recordings --------------------------------------------------------- */

/*
 * Files for recordings of terminals (execd.conf(5), record-tty). Root makes
 * them, and their runner writes to them. The session's user can neither name
 * nor open them. A runner that was taken over can write nonsense into the files
 * of its own session, and into no others.
 */

/* The most recordings of one session, ever, because each takes a name in a
 * directory. */
#define RECORDINGS_MAX 4096

/* Makes 20261121T120000Z-SESSION-NUMBER.cast. */
static char *
make_name(const struct session *s)
{
	time_t now = time(NULL);
	char date[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm);
	return xasprintf(
	    "%s-%.*s-%u.cast", date, ID_LOG_CHARS, s->id, s->runner.recordings);
}

static int
open_file(struct session *s, const char *name)
{
	if (s->runner.recordings > RECORDINGS_MAX)
		return -EDQUOT;
	return spawn_record(
	    s->identity->record.number, s->identity->record.directory, name);
}

/* A runner asks for a file and gets an answer. */
static int
take_recording(struct session *s, const union runner_report *r)
{
	struct control_recording_file answer = { 0 };
	_cleanup_free_ char *name = NULL, *path = NULL;
	_cleanup_close_ int fd = -1;
	int err = 0;

	if (s->identity->record.directory == NULL)
		return -EBADMSG;
	s->runner.recordings++;
	name = make_name(s);
	path = xasprintf("%s/%s", s->identity->record.directory, name);
	fd = open_file(s, name);
	if (fd < 0) {
		log_error(fd, "session %.*s: %s", ID_LOG_CHARS, s->id, path);
		answer.error = (uint32_t)-fd;
	}
	/* The record comes before the first byte that is recorded. */
	if (fd >= 0)
		err = session_audit_recorded(
		    &broker, s, r->recording.process, path);
	session_send_command(
	    s, RUNNER_COMMAND_RECORDING_FILE, &answer, &fd, fd >= 0);
	return err;
}

/* --- events -------------------------------------------------------------- */

/* The most reports that are read at once; more than a socket holds. */
#define REPORTS_MAX 1024

static int
take_detached(struct session *s, const union runner_report *r)
{
	const struct control_detached *d = &r->detached;

	if (d->end > CHANNEL_END_RUNNER ||
	    d->generation > s->attachment.generation)
		return -EBADMSG;
	if (d->generation > s->attachment.reported)
		s->attachment.reported = d->generation;
	if (d->generation == s->attachment.generation) {
		s->attachment.end = d->end;
		s->attachment.empty = d->empty;
	}
	/* The connection may have ended before the runner reported it. */
	session_limit_end_empty(&broker, s);
	return 0;
}

static int
take_unwatched(struct session *s, const union runner_report *r)
{
	const struct control_unwatched *u = &r->unwatched;

	return u->end <= CHANNEL_END_RUNNER &&
		       session_watch_ended(s, u->number, u->end)
		   ? 0
		   : -EBADMSG;
}

static int
take_end(struct session *s, const union runner_report *r)
{
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

/* For later sessions of the identity, and for no other one: a runner is its
 * user's. */
static int
take_redirects(struct session *s, const union runner_report *r)
{
	s->identity->redirects = r->redirects.possible ? CAN : CAN_NOT;
	return 0;
}

/* A second answer to a new broker; see session_adopt_again(). */
static int
take_token(struct session *s, const union runner_report *r)
{
	return s->runner.adopted ? 0 : -EBADMSG;
}

static const struct report {
	enum control_type type;
	bool audit; /* only if the runner was asked for such reports */
	int (*take)(struct session *s, const union runner_report *r);
} reports[] = {
	{ RUNNER_EVENT_DETACHED, false, take_detached },
	{ RUNNER_EVENT_PROBED, false, session_probe_report },
	{ RUNNER_EVENT_UNWATCHED, false, take_unwatched },
	{ RUNNER_EVENT_REDIRECTS, false, take_redirects },
	{ RUNNER_EVENT_END, false, take_end },
	{ RUNNER_EVENT_TOKEN, false, take_token },
	{ RUNNER_EVENT_IDENTITY, false, session_adopt_again },
	{ RUNNER_EVENT_RUNNING, false, session_audit_running },
	{ RUNNER_EVENT_KEEP, false, session_keep_report },
	{ RUNNER_EVENT_LIST, false, session_list_report },
	{ RUNNER_EVENT_KEPT, false, session_kept_report },
	{ RUNNER_EVENT_COMMANDS, false, session_commands_report },
	{ RUNNER_EVENT_RECORDING_FILE, false, take_recording },
	{ RUNNER_EVENT_STARTED, true, session_audit_started },
	{ RUNNER_EVENT_EXITED, true, session_audit_exited },
	{ RUNNER_EVENT_LIMITED, true, session_audit_limited },
	{ RUNNER_EVENT_FILE, true, session_audit_file },
	{ RUNNER_EVENT_HTTP, true, session_audit_http },
	{ RUNNER_EVENT_NETWORK, true, session_audit_network },
};

/* Returns 0, -EBADMSG, or another -errno if the session must not go on. */
static int
take_one(struct session *s, const uint8_t *packet, size_t len)
{
	enum control_type type = control_peek(packet, len);
	union runner_report r;

	for (const struct report *row = reports;
	     row < reports + nitems(reports); row++)
		if (row->type == type && (!row->audit || s->runner.audited))
			return control_get(packet, len, type, &r) < 0
				   ? -EBADMSG
				   : row->take(s, &r);
	return -EBADMSG;
}

/* Nothing more is read from the runner. */
static void
hang_up(struct session *s)
{
	s->runner.hung_up = true;
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
	if (err < 0) {
		spawn_kill(s->runner.pid);
		hang_up(s);
	}
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
	       (n = seqpacket_recv(watch_fd(&s->runner.control), packet,
		    sizeof(packet), fds, &nfds)) > 0) {
		take_packet(s, packet, (size_t)n, fds, nfds);
		if (++count == REPORTS_MAX)
			return; /* others have their turn */
	}
	if (n != -EAGAIN && !s->runner.hung_up)
		hang_up(s);
}

/* The channel ended, but the process may still run. Nobody could reach it any
 * more, so it is ended now. */
static void
control_ready(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	if (s->state == SESSION_STATE_SPARE) {
		session_spare_lost(&broker, s);
		return;
	}
	session_take_reports(s);
	if (s->runner.hung_up) {
		spawn_kill(s->runner.pid);
		dispose_channel(watch_end(&s->runner.control));
	}
}

int
session_control_watch(struct session *s, int fd)
{
	return watch_add(&s->runner.control, fd, EV_READ, control_ready, s);
}

/* --- missing reports ---------------------------------------------------- */

/*
 * A runner that ended a channel without a report is usually dying, and is
 * reaped in a moment. A runner that lives on is faulty, and its client waits to
 * be told, so the runner is killed.
 */

/* A dying runner is reaped sooner than this. */
#define MISSING_REPORT_MS 2000

static void
kill_faulty(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	log_error(0,
	    "session %.*s: its runner ended a channel without a report: "
	    "killing it",
	    ID_LOG_CHARS, s->id);
	spawn_kill(s->runner.pid);
}

void
session_note_missing(struct session *s)
{
	if (!event_initialized(&s->runner.silent_timer))
		watch_time(
		    &s->runner.silent_timer, MISSING_REPORT_MS, kill_faulty, s);
}
