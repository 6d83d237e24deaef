/*
 * The session registry. What a runner says here is DETACHED and UNWATCHED;
 * anything else ends it and its session.
 */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "log_limit.h"
#include "monitor.h"
#include "quota.h"
#include "requests.h"
#include "runner_start.h"
#include "seqpacket.h"
#include "session_audit.h"
#include "session_cast.h"
#include "session_limit.h"
#include "starter.h"
#include "util.h"

/* A runner that was told to end gets its own grace plus this. */
#define KILL_MARGIN_MS 2000

/* Of the session channel: several messages of 64 KiB in one turn. */
#define CHANNEL_SEND_BYTES (208 << 10)

/* Reports in one go: more than a socket holds. */
#define REPORTS_MAX 1024

void
registry_init(struct registry *r)
{
	*r = (struct registry){ 0 };
	TAILQ_INIT(&r->detached);
	TAILQ_INIT(&r->terminating);
	TAILQ_INIT(&r->limited);
	TAILQ_INIT(&r->silent);
}

static bool
match_id(const struct table_node *node, const void *key)
{
	return !strcmp(
	    TABLE_OBJECT(node, const struct session, by_id)->id, key);
}

static bool
match_pid(const struct table_node *node, const void *key)
{
	return TABLE_OBJECT(node, const struct session, by_pid)->pid ==
	       *(const pid_t *)key;
}

static struct session *
find_by_id(const struct registry *r, const char *id)
{
	struct table_node *node =
	    table_find(&r->by_id, siphash_bytes(id, strlen(id)), match_id, id);

	return node ? TABLE_OBJECT(node, struct session, by_id) : NULL;
}

static struct session *
find_by_pid(const struct registry *r, pid_t pid)
{
	struct table_node *node =
	    table_find(&r->by_pid, (uint64_t)pid, match_pid, &pid);

	return node ? TABLE_OBJECT(node, struct session, by_pid) : NULL;
}

static void
unlink_from_lists(struct registry *r, struct session *s)
{
	if (s->state == SESSION_STATE_DETACHED)
		TAILQ_REMOVE(&r->detached, s, link);
	else if (s->state == SESSION_STATE_TERMINATING)
		TAILQ_REMOVE(&r->terminating, s, link);
}

/* RFC 9562 version 4, from the kernel's random bytes. */
static void
make_id(char id[CONTROL_SESSION_ID_MAX])
{
	uint8_t r[16];

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		log_fatal("getrandom: no random bytes");
	r[6] = (r[6] & 0x0f) | 0x40;
	r[8] = (r[8] & 0x3f) | 0x80;
	snprintf(id, CONTROL_SESSION_ID_MAX,
	    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
	    "%02x%02x%02x%02x%02x%02x",
	    r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10],
	    r[11], r[12], r[13], r[14], r[15]);
}

/* An order that does not fit into the socket means a runner that has not
 * read for hundreds of messages: it is stuck, and its session with it. */
int
session_order(struct session *s, enum control_type type, const void *payload,
    const int *fds, size_t nfds)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(s->control.fd, b.data, b.len, fds, nfds);
	buf_clear(&b);
	if (err < 0 && err != -EPIPE) {
		log_error(err, "session %.*s: %s: killing the runner",
		    ID_LOG_CHARS, s->id, control_name(type));
		starter_kill(s->pid);
	}
	return err;
}

static int
attach(struct session *s, uint32_t conn, const char *peer, int *channel_fd)
{
	struct control_attach attach = { .generation = ++s->generation };
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		pair) < 0)
		return -errno;
	for (size_t i = 0; i < nitems(pair); i++)
		setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF,
		    &(int){ CHANNEL_SEND_BYTES }, sizeof(int));
	snprintf(attach.peer, sizeof(attach.peer), "%s", peer);
	err = session_order(s, RUNNER_ORDER_ATTACH, &attach, &pair[0], 1);
	close(pair[0]);
	if (err < 0) {
		close(pair[1]);
		return err;
	}
	s->conn = conn;
	memcpy(s->peer, attach.peer, sizeof(s->peer));
	s->close_asked = false;
	s->end = CHANNEL_END_DETACHED;
	s->state = SESSION_STATE_ATTACHED;
	*channel_fd = pair[1];
	return 0;
}

/* One for all sessions of an identity: they are one user's. Without it the
 * runner tries to make one itself. */
static int
find_door(const struct monitor *m, struct identity *id)
{
	const char *step;

	if (!m->root)
		return -1;
	if (id->door_tried)
		return id->door;
	id->door_tried = true;
	id->door = starter_door(id->uid, id->gid, &step);
	if (id->door < 0)
		log_warn(
		    id->door, "no sandbox door for %s: %s", id->name, step);
	return id->door;
}

static void
configure(struct monitor *m, struct session *s, const struct cgroup *cgroup)
{
	const struct limits *l = &m->conf->limits;
	int fds[2 + CGROUP_HIERARCHIES] = { m->programs.http };
	struct sandbox_limits limits;
	size_t nfds = 1;
	int door = find_door(m, s->identity);
	struct control_session_config c = {
		.pid_namespace = m->root,
		.command_deadline_ms = s->identity->limits.command_deadline_ms,
		.output_rate = s->identity->limits.output_rate,
		.record_tty = s->identity->record.directory != NULL,
		.record_input = s->identity->record.input,
		.record_required = s->identity->record.required,
		.record_max_bytes = s->identity->record.max_bytes,
		.closed_ttl_ms = l->closed_ttl_ms,
		.kill_grace_ms = l->kill_grace_ms,
		.retention_bytes = l->retention_bytes,
		.max_message_bytes = l->max_message_bytes,
	};

	snprintf(c.session_id, sizeof(c.session_id), "%s", s->id);
	snprintf(c.provider_id, sizeof(c.provider_id), "%s", m->provider_id);
	snprintf(c.shell, sizeof(c.shell), "%s", s->identity->shell);
	snprintf(c.home, sizeof(c.home), "%s", s->identity->home);
	c.door = door >= 0;
	if (c.door)
		fds[nfds++] = door;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (cgroup->dirs[i] < 0)
			continue;
		c.cgroups |= (uint8_t)(1u << i);
		fds[nfds++] = cgroup->dirs[i];
	}
	session_order(s, RUNNER_ORDER_CONFIGURE, &c, fds, nfds);
	session_audit_configure(m, s);
	conf_sandbox_limits(m->conf, s->identity, &limits);
	session_order(s, RUNNER_ORDER_SANDBOX, &limits, NULL, 0);
}

static bool
take_detached(struct session *s, const uint8_t *packet, size_t len)
{
	struct control_detached d;

	if (control_get(packet, len, RUNNER_REPORT_DETACHED, &d) < 0 ||
	    d.end > CHANNEL_END_RUNNER || d.generation > s->generation)
		return false;
	if (d.generation > s->reported)
		s->reported = d.generation;
	if (d.generation == s->generation)
		s->end = d.end;
	return true;
}

static bool
take_unwatched(struct session *s, const uint8_t *packet, size_t len)
{
	struct control_unwatched u;

	return control_get(packet, len, RUNNER_REPORT_UNWATCHED, &u) == 0 &&
	       u.end <= CHANNEL_END_RUNNER &&
	       session_watch_ended(s, u.number, u.end);
}

static int
take_end(struct session *s, const uint8_t *packet, size_t len)
{
	if (control_get(packet, len, RUNNER_REPORT_END, NULL) < 0)
		return -EBADMSG;
	if (s->state == SESSION_STATE_TERMINATING)
		return 0;
	s->asked_to_end = true;
	s->end_reason = "its client ended it";
	log_info("session %.*s: its client ends it", ID_LOG_CHARS, s->id);
	session_terminate(&monitor, s);
	return 0;
}

/* 0, -EBADMSG, or another -errno if the session must not go on. */
static int
take_one(struct session *s, const uint8_t *packet, size_t len)
{
	switch (control_peek(packet, len)) {
	case RUNNER_REPORT_DETACHED:
		return take_detached(s, packet, len) ? 0 : -EBADMSG;
	case RUNNER_REPORT_UNWATCHED:
		return take_unwatched(s, packet, len) ? 0 : -EBADMSG;
	case RUNNER_REPORT_END:
		return take_end(s, packet, len);
	case RUNNER_REPORT_CAST:
		return session_cast_report(&monitor, s, packet, len);
	default:
		return session_audit_report(&monitor, s, packet, len);
	}
}

/* Nothing more is taken from it. */
static void
hang_up(struct session *s)
{
	s->hung_up = true;
	source_set_events(&s->control, 0);
}

static void
take_report(struct session *s, const uint8_t *packet, size_t len, size_t nfds)
{
	int err = nfds > 0 ? -EBADMSG : take_one(s, packet, len);

	if (err == 0)
		return;
	if (err == -EBADMSG)
		log_error(0,
		    "session %.*s: impossible message from its runner: "
		    "killing it",
		    ID_LOG_CHARS, s->id);
	else
		s->end_reason = "the audit log cannot be written";
	starter_kill(s->pid);
	hang_up(s);
}

/* The only report with a descriptor, which is kept as it is. */
static bool
take_masks(struct session *s, const uint8_t *packet, size_t len, int fd)
{
	if (s->masks >= 0 ||
	    control_get(packet, len, RUNNER_REPORT_MASKS, NULL) < 0)
		return false;
	s->masks = fd;
	return true;
}

/* Reads what the runner said so far; notes the end of the channel. */
void
session_take_reports(struct session *s)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n = -EAGAIN;
	int count = 0;

	while (!s->hung_up && (n = seqpacket_recv(s->control.fd, packet,
				   sizeof(packet), fds, &nfds)) > 0) {
		if (nfds == 1 && take_masks(s, packet, (size_t)n, fds[0]))
			nfds = 0;
		else
			take_report(s, packet, (size_t)n, nfds);
		while (nfds > 0)
			close(fds[--nfds]);
		if (++count == REPORTS_MAX)
			return; /* the others have their turn */
	}
	if (n != -EAGAIN && !s->hung_up)
		hang_up(s);
}

/* The channel ended but the process may not have: nobody could reach it any
 * more, so it ends now. */
static void
control_ready(struct source *source, uint32_t events)
{
	struct session *s = SOURCE_OWNER(source, struct session, control);

	session_take_reports(s);
	if (s->hung_up || events & (EPOLLHUP | EPOLLERR)) {
		starter_kill(s->pid);
		source_remove(&s->control);
		s->hung_up = true;
	}
}

static pid_t
run_here(const struct monitor *m, struct identity *id, int control_fd,
    const struct cgroup *cgroup)
{
	int joins[CGROUP_HIERARCHIES];
	pid_t pid;

	int err = quota_open_joins(cgroup, joins);

	if (err < 0) {
		log_error(err, "runner for %s: its control group", id->name);
		return err;
	}
	pid = runner_start(m->programs.runner, id, m->root, control_fd, joins);
	cgroup_close_joins(joins);
	return pid;
}

static int
start_runner(struct monitor *m, struct session *s, struct cgroup *cgroup)
{
	int pair[2], err = seqpacket_pair(pair);

	if (err < 0)
		return err;
	s->pid = starter_is_used()
		     ? starter_run(s->id, s->identity, pair[1], cgroup)
		     : run_here(m, s->identity, pair[1], cgroup);
	close(pair[1]);
	if (s->pid < 0) {
		close(pair[0]);
		return s->pid;
	}
	err = source_add(&s->control, pair[0], EPOLLIN, control_ready);
	if (err < 0) {
		close(pair[0]);
		starter_kill(s->pid);
	}
	return err;
}

static void
destroy(struct registry *r, struct session *s)
{
	unlink_from_lists(r, s);
	if (s->ends_ms > 0)
		TAILQ_REMOVE(&r->limited, s, end_link);
	session_forget_silence(r, s);
	table_remove(&r->by_id, &s->by_id);
	table_remove(&r->by_pid, &s->by_pid);
	source_remove(&s->control);
	session_forget_watchers(s);
	identity_unref(s->identity);
	if (s->masks >= 0)
		close(s->masks);
	free(s);
}

/* What all its processes may take together: 0, or -errno with the reason why
 * the host cannot hold it to that. An ordinary user's configuration has no
 * such limits. */
static int
open_quota(const struct monitor *m, const struct session *s, struct cgroup *c,
    char *reason)
{
	return !m->root || starter_is_used()
		   ? 0
		   : quota_for(s->id, s->identity, c, reason);
}

/* Its control group, then its process. 0, or -errno with the reason. */
static int
start_with_quota(struct monitor *m, struct session *s, char *reason)
{
	struct cgroup cgroup = CGROUP_NONE;
	int err = open_quota(m, s, &cgroup, reason);

	if (err < 0)
		return err;
	err = start_runner(m, s, &cgroup);
	if (err == -EOPNOTSUPP) {
		quota_reason(s->identity, reason);
		return err;
	}
	if (err == 0)
		configure(m, s, &cgroup);
	cgroup_close(&cgroup);
	if (err == 0)
		return 0;
	quota_close(s->id);
	snprintf(reason, 256, "starting the runner: %s", strerror(-err));
	return err;
}

/* On record before it runs. */
static int
start(struct monitor *m, struct session *s, const char *peer, char *reason)
{
	int err = session_audit(m, s, "session-opened", peer, NULL);

	if (err < 0) {
		snprintf(reason, 256, "the audit log cannot be written");
		return err;
	}
	err = start_with_quota(m, s, reason);
	if (err < 0)
		session_audit(m, s, "session-ended", NULL, reason);
	return err;
}

enum session_result
session_open(struct monitor *m, struct identity *identity, uint32_t conn,
    const char *peer, struct session **session, int *channel_fd, char *reason)
{
	struct registry *r = &m->sessions;
	struct session *s;
	int err;

	if (!session_limit_room(m, identity, reason))
		return SESSION_LIMIT;
	s = xcalloc(1, sizeof(*s));
	s->identity = identity;
	s->control.fd = -1;
	s->masks = -1;
	TAILQ_INIT(&s->watchers);
	make_id(s->id);
	if (start(m, s, peer, reason) < 0) {
		if (log_permits(identity->name, reason))
			log_error(
			    0, "no session for %s: %s", identity->name, reason);
		free(s);
		return SESSION_FAILED;
	}
	identity_ref(identity);
	session_limit_time(r, s);
	table_insert(&r->by_id, &s->by_id, siphash_bytes(s->id, strlen(s->id)));
	table_insert(&r->by_pid, &s->by_pid, (uint64_t)s->pid);
	err = attach(s, conn, peer, channel_fd);
	if (err < 0) {
		snprintf(reason, 256, "session channel: %s", strerror(-err));
		session_terminate(m, s);
		return SESSION_FAILED;
	}
	log_info("session %.*s: opened for %s, %s, runner %d", ID_LOG_CHARS,
	    s->id, identity->name, peer, (int)s->pid);
	*session = s;
	return SESSION_OK;
}

struct session *
session_find(struct monitor *m, const struct identity *identity, const char *id)
{
	struct session *s = find_by_id(&m->sessions, id);

	return s == NULL || !identity_is(s->identity, identity) || s->hung_up ||
		       s->state == SESSION_STATE_TERMINATING
		   ? NULL
		   : s;
}

enum session_result
session_resume(struct monitor *m, const struct identity *identity,
    const char *id, uint32_t conn, const char *peer, struct session **session,
    int *channel_fd)
{
	struct session *s = session_find(m, identity, id);

	if (s == NULL)
		return SESSION_UNKNOWN;
	if (s->state == SESSION_STATE_ATTACHED)
		return SESSION_ATTACHED;
	unlink_from_lists(&m->sessions, s);
	if (attach(s, conn, peer, channel_fd) < 0) {
		s->state = SESSION_STATE_ATTACHED;
		session_terminate(m, s);
		return SESSION_UNKNOWN;
	}
	session_audit(m, s, "session-resumed", peer, NULL);
	log_info("session %.*s: resumed, %s", ID_LOG_CHARS, s->id, peer);
	*session = s;
	return SESSION_OK;
}

bool
session_detach(struct monitor *m, struct session *s, bool channel_ended,
    enum channel_end *end)
{
	session_take_reports(s);
	/* A runner gives its reason before it hangs up. One that gave none is
	 * dying: the kernel closes its descriptors in no order that counts. */
	if (s->hung_up || (channel_ended && s->reported != s->generation)) {
		s->close_asked = true;
		session_note_silence(&m->sessions, s);
		return false;
	}
	*end = s->end;
	if (s->state != SESSION_STATE_ATTACHED)
		return true;
	session_order(s, RUNNER_ORDER_DETACH, NULL, NULL, 0);
	s->state = SESSION_STATE_DETACHED;
	s->deadline_ms = now_ms() + m->conf->limits.detached_ttl_ms;
	TAILQ_INSERT_TAIL(&m->sessions.detached, s, link);
	session_audit(m, s, "session-detached", NULL, NULL);
	log_info("session %.*s: detached", ID_LOG_CHARS, s->id);
	return true;
}

void
session_terminate(struct monitor *m, struct session *s)
{
	if (s->state == SESSION_STATE_TERMINATING)
		return;
	unlink_from_lists(&m->sessions, s);
	s->state = SESSION_STATE_TERMINATING;
	s->deadline_ms =
	    now_ms() + m->conf->limits.kill_grace_ms + KILL_MARGIN_MS;
	TAILQ_INSERT_TAIL(&m->sessions.terminating, s, link);
	if (!s->hung_up)
		session_order(s, RUNNER_ORDER_TERMINATE, NULL, NULL, 0);
}

static void
terminate_visit(struct table_node *node, void *arg)
{
	session_terminate(arg, TABLE_OBJECT(node, struct session, by_id));
}

void
session_terminate_all(struct monitor *m)
{
	table_each(&m->sessions.by_id, terminate_visit, m);
}

/* A fault of its own: whoever made it commit that may try again. */
static bool
is_crash(int status)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT,
		SIGSYS, SIGTRAP };

	for (size_t i = 0; WIFSIGNALED(status) && i < nitems(faults); i++)
		if (WTERMSIG(status) == faults[i])
			return true;
	return false;
}

static void
describe_status(int status, char reason[256])
{
	if (WIFSIGNALED(status))
		snprintf(reason, 256, "runner killed by signal %d",
		    WTERMSIG(status));
	else
		snprintf(reason, 256, "runner exited with status %d",
		    WEXITSTATUS(status));
}

bool
session_reap(struct monitor *m, pid_t pid, int status)
{
	struct session *s = find_by_pid(&m->sessions, pid);
	char reason[256];

	if (s == NULL)
		return false;
	if (s->end_reason != NULL)
		snprintf(reason, sizeof(reason), "%s", s->end_reason);
	else
		describe_status(status, reason);
	if (s->state == SESSION_STATE_TERMINATING)
		log_info("session %.*s: ended", ID_LOG_CHARS, s->id);
	else
		log_error(0, "session %.*s: %s; its processes are killed",
		    ID_LOG_CHARS, s->id, reason);
	session_audit(m, s, "session-ended", NULL, reason);
	s->crashed = is_crash(status);
	requests_session_ended(m, s, reason);
	quota_close(s->id);
	if (s->masks >= 0 && status != 0)
		starter_sweep(m, s->identity, s->masks);
	destroy(&m->sessions, s);
	return true;
}

/* Of two deadlines, either of which may be -1: none. */
static int64_t
earlier(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

int64_t
session_expire(struct monitor *m, int64_t now)
{
	struct session *s;
	int64_t next = earlier(session_limit_expire(m, now),
	    session_silence_expire(&m->sessions, now));

	while ((s = TAILQ_FIRST(&m->sessions.detached)) != NULL &&
	       s->deadline_ms <= now) {
		log_info("session %.*s: not resumed within %u ms, ending it",
		    ID_LOG_CHARS, s->id, m->conf->limits.detached_ttl_ms);
		session_terminate(m, s);
	}
	if (s != NULL)
		next = earlier(next, s->deadline_ms);
	while ((s = TAILQ_FIRST(&m->sessions.terminating)) != NULL &&
	       s->deadline_ms <= now) {
		log_warn(0, "session %.*s: runner did not end in time, killed",
		    ID_LOG_CHARS, s->id);
		starter_kill(s->pid);
		s->deadline_ms = now + KILL_MARGIN_MS;
		TAILQ_REMOVE(&m->sessions.terminating, s, link);
		TAILQ_INSERT_TAIL(&m->sessions.terminating, s, link);
	}
	return s == NULL ? next : earlier(next, s->deadline_ms);
}
