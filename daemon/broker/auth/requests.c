/* SPDX-License-Identifier: ISC */
/*
 * The front-end's requests. A request must be in the table below, be permitted
 * now, decode exactly, and name a grant that the front-end was given.
 */
#include <netinet/in.h>

#include "base.h"
#include "broker_state.h"
#include "code_pages.h"
#include "credential.h"
#include "dispose.h"
#include "exit_code.h"
#include "frontend_child.h"
#include "log_limit.h"
#include "requests.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "stats.h"
#include "systemd.h"
#include "tcp_peer.h"

/* A request that was decoded. */
struct request {
	enum control_type type;
	int *fd; /* -1: none; whoever keeps it sets it to -1 */
	union {
		struct control_ready ready;
		struct control_authenticate authenticate; /* and METRICS */
		struct control_refused refused;
		struct control_open open;
		struct control_resume resume; /* and WATCH */
		struct control_close close;
		struct control_helper helper;
		struct control_probed probed;
	};
};

static void
announce(struct broker *m)
{
	spawn_serving(m->replaceable);
	m->on->serving();
	notify("READY=1\nSTATUS=serving");
	if (m->announced)
		return;
	m->announced = true;
	for (size_t i = 0; i < m->conf->nlisteners; i++)
		if (m->conf->listeners[i]->kind != LISTENER_STDIO)
			dprintf(
			    STDOUT_FILENO, "%s\n", m->conf->listeners[i]->url);
}

static int
answer_ready(struct broker *m, struct request *q)
{
	const struct control_ready *r = &q->ready;

	if (!r->seccomp || (m->root && (!r->root_empty || !r->user_changed))) {
		log_error(0, "the front-end could not confine itself");
		m->on->stop(m, EXIT_UNENFORCEABLE);
		return 0;
	}
	log_info("front-end %d: serving; %s file system, %s user, seccomp%s",
	    (int)m->frontend->pid, r->root_empty ? "no" : "the whole",
	    r->user_changed ? "its own" : "the same",
	    r->landlock ? ", Landlock" : "");
	m->frontend->state = FRONTEND_SERVING;
	frontend_is_alive(m->frontend);
	m->frontend->failures = 0;
	announce(m);
	code_pages_give_back();
	return 0;
}

static struct listener *
find_listener(const struct broker *m, uint32_t id)
{
	for (size_t i = 0; i < m->conf->nlisteners; i++)
		if (m->conf->listeners[i]->id == id)
			return m->conf->listeners[i];
	return NULL;
}

#define PEER_GROUPS_MAX 65536 /* NGROUPS_MAX of the kernel */

/* Who the kernel says a client is. */
struct peer {
	uid_t uid;
	const uid_t *known; /* &uid, or NULL: it does not say */
};

static int
take_unix_peer(int fd, struct peer *p)
{
	struct ucred its;
	socklen_t len = sizeof(its);
	int domain = 0;
	socklen_t domain_len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) < 0 ||
	    domain != AF_UNIX ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &its, &len) < 0)
		return -EBADMSG;
	p->uid = its.uid;
	p->known = &p->uid;
	return 0;
}

/* Tells whether it is a connection that the listener has accepted. */
static bool
is_accepted(const struct listener *l, int fd)
{
	struct sockaddr_storage here = { 0 }, its = { 0 };
	socklen_t n = sizeof(here), m = sizeof(its);
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 &&
	       protocol == IPPROTO_TCP &&
	       getsockname(l->fd, (struct sockaddr *)&here, &n) == 0 &&
	       getsockname(fd, (struct sockaddr *)&its, &m) == 0 &&
	       memcmp(&here, &its, sizeof(here)) == 0;
}

/* A client that has closed its socket may have no user any more: it is refused,
 * and the front-end has done nothing wrong. */
static int
take_tcp_peer(
    const struct listener *l, int *fd, const char *name, struct peer *p)
{
	int err;

	if (!is_accepted(l, *fd))
		return -EBADMSG;
	err = tcp_peer_uid(l->diag_fd, *fd, &p->uid);
	if (err == 0)
		p->known = &p->uid;
	else if (log_permits(LOG_FAILURE, name, "user"))
		log_info("%s: its user is not known: %s", name,
		    err == -EPERM ? "root, or one of another user namespace"
		    : err == -ENOENT || err == -ENOTCONN
			? "it has closed the connection, or is in another "
			  "network namespace"
			: strerror(-err));
	/* Unlike a unix socket, this one may linger (dispose.h). */
	dispose(fd, 1);
	*fd = -1;
	return 0;
}

/* Asks the kernel about the client of a listener whose front-end sends the
 * client's socket with the request, where it is one of those. The descriptor
 * proves nothing else. */
static int
take_peer(const struct listener *l, struct request *q, struct peer *p)
{
	bool tcp = l->kind != LISTENER_UNIX && l->keys.peer_user;

	p->known = NULL;
	if ((tcp || l->kind == LISTENER_UNIX) != (*q->fd >= 0))
		return -EBADMSG;
	if (*q->fd < 0)
		return 0;
	return tcp ? take_tcp_peer(l, q->fd, q->authenticate.peer, p)
		   : take_unix_peer(*q->fd, p);
}

/* The kernel knows the groups that the client has now. The configuration has
 * those who were members when it was read. */
static bool
is_new_member(const struct conf *c, int fd)
{
	_cleanup_free_ gid_t *groups = NULL;
	socklen_t size = 0;

	getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size);
	if (size == 0 || size > PEER_GROUPS_MAX * sizeof(*groups))
		return false;
	groups = xmalloc(size);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return false;
	for (size_t i = 0; i < c->nidentities; i++)
		for (size_t j = 0; j < size / sizeof(*groups); j++)
			if (c->identities[i]->peer_group != NULL &&
			    groups[j] == c->identities[i]->peer_gid)
				return true;
	return false;
}

/* Logs, records and lists name the user and the listener beside the address.
 * Long names are cut. */
static void
name_peer(
    struct control_authenticate *a, const struct listener *l, const char *user)
{
	char text[CONTROL_PEER_MAX];

	snprintf(text, sizeof(text), "%.31s of %.32s, listener %.16s", a->peer,
	    user, l->name);
	memcpy(a->peer, text, sizeof(text));
}

static void
send_verdict(struct frontend *f, const struct control_authenticate *a,
    enum verdict verdict, const struct grant *g)
{
	struct control_verdict v = { .conn = a->conn,
		.verdict = (uint8_t)verdict };

	if (g != NULL)
		memcpy(v.grant, g->token, sizeof(v.grant));
	frontend_send(f, BROKER_ANS_AUTHENTICATE, &v, -1);
	explicit_bzero(&v, sizeof(v));
}

/* A certificate process that died meanwhile is no violation of the front-end.
 * Its verdict no longer counts. */
static void
check_cert_verdict(const struct broker *m, struct control_authenticate *a)
{
	if (!a->has_certificate ||
	    helpers_vouch(m, a->listener, &a->cert_verdict))
		return;
	if (log_permits(LOG_FAILURE, a->peer, "verdict"))
		log_warn(0,
		    "%s: no certificate process has verified its certificate",
		    a->peer);
	a->has_certificate = false;
}

/* The log says more than the client is told: what is wrong with a signed token,
 * or the subject of a valid one that belongs to no identity, so that the
 * operator can add it. */
static void
log_refused(
    const char *peer, enum verdict v, const struct credential_finding *found)
{
	const struct jwt_answer *jwt = &found->jwt;
	const char *name = control_verdict_name(v);

	if (v < VERDICT_MISSING_TOKEN || !log_permits(LOG_FAILURE, peer, name))
		return;
	if (v == VERDICT_SUBJECT)
		log_info(
		    "%s: refused: %s: `%s`", peer, name, jwt->token.subject);
	else if (jwt->why[0] != '\0')
		log_info("%s: refused: %s: %s", peer, name, jwt->why);
	else if (v == VERDICT_LOCKED)
		log_info("%s: refused: %s: [identity %s]", peer, name,
		    found->barred);
	else if (found->barred != NULL)
		log_info("%s: refused: %s: this listener does not let "
			 "[identity %s] in",
		    peer, name, found->barred);
	else if (found->token != NULL)
		log_info(
		    "%s: refused: %s: [token %s]", peer, name, found->token);
	else
		log_info("%s: refused: %s", peer, name);
}

static int
answer_authenticate(struct broker *m, struct request *q)
{
	struct frontend *f = m->frontend;
	struct control_authenticate *a = &q->authenticate;
	struct credential_finding found = { .how = "" };
	const struct listener *l;
	struct grant *g = NULL;
	struct peer peer;
	enum verdict v;

	l = find_listener(m, a->listener);
	if (a->kind > CREDENTIAL_BEARER || !listener_was(a->listener) ||
	    grant_find(f, a->conn) != NULL)
		return -EPERM;
	if (l != NULL && take_peer(l, q, &peer) < 0)
		return -EBADMSG;
	check_cert_verdict(m, a);
	if (l == NULL || (m->stopping && !m->leaving) ||
	    f->grants.count >= m->conf->limits.frontend.max_connections)
		v = VERDICT_BUSY; /* a reload closed it meanwhile */
	else
		v = credential_verify(m->conf, l, a, peer.known,
		    (int64_t)time(NULL), false, &found);
	if (v == VERDICT_RESUME &&
	    !session_token_has_any(m, found.who, &found.jwt.token)) {
		v = credential_expired(&found);
		found.who = NULL;
	}
	if (v == VERDICT_STRANGER && found.barred == NULL && *q->fd >= 0 &&
	    is_new_member(m->conf, *q->fd))
		v = VERDICT_MEMBER;
	explicit_bzero(a->credential, sizeof(a->credential));
	if (found.who != NULL && found.user != NULL)
		name_peer(a, l, found.user);
	credential_audit(m, a, l, v, &found, NULL);
	log_refused(a->peer, v, &found);
	if (found.who != NULL) {
		g = grant_new(f, a, &found);
		g->resume_only = v == VERDICT_RESUME;
	}
	send_verdict(f, a, v, g);
	return 0;
}

/* A refusal in TLS, before any request. What the front-end says of it is
 * recorded. */
static int
answer_refused(struct broker *m, struct request *q)
{
	const struct control_refused *r = &q->refused;

	if (!listener_was(r->listener))
		return -EPERM;
	credential_audit_refused(m, r, find_listener(m, r->listener));
	return 0;
}

/* Returns false if the answer follows when the runner is reaped. */
static bool
leave_session(struct broker *m, struct grant *g, bool channel_ended,
    enum channel_end *end)
{
	return g->watching
		   ? session_unwatch(m, g->session, g->conn, channel_ended, end)
		   : session_detach(m, g->session, channel_ended, end);
}

/* Whose OPEN waits until something is known of its user's account. */
static TAILQ_HEAD(, grant) opening = TAILQ_HEAD_INITIALIZER(opening);

/* Returns the descriptor that it waits with, or -1. */
static int
stop_opening(struct grant *g)
{
	if (g->channel_fd >= 0)
		TAILQ_REMOVE(&opening, g, link);
	return steal_fd(&g->channel_fd);
}

/* The connection leaves, and wants no session any more. */
static void
stop_waiting(struct broker *m, struct grant *g)
{
	int fd = g->wanted ? session_probe_take(g->wanted) : stop_opening(g);

	if (fd >= 0)
		close(fd);
	g->wanted = NULL;
}

static int
answer_close(struct broker *m, struct request *q)
{
	const struct control_close *c = &q->close;
	struct control_closed answer = { .conn = c->conn,
		.end = CHANNEL_END_DETACHED };
	struct grant *g = grant_find(m->frontend, c->conn);
	struct session *left = NULL;
	enum channel_end end;

	if (g == NULL || grant_is_closing(g))
		return -EPERM;
	stop_waiting(m, g);
	if (g->ended) {
		answer.end = g->end;
		memcpy(answer.reason, g->reason, sizeof(answer.reason));
	} else if (g->session != NULL) {
		if (!leave_session(m, g, c->channel_ended, &end))
			return 0;
		answer.end = end;
		left = g->watching ? NULL : g->session;
	}
	grant_free(m->frontend, g);
	frontend_send(m->frontend, BROKER_ANS_CLOSE, &answer, -1);
	if (left != NULL)
		requests_probed(m, left);
	return 0;
}

static int
answer_done(struct broker *m, struct request *q)
{
	int answer = 1;

	if (!m->stdio)
		answer = session_idle_confirmed(m);
	if (answer > 0)
		m->on->stop(m, EXIT_STOPPED);
	return answer < 0 ? answer : 0;
}

/* Decides whether the client may read the metrics, and records who may not: a
 * scrape in every minute says nothing. A listener without `operators` lets all
 * clients read them. */
static enum verdict
verify_operator(struct broker *m, struct control_authenticate *a,
    const struct listener *l, const uid_t *peer)
{
	struct credential_finding found = { .how = "" };
	enum verdict v;

	if (l->operators.count == 0)
		return VERDICT_GRANTED;
	check_cert_verdict(m, a);
	v = credential_verify(
	    m->conf, l, a, peer, (int64_t)time(NULL), true, &found);
	if (v != VERDICT_GRANTED)
		credential_audit(m, a, l, v, &found, "/metrics");
	log_refused(a->peer, v, &found);
	return v;
}

static int
answer_metrics(struct broker *m, struct request *q)
{
	struct control_authenticate *a = &q->authenticate;
	struct control_metrics answer = { .verdict = VERDICT_BUSY };
	const struct listener *l;
	struct peer peer;

	l = find_listener(m, a->listener);
	if (a->kind > CREDENTIAL_BEARER || !listener_was(a->listener) ||
	    (l != NULL && !l->keys.operate))
		return -EPERM;
	if (l != NULL && take_peer(l, q, &peer) < 0)
		return -EBADMSG;
	/* If there is none, a reload closed it meanwhile. */
	if (l != NULL)
		answer.verdict = (uint8_t)verify_operator(m, a, l, peer.known);
	explicit_bzero(a->credential, sizeof(a->credential));
	if (answer.verdict == VERDICT_GRANTED)
		stats_collect(m, &answer);
	answer.conn = a->conn;
	frontend_send(m->frontend, BROKER_ANS_METRICS, &answer, -1);
	return 0;
}

static int
answer_alive(struct broker *m, struct request *q)
{
	return frontend_is_alive(m->frontend);
}

/* A front-end that was taken over could end its helpers anyway. */
static int
answer_helper(struct broker *m, struct request *q)
{
	const struct control_helper *h = &q->helper;

	if (h->kind >= TLS_HELPERS)
		return -EBADMSG;
	helpers_kill(m->helpers, h->kind);
	return 0;
}

/* --- sessions ----------------------------------------------------------- */

static struct origin
origin_of(const struct grant *g)
{
	return (struct origin){ g->peer, g->proxy };
}

/* On success the runner answers the client; only failures are answered here.
 * The runner's end of the channel goes back with the answer, so that the
 * front-end reads the answer before it sees the channel end. */
static void
finish_request(struct broker *m, struct request *q,
    const struct control_session *answer, struct grant *g)
{
	struct origin from;

	if (answer->result == SESSION_OK) {
		if (!g->watching)
			session_token_set(
			    g->session, steal_pointer(&g->bearer));
		return;
	}
	from = origin_of(g);
	session_audit_refused(m, g->identity, &from, answer);
	/* The number of an answer is that of its request, and one. */
	frontend_send(m->frontend, q->type + 1, answer, steal_fd(q->fd));
}

static bool
is_ending(const struct broker *m, struct control_session *answer)
{
	const char *reason = drain_reason(m);

	if (reason == NULL)
		return false;
	answer->result = SESSION_LIMIT;
	snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
	return true;
}

/* Says which of several hosts this is, and why the operator ended the session,
 * if he did. */
static void
explain_unknown(const struct broker *m, const struct grant *g, const char *id,
    struct control_session *answer)
{
	const struct listener *l = find_listener(m, g->listener);
	const char *reason = session_ended_reason(g->identity, id);

	if (answer->result != SESSION_UNKNOWN)
		return;
	if (reason != NULL)
		snprintf(answer->reason, sizeof(answer->reason), "%s", reason);
	if (l != NULL && l->host_tag != NULL)
		snprintf(answer->host, sizeof(answer->host), "%s", l->host_tag);
}

static enum session_result
refuse_account(const struct identity *id, char *reason)
{
	if (log_permits(LOG_DECISION, id->name, reason))
		log_error(0, "no session for %s: %s", id->name, reason);
	return SESSION_FAILED;
}

static void
open_or_wait(struct broker *m, struct request *q, struct grant *g)
{
	struct control_session answer = { .conn = g->conn };
	int err;

	if (!is_ending(m, &answer)) {
		err = account_check(m, g->identity, answer.reason);
		if (err == -EINPROGRESS) {
			g->channel_fd = steal_fd(q->fd);
			TAILQ_INSERT_TAIL(&opening, g, link);
			return;
		}
		answer.result =
		    err < 0
			? refuse_account(g->identity, answer.reason)
			: session_open(m, g->identity, g->conn, origin_of(g),
			      &g->session, *q->fd, answer.reason);
	}
	finish_request(m, q, &answer, g);
}

static int
request_open(struct broker *m, struct request *q)
{
	const struct control_open *o = &q->open;
	struct grant *g = grant_take(m->frontend, o->conn, o->grant);

	if (g == NULL || g->resume_only)
		return -EPERM;
	open_or_wait(m, q, g);
	return 0;
}

static struct grant *
first_opening(const struct identity *id)
{
	struct grant *g;

	TAILQ_FOREACH (g, &opening, link)
		if (g->identity == id)
			break;
	return g;
}

/* Each grant is looked for anew: the front-end may end meanwhile, and its
 * grants with it. If the account is asked about again, they go on waiting. */
void
requests_account_known(struct broker *m, struct identity *id)
{
	struct grant *g;

	while (!id->account.asking && (g = first_opening(id)) != NULL) {
		_cleanup_close_ int fd = stop_opening(g);
		struct request q = { .type = BROKER_REQ_OPEN, .fd = &fd };

		open_or_wait(m, &q, g);
	}
}

/* A session that has not answered yet since this broker began may be the
 * token's, and its client is told to come again. */
static bool
is_barred(
    const struct broker *m, const struct grant *g, const struct session *s)
{
	return g->resume_only && s != NULL &&
	       !session_token_may_resume(m, s, g->identity, g->bearer);
}

/* A connection whose session was taken over. The runner tells its client. */
static void
lose_session(struct broker *m, uint32_t conn)
{
	struct grant *g = grant_find(m->frontend, conn);

	if (g == NULL || g->session == NULL || g->watching)
		return;
	g->session = NULL;
	g->ended = true;
	g->end = CHANNEL_END_REPLACED;
}

/* Returns the number of the connection that has the session, or 0. The last one
 * of a detached session may have been a former front-end's: this one gives the
 * same numbers again. */
static uint32_t
conn_of(const struct session *s)
{
	return s != NULL && s->state == SESSION_STATE_ATTACHED
		   ? s->attachment.conn
		   : 0;
}

static enum session_result
resume(struct broker *m, const struct request *q, struct grant *g)
{
	const struct control_resume *r = &q->resume;
	const struct session *s = session_of_id(m->sessions, r->session_id);
	uint32_t before = conn_of(s);
	enum session_result result;

	if (is_barred(m, g, s))
		return SESSION_UNKNOWN;
	result = session_resume(m, g->identity, r->session_id, g->conn,
	    origin_of(g), r->take_over, &g->session, *q->fd);
	if (result == SESSION_OK)
		lose_session(m, before);
	return result;
}

/* Returns false if another one waits for it already. */
static bool
wait_for_session(struct broker *m, struct request *q, struct grant *g)
{
	struct session *s = session_of_id(m->sessions, q->resume.session_id);

	if (!session_probe(m, s, g->conn, q->fd))
		return false;
	g->wanted = s;
	return true;
}

/* Answers RESUME and WATCH, which name an existing session. */
static int
request_existing(struct broker *m, struct request *q)
{
	bool watch = q->type == BROKER_REQ_WATCH;
	const struct control_resume *r = &q->resume;
	struct control_session answer = { .conn = r->conn };
	struct grant *g = grant_take(m->frontend, r->conn, r->grant);

	if (g == NULL || (watch && g->resume_only))
		return -EPERM;
	if (watch)
		answer.result = session_watch(m, g->identity, r->session_id,
		    g->conn, origin_of(g), &g->session, *q->fd, answer.reason);
	else
		answer.result = resume(m, q, g);
	if (!watch && answer.result == SESSION_ATTACHED &&
	    wait_for_session(m, q, g))
		return 0;
	explain_unknown(m, g, r->session_id, &answer);
	g->watching = watch && answer.result == SESSION_OK;
	finish_request(m, q, &answer, g);
	return 0;
}

/* It may have been about an earlier probe, or the session has ended. */
static int
answer_probed(struct broker *m, struct request *q)
{
	const struct control_probed *p = &q->probed;
	const struct grant *g = grant_find(m->frontend, p->conn);

	if (p->result > PROBE_HANDED_OVER)
		return -EBADMSG;
	if (g == NULL || g->session == NULL || p->number == 0 ||
	    g->session->probe.number != p->number)
		return 0;
	if (p->result == PROBE_HANDED_OVER)
		session_probe_runner(m, g->session);
	else
		requests_probed(m, g->session);
	return 0;
}

void
requests_probed(struct broker *m, struct session *s)
{
	struct grant *g = grant_find(m->frontend, s->probe.conn);
	_cleanup_close_ int fd = session_probe_take(s);
	struct request q = { .type = BROKER_REQ_RESUME, .fd = &fd };
	struct control_session answer = { .conn = s->probe.conn };

	if (fd < 0 || g == NULL)
		return;
	g->wanted = NULL;
	memcpy(q.resume.session_id, s->id, sizeof(s->id));
	answer.result = resume(m, &q, g);
	explain_unknown(m, g, s->id, &answer);
	finish_request(m, &q, &answer, g);
}

/* --- requests ----------------------------------------------------------- */

/* Everything that the front-end may ask: the request, the states in which it
 * may, and the function that answers. */
static const struct request_row {
	enum control_type type;
	unsigned when;
	enum { NO_FD, MAY_HAVE_FD, CHANNEL_FD } fd;
	int (*answer)(struct broker *m, struct request *q);
} requests[] = {
	{ BROKER_REQ_READY, FRONTEND_CONFINING, NO_FD, answer_ready },
	{ BROKER_REQ_AUTHENTICATE, FRONTEND_SERVING, MAY_HAVE_FD,
	    answer_authenticate },
	{ BROKER_REQ_REFUSED, FRONTEND_SERVING, NO_FD, answer_refused },
	{ BROKER_REQ_OPEN, FRONTEND_SERVING, CHANNEL_FD, request_open },
	{ BROKER_REQ_RESUME, FRONTEND_SERVING, CHANNEL_FD, request_existing },
	{ BROKER_REQ_WATCH, FRONTEND_SERVING, CHANNEL_FD, request_existing },
	{ BROKER_REQ_CLOSE, FRONTEND_SERVING, NO_FD, answer_close },
	{ BROKER_REQ_METRICS, FRONTEND_SERVING, MAY_HAVE_FD, answer_metrics },
	{ BROKER_REQ_DONE, FRONTEND_SERVING, NO_FD, answer_done },
	{ BROKER_REQ_ALIVE, FRONTEND_SERVING, NO_FD, answer_alive },
	{ BROKER_REQ_HELPER, FRONTEND_SERVING, NO_FD, answer_helper },
	{ BROKER_REQ_PROBED, FRONTEND_SERVING, NO_FD, answer_probed },
};

/* Only a stream socket is given to a runner as its session channel. */
static bool
is_channel(int fd)
{
	int domain = 0, type = 0;
	socklen_t n = sizeof(int), m = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) == 0 &&
	       domain == AF_UNIX && type == SOCK_STREAM;
}

static bool
fd_fits(unsigned wanted, int fd)
{
	return wanted == CHANNEL_FD ? fd >= 0 && is_channel(fd)
				    : fd < 0 || wanted == MAY_HAVE_FD;
}

int
request_take(struct broker *m, const uint8_t *packet, size_t len, int *fd)
{
	struct request q = { .type = control_peek(packet, len), .fd = fd };

	for (size_t i = 0; i < nitems(requests); i++) {
		if (requests[i].type != q.type)
			continue;
		if (!(requests[i].when & m->frontend->state))
			return -EACCES;
		if (!fd_fits(requests[i].fd, *fd) ||
		    control_get(packet, len, q.type, &q.authenticate) < 0)
			return -EBADMSG;
		return requests[i].answer(m, &q);
	}
	return -ENOSYS;
}

const char *
request_violation(int err)
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

/* --- the end ------------------------------------------------------------ */

/* The front-end's connections are gone. Their sessions wait to be resumed. */
void
requests_forget(struct broker *m)
{
	struct frontend *f = m->frontend;
	struct table_node *node;

	while ((node = table_next(&f->grants, NULL)) != NULL) {
		struct grant *g = TABLE_OBJECT(node, struct grant, node);
		enum channel_end end;

		stop_waiting(m, g);
		if (g->session != NULL && g->watching)
			session_forget_watcher(g->session, g->conn);
		else if (g->session != NULL)
			/* The grant may have been closed already while its
			 * session ended. */
			session_detach(m, g->session, false, &end);
		grant_free(f, g);
	}
}

void
requests_session_adopted(struct broker *m, struct session *s)
{
	if (s->bearer == NULL || s->state != SESSION_STATE_DETACHED ||
	    credential_stands(
		m->conf, s->identity, s->bearer, (int64_t)time(NULL)))
		return;
	session_end_reason(s, "its token has expired, and the key, the issuer "
			      "or the subject of it is no longer accepted");
	log_info(
	    "session %.*s: %s, ending it", ID_LOG_CHARS, s->id, s->end_reason);
	session_ended_note(s);
	session_terminate(m, s);
}

static enum channel_end
end_of(const struct session *s)
{
	return s->asked_to_end	   ? CHANNEL_END_ASKED
	       : s->runner.crashed ? CHANNEL_END_CRASHED
				   : CHANNEL_END_RUNNER;
}

static void
tell_ended(
    struct frontend *f, struct grant *g, bool close_asked, const char *reason)
{
	struct control_closed closed = { .conn = g->conn,
		.end = end_of(g->session) };
	struct control_runner_exited exited = { .conn = g->conn };

	snprintf(closed.reason, sizeof(closed.reason), "%s", reason);
	snprintf(exited.reason, sizeof(exited.reason), "%s", reason);
	if (close_asked) {
		grant_free(f, g);
		frontend_send(f, BROKER_ANS_CLOSE, &closed, -1);
		return;
	}
	g->session = NULL;
	g->ended = true;
	g->end = closed.end;
	snprintf(g->reason, sizeof(g->reason), "%s", reason);
	frontend_send(f, BROKER_EV_RUNNER_EXITED, &exited, -1);
}

void
requests_session_ended(struct broker *m, struct session *s, const char *reason)
{
	struct frontend *f = m->frontend;
	struct grant *g = grant_find(f, s->attachment.conn);
	struct watcher *w;

	if (g != NULL && g->session == s && !g->watching)
		tell_ended(f, g, s->attachment.close_asked, reason);
	TAILQ_FOREACH (w, &s->watchers.all, link) {
		g = grant_find(f, w->conn);
		if (g != NULL && g->session == s)
			tell_ended(f, g, w->close_asked, reason);
	}
}
