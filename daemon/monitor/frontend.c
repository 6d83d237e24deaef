/*
 * The monitor's side of the front-end. It is trusted with nothing: whatever
 * it says must be in the table below, permitted now, decode exactly, carry no
 * descriptor, and name a grant that it was given. Anything else means that it
 * is compromised: it is killed and a fresh one takes over.
 */
#include "frontend.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "log.h"
#include "monitor.h"
#include "seqpacket.h"
#include "util.h"

#define QUEUE_MAX	  65536 /* messages waiting for a stopped front-end */
#define FAILURES_MAX	  5	/* ends before READY, then execd gives up */
#define RESTART_AFTER_MS  1000	/* if it lived shorter than this */
#define REQUESTS_PER_WAKE 64	/* then the others have their turn */

/* Who authenticated on a connection. Dies with the connection. */
struct grant {
	struct table_node node; /* frontend.grants */
	uint32_t conn;
	uint8_t token[CONTROL_GRANT_BYTES];
	char peer[CONTROL_PEER_MAX];
	const struct identity *identity;
	struct session *session; /* NULL: none, or it ended */
	bool ended;		 /* its session ended under it */
	char reason[256];	 /* why */
};

void
frontend_init(struct frontend *f)
{
	*f = (struct frontend){ .state = FRONTEND_DOWN, .control.fd = -1 };
	TAILQ_INIT(&f->queue);
}

static bool
match_conn(const struct table_node *node, const void *key)
{
	return TABLE_OBJECT(node, const struct grant, node)->conn ==
	       *(const uint32_t *)key;
}

static struct grant *
grant_find(struct frontend *f, uint32_t conn)
{
	struct table_node *node =
	    table_find(&f->grants, conn, match_conn, &conn);

	return node ? TABLE_OBJECT(node, struct grant, node) : NULL;
}

static void
grant_free(struct frontend *f, struct grant *g)
{
	table_remove(&f->grants, &g->node);
	explicit_bzero(g, sizeof(*g));
	free(g);
}

/* All bytes are compared, whatever the first difference. */
static bool
token_equal(const uint8_t *a, const uint8_t *b)
{
	uint8_t difference = 0;

	for (size_t i = 0; i < CONTROL_GRANT_BYTES; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

static void
outgoing_free(struct frontend *f, struct outgoing *o)
{
	TAILQ_REMOVE(&f->queue, o, link);
	f->queued--;
	buf_clear(&o->message);
	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

static void
condemn(struct frontend *f, const char *why)
{
	log_error(0, "front-end %d: %s: killing it", (int)f->pid, why);
	kill(f->pid, SIGKILL);
}

static void
enqueue(struct frontend *f, struct buf *b, int fd)
{
	struct outgoing *o;

	if (f->queued == QUEUE_MAX) {
		condemn(f, "does not read its control channel");
		buf_clear(b);
		if (fd >= 0)
			close(fd);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	o->message = *b;
	o->fd = fd;
	TAILQ_INSERT_TAIL(&f->queue, o, link);
	f->queued++;
	source_set_events(&f->control, EPOLLIN | EPOLLOUT);
}

static void
flush_queue(struct frontend *f)
{
	struct outgoing *o;

	while ((o = TAILQ_FIRST(&f->queue)) != NULL) {
		if (seqpacket_send(f->control.fd, o->message.data,
			o->message.len, &o->fd, o->fd >= 0) == -EAGAIN)
			return;
		outgoing_free(f, o);
	}
	source_set_events(&f->control, EPOLLIN);
}

/* Takes fd (or -1) over. A front-end that is gone loses it. */
static void
send_message(
    struct frontend *f, enum control_type type, const void *payload, int fd)
{
	struct buf b;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	if (f->control.fd >= 0 &&
	    (f->queued > 0 || seqpacket_send(f->control.fd, b.data, b.len, &fd,
				  fd >= 0) == -EAGAIN)) {
		enqueue(f, &b, fd);
		return;
	}
	buf_clear(&b);
	if (fd >= 0)
		close(fd);
}

/* Decodes a request; a failure is the caller's -EBADMSG. */
#define REQUEST(type, payload, packet, len)                                    \
	do {                                                                   \
		if (control_get(packet, len, type, payload) < 0)               \
			return -EBADMSG;                                       \
	} while (0)

static void
announce(struct monitor *m)
{
	if (m->announced)
		return;
	m->announced = true;
	for (size_t i = 0; i < m->nlisteners; i++)
		if (m->listeners[i].kind == LISTENER_WS)
			dprintf(STDOUT_FILENO, "%s\n", m->listeners[i].url);
}

static int
answer_ready(struct monitor *m, const uint8_t *packet, size_t len)
{
	struct control_ready r;

	REQUEST(MON_REQ_READY, &r, packet, len);
	if (!r.seccomp || (m->root && (!r.root_empty || !r.user_changed))) {
		log_error(0, "the front-end could not confine itself");
		monitor_stop(m, EXIT_UNENFORCEABLE);
		return 0;
	}
	log_info("front-end %d: serving; %s file system, %s user, seccomp%s",
	    (int)m->frontend.pid, r.root_empty ? "no" : "the whole",
	    r.user_changed ? "its own" : "the same",
	    r.landlock ? ", Landlock" : "");
	m->frontend.state = FRONTEND_SERVING;
	m->frontend.failures = 0;
	announce(m);
	return 0;
}

static int
answer_authenticate(struct monitor *m, const uint8_t *packet, size_t len)
{
	struct frontend *f = &m->frontend;
	struct control_authenticate a;
	struct control_verdict v = { .verdict = VERDICT_GRANTED };
	struct grant *g;

	REQUEST(MON_REQ_AUTHENTICATE, &a, packet, len);
	if (a.listener >= m->nlisteners || a.kind > CREDENTIAL_BEARER ||
	    grant_find(f, a.conn) != NULL)
		return -EPERM;
	v.conn = a.conn;
	v.verdict = (uint8_t)credential_verify(
	    &m->credentials, &a, (int64_t)time(NULL));
	explicit_bzero(a.credential, sizeof(a.credential));
	if (m->stopping || f->grants.count >= m->options->max_connections)
		v.verdict = VERDICT_BUSY;
	if (v.verdict != VERDICT_GRANTED) {
		log_info("%s: refused: %s", a.peer,
		    control_verdict_name((enum verdict)v.verdict));
		send_message(f, MON_ANS_AUTHENTICATE, &v, -1);
		return 0;
	}
	g = xcalloc(1, sizeof(*g));
	g->conn = a.conn;
	g->identity = &m->identity;
	memcpy(g->peer, a.peer, sizeof(g->peer));
	if (getrandom(g->token, sizeof(g->token), 0) !=
	    (ssize_t)sizeof(g->token))
		log_fatal("getrandom: no random bytes");
	memcpy(v.grant, g->token, sizeof(v.grant));
	table_insert(&f->grants, &g->node, g->conn);
	send_message(f, MON_ANS_AUTHENTICATE, &v, -1);
	return 0;
}

/* The grant behind a request that starts or resumes a session. */
static struct grant *
grant_for_session(struct frontend *f, uint32_t conn, const uint8_t *token)
{
	struct grant *g = grant_find(f, conn);

	if (g == NULL || !token_equal(g->token, token) || g->session != NULL ||
	    g->ended)
		return NULL;
	return g;
}

static void
send_session(struct frontend *f, enum control_type type,
    struct control_session *answer, const struct session *s, int channel_fd)
{
	if (answer->result == SESSION_OK)
		memcpy(answer->session_id, s->id, sizeof(s->id));
	send_message(f, type, answer, channel_fd);
}

static int
answer_open(struct monitor *m, const uint8_t *packet, size_t len)
{
	struct control_open o;
	struct control_session answer = { 0 };
	struct grant *g;
	int channel_fd = -1;

	REQUEST(MON_REQ_OPEN, &o, packet, len);
	g = grant_for_session(&m->frontend, o.conn, o.grant);
	if (g == NULL)
		return -EPERM;
	answer.conn = o.conn;
	if (m->stopping) {
		answer.result = SESSION_LIMIT;
		snprintf(answer.reason, sizeof(answer.reason),
		    "the server is shutting down");
	} else {
		answer.result = session_open(m, g->identity, g->conn, g->peer,
		    &g->session, &channel_fd, answer.reason);
	}
	send_session(
	    &m->frontend, MON_ANS_OPEN, &answer, g->session, channel_fd);
	return 0;
}

static int
answer_resume(struct monitor *m, const uint8_t *packet, size_t len)
{
	struct control_resume r;
	struct control_session answer = { 0 };
	struct grant *g;
	int channel_fd = -1;

	REQUEST(MON_REQ_RESUME, &r, packet, len);
	g = grant_for_session(&m->frontend, r.conn, r.grant);
	if (g == NULL)
		return -EPERM;
	answer.conn = r.conn;
	answer.result = session_resume(m, g->identity, r.session_id, g->conn,
	    g->peer, &g->session, &channel_fd);
	send_session(
	    &m->frontend, MON_ANS_RESUME, &answer, g->session, channel_fd);
	return 0;
}

static int
answer_close(struct monitor *m, const uint8_t *packet, size_t len)
{
	struct control_close c;
	struct control_closed answer = { .end = CHANNEL_END_DETACHED };
	enum channel_end end;
	struct grant *g;

	REQUEST(MON_REQ_CLOSE, &c, packet, len);
	g = grant_find(&m->frontend, c.conn);
	if (g == NULL || (g->session != NULL && g->session->close_asked))
		return -EPERM;
	answer.conn = c.conn;
	if (g->ended) {
		answer.end = CHANNEL_END_RUNNER;
		memcpy(answer.reason, g->reason, sizeof(answer.reason));
	} else if (g->session != NULL) {
		if (!session_detach(m, g->session, c.channel_ended, &end))
			return 0; /* answered when the runner is reaped */
		answer.end = end;
	}
	grant_free(&m->frontend, g);
	send_message(&m->frontend, MON_ANS_CLOSE, &answer, -1);
	return 0;
}

static int
answer_done(struct monitor *m, const uint8_t *packet, size_t len)
{
	REQUEST(MON_REQ_DONE, NULL, packet, len);
	if (!m->stdio)
		return -EPERM;
	m->frontend.done = true;
	monitor_stop(m, EXIT_STOPPED);
	return 0;
}

/* Everything the front-end may ask: what, when, and who answers. */
static const struct request {
	enum control_type type;
	unsigned when;
	int (*answer)(struct monitor *m, const uint8_t *packet, size_t len);
} requests[] = {
	{ MON_REQ_READY, FRONTEND_CONFINING, answer_ready },
	{ MON_REQ_AUTHENTICATE, FRONTEND_SERVING, answer_authenticate },
	{ MON_REQ_OPEN, FRONTEND_SERVING, answer_open },
	{ MON_REQ_RESUME, FRONTEND_SERVING, answer_resume },
	{ MON_REQ_CLOSE, FRONTEND_SERVING, answer_close },
	{ MON_REQ_DONE, FRONTEND_SERVING, answer_done },
};

static int
take_request(struct monitor *m, const uint8_t *packet, size_t len)
{
	enum control_type type = control_peek(packet, len);

	for (size_t i = 0; i < nitems(requests); i++) {
		if (requests[i].type != type)
			continue;
		if (!(requests[i].when & m->frontend.state))
			return -EACCES;
		return requests[i].answer(m, packet, len);
	}
	return -ENOSYS;
}

static const char *
describe_violation(int err)
{
	switch (err) {
	case -ENOSYS:
		return "sent a message that is not in the table";
	case -EACCES:
		return "sent a request that is not permitted now";
	case -EBADMSG:
		return "sent a malformed message";
	default:
		return "asked for what it was not granted";
	}
}

static void
control_ready(struct source *source, uint32_t events)
{
	struct frontend *f = SOURCE_OWNER(source, struct frontend, control);
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds = 0;
	ssize_t n = -EAGAIN;
	int err = 0;

	if (events & EPOLLOUT)
		flush_queue(f);
	for (int i = 0; i < REQUESTS_PER_WAKE && err == 0; i++) {
		n = seqpacket_recv(
		    f->control.fd, packet, sizeof(packet), fds, &nfds);
		if (n <= 0)
			break;
		if (nfds > 0)
			err = -EBADMSG;
		else
			err = take_request(&monitor, packet, (size_t)n);
		while (nfds > 0)
			close(fds[--nfds]);
		if (f->control.fd < 0)
			return;
	}
	if (n == -EMSGSIZE)
		err = -EBADMSG;
	if (err < 0)
		condemn(f, describe_violation(err));
	if (err < 0 || n == 0 || (n < 0 && n != -EAGAIN && n != -EMSGSIZE))
		source_remove(&f->control);
}

static void
send_configuration(struct monitor *m)
{
	const struct options *o = m->options;
	struct control_configure c = {
		.uid = m->frontend_uid,
		.gid = m->frontend_gid,
		.drop = m->root,
		.authenticate = m->credentials.mode != AUTH_NONE,
		.ping_interval_ms = o->ping_interval_ms,
		.pre_auth_deadline_ms = o->pre_auth_deadline_ms,
		.max_connections = o->max_connections,
		.max_frame_bytes = o->max_frame_bytes,
		.max_message_bytes = o->max_message_bytes,
		.listeners = (uint32_t)m->nlisteners,
	};
	int fds[SEQPACKET_FDS_MAX];
	size_t n = 0;
	struct buf b;

	for (size_t i = 0; i < m->nlisteners; i++) {
		c.kinds[i] = m->listeners[i].kind;
		fds[n++] = m->listeners[i].fd;
		if (m->listeners[i].kind == LISTENER_STDIO)
			fds[n++] = m->listeners[i].out_fd;
	}
	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, MON_EV_CONFIGURE, &c);
	seqpacket_send(m->frontend.control.fd, b.data, b.len, fds, n);
	buf_clear(&b);
}

static void __attribute__((noreturn))
frontend_child(const struct monitor *m, int control_fd)
{
	char *argv[] = { (char *)(uintptr_t) "execd-frontend", NULL };
	char *env[3] = { NULL };
	int n = 0;

	if (m->options->debug)
		env[n++] = (char *)(uintptr_t) "EXECD_DEBUG=1";
	if (getenv("JOURNAL_STREAM") != NULL)
		env[n++] = (char *)(uintptr_t) "JOURNAL_STREAM=inherited";
	child_reset_signals();
	setsid();
	child_exec(m->programs.frontend, control_fd, argv, env);
}

int
frontend_start(struct monitor *m)
{
	struct frontend *f = &m->frontend;
	int pair[2], err = seqpacket_pair(pair);

	if (err < 0)
		return err;
	f->pid = fork();
	if (f->pid == 0)
		frontend_child(m, pair[1]);
	close(pair[1]);
	if (f->pid < 0) {
		err = -errno;
		close(pair[0]);
		return err;
	}
	f->state = FRONTEND_CONFINING;
	f->started_ms = now_ms();
	err = source_add(&f->control, pair[0], EPOLLIN, control_ready);
	if (err < 0)
		return err;
	send_configuration(m);
	return 0;
}

/* Its connections are gone; their sessions wait for them to come back. */
static void
forget_grants(struct monitor *m)
{
	struct frontend *f = &m->frontend;
	struct table_node *node;

	while ((node = table_any(&f->grants)) != NULL) {
		struct grant *g = TABLE_OBJECT(node, struct grant, node);
		enum channel_end end;

		if (g->session != NULL && !g->session->close_asked)
			session_detach(m, g->session, false, &end);
		grant_free(f, g);
	}
	while (!TAILQ_EMPTY(&f->queue))
		outgoing_free(f, TAILQ_FIRST(&f->queue));
}

static void
plan_restart(struct monitor *m)
{
	struct frontend *f = &m->frontend;
	int64_t now = now_ms();

	if (f->state == FRONTEND_CONFINING &&
	    ++f->failures >= (m->announced ? FAILURES_MAX : 1)) {
		log_error(0, "the front-end cannot be started");
		monitor_stop(m, EXIT_FAILED);
	} else if (m->stdio) {
		log_error(0, "the front-end of the stdio connection is gone");
		monitor_stop(m, EXIT_FAILED);
	}
	f->restart_ms =
	    now - f->started_ms < RESTART_AFTER_MS / 2 && f->failures > 1
		? now + RESTART_AFTER_MS
		: now;
	f->state = FRONTEND_DOWN;
}

bool
frontend_reap(struct monitor *m, pid_t pid, int status)
{
	struct frontend *f = &m->frontend;

	if (pid != f->pid)
		return false;
	f->pid = 0;
	source_remove(&f->control);
	forget_grants(m);
	if (m->stopping) {
		f->state = FRONTEND_DOWN;
		return true;
	}
	if (WIFSIGNALED(status))
		log_error(0, "front-end %d: killed by signal %d", (int)pid,
		    WTERMSIG(status));
	else
		log_error(0, "front-end %d: exited with status %d", (int)pid,
		    WEXITSTATUS(status));
	plan_restart(m);
	return true;
}

void
frontend_drain(struct monitor *m)
{
	send_message(&m->frontend, MON_EV_DRAIN, NULL, -1);
}

void
frontend_hang_up(struct monitor *m)
{
	source_remove(&m->frontend.control);
}

void
frontend_session_ended(struct monitor *m, struct session *s, const char *reason)
{
	struct frontend *f = &m->frontend;
	struct grant *g = grant_find(f, s->conn);
	struct control_closed closed = { .conn = s->conn,
		.end = CHANNEL_END_RUNNER };
	struct control_runner_exited exited = { .conn = s->conn };

	if (g == NULL || g->session != s)
		return;
	snprintf(closed.reason, sizeof(closed.reason), "%s", reason);
	snprintf(exited.reason, sizeof(exited.reason), "%s", reason);
	if (s->close_asked) {
		grant_free(f, g);
		send_message(f, MON_ANS_CLOSE, &closed, -1);
		return;
	}
	g->session = NULL;
	g->ended = true;
	snprintf(g->reason, sizeof(g->reason), "%s", reason);
	send_message(f, MON_EV_RUNNER_EXITED, &exited, -1);
}
