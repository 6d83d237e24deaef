/* SPDX-License-Identifier: ISC */
/*
 * Requests of the front-end to the broker. The answers are handled in
 * broker_client.c.
 */
#include "broker_request.h"

#include <event2/event.h>

#include "base64.h"
#include "connection.h"
#include "frontend.h"
#include "json.h"
#include "loop.h"
#include "queue.h"
#include "seqpacket.h"
#include "tls_helper.h"

/*
 * A message that waits because the channel is full: the broker hangs or is
 * busy. The front-end does not wait for it. Clients with a session are served,
 * and health checks report that the broker does not answer.
 */
struct waiting {
	STAILQ_ENTRY(waiting) link; /* the queue below */
	struct buf message;
	int fd; /* owned, or -1 */
	enum control_type type;
	uint32_t conn; /* told if the message cannot be sent */
};

/* The most credentials that may wait; further clients are told to come again.
 * Other messages need no limit: they belong to existing connections, each of
 * which makes few. */
#define CREDENTIALS_WAITING_MAX 256

static STAILQ_HEAD(, waiting) waiting = STAILQ_HEAD_INITIALIZER(waiting);
static unsigned credentials_waiting;
static struct event writable;
static void (*tell_unsent)(enum control_type type, uint32_t conn);

void
broker_on_unsent(void (*tell)(enum control_type type, uint32_t conn))
{
	tell_unsent = tell;
}

/* Sends a message now. If the broker has closed the channel, that is no error
 * here: the end of file is read next, and clients are then closed properly. */
static int
send_now(const struct buf *b, int fd)
{
	int err = seqpacket_send(CONTROL_FD, b->data, b->len, &fd, fd >= 0);

	/* ETOOMANYREFS: the client's socket holds sockets that hold sockets,
	 * too deep to be sent (unix(7)). */
	if (err == -ETOOMANYREFS || err == -EAGAIN)
		return err;
	if (err < 0 && err != -EPIPE && err != -ECONNRESET)
		log_fatal_errno(err, "control channel");
	return 0;
}

static bool
has_credential(enum control_type type)
{
	return type == BROKER_REQ_AUTHENTICATE || type == BROKER_REQ_METRICS;
}

static void
waiting_free(struct waiting *w)
{
	STAILQ_REMOVE_HEAD(&waiting, link);
	credentials_waiting -= has_credential(w->type);
	if (w->fd >= 0)
		close(w->fd);
	explicit_bzero(w->message.data, w->message.len);
	buf_clear(&w->message);
	free(w);
}

static void
writable_cb(evutil_socket_t fd, short what, void *arg)
{
	struct waiting *w;

	while ((w = STAILQ_FIRST(&waiting)) != NULL) {
		int err = send_now(&w->message, w->fd);

		if (err == -EAGAIN)
			return;
		if (err < 0 && tell_unsent != NULL)
			tell_unsent(w->type, w->conn);
		waiting_free(w);
	}
	event_del(&writable);
}

/* Queues the message and takes its buffer over; fd is duplicated. Returns 0 or
 * -errno. */
static int
put_off(struct buf *b, enum control_type type, uint32_t conn, int fd)
{
	struct waiting *w;
	int copy = -1;

	if (has_credential(type) &&
	    credentials_waiting == CREDENTIALS_WAITING_MAX)
		return -EBUSY;
	if (fd >= 0 && (copy = fcntl(fd, F_DUPFD_CLOEXEC, 4)) < 0)
		return -errno;
	if (STAILQ_EMPTY(&waiting)) {
		event_assign(&writable, base, CONTROL_FD, EV_WRITE | EV_PERSIST,
		    writable_cb, NULL);
		loop_add(&writable, NULL);
	}
	w = xcalloc(1, sizeof(*w));
	w->message = *b;
	buf_init(b, CONTROL_MESSAGE_MAX);
	w->fd = copy;
	w->type = type;
	w->conn = conn;
	STAILQ_INSERT_TAIL(&waiting, w, link);
	credentials_waiting += has_credential(type);
	return 0;
}

/* Sends a request after those that wait, or queues it. Returns 0 or -errno.
 * -ETOOMANYREFS, -EBUSY and -EMFILE are possible only for requests with a
 * descriptor or a credential. */
static int
request_with(enum control_type type, const void *payload, uint32_t conn, int fd)
{
	int err = -EAGAIN;
	struct buf b;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	if (STAILQ_EMPTY(&waiting))
		err = send_now(&b, fd);
	if (err == -EAGAIN)
		err = put_off(&b, type, conn, fd);
	buf_clear(&b);
	return err;
}

void
broker_tell(enum control_type type, const void *payload)
{
	request_with(type, payload, 0, -1);
}

void
broker_helper_hangs(enum tls_helper who)
{
	const struct control_helper h = { .kind = (uint8_t)who };

	broker_tell(BROKER_REQ_HELPER, &h);
}

static void
put_proxy(const struct connection *c, char proxy[CONTROL_PEER_MAX])
{
	snprintf(proxy, CONTROL_PEER_MAX, "%s", c->proxy ? c->proxy : "");
}

int
broker_authenticate(const struct connection *c, enum control_type type,
    enum credential_kind kind, struct slice credential)
{
	struct control_authenticate a = {
		.conn = c->number,
		.listener = c->listener.id,
		.kind = kind,
	};
	const struct control_cert_verdict *cert_verdict =
	    c->tls ? tls_client_verdict(c->tls) : NULL;
	int err;

	memcpy(a.peer, c->peer, sizeof(a.peer));
	put_proxy(c, a.proxy);
	if (kind == CREDENTIAL_BEARER)
		token_header_read(credential, &a.token_header);
	if (credential.len < sizeof(a.credential))
		memcpy(a.credential, credential.ptr, credential.len);
	a.has_certificate = cert_verdict != NULL;
	if (cert_verdict != NULL)
		a.cert_verdict = *cert_verdict;
	err = request_with(type, &a, c->number,
	    c->listener.kind == LISTENER_UNIX || c->listener.keys.peer_user
		? c->in_fd
		: -1);
	explicit_bzero(&a, sizeof(a));
	return err;
}

void
broker_refused(const struct connection *c, const char *why)
{
	struct control_refused r = { .listener = c->listener.id };

	memcpy(r.peer, c->peer, sizeof(r.peer));
	put_proxy(c, r.proxy);
	snprintf(r.reason, sizeof(r.reason), "%s", why);
	broker_tell(BROKER_REQ_REFUSED, &r);
}

int
broker_ask_session(const struct connection *c, int channel_fd)
{
	struct control_open o = { .conn = c->number };
	struct control_resume r = { .conn = c->number,
		.take_over = c->start.take_over };

	memcpy(o.grant, c->grant, sizeof(o.grant));
	memcpy(r.grant, c->grant, sizeof(r.grant));
	memcpy(r.session_id, c->start.wanted, sizeof(r.session_id));
	if (c->start.request == BROKER_REQ_OPEN)
		return request_with(BROKER_REQ_OPEN, &o, c->number, channel_fd);
	return request_with(c->start.request, &r, c->number, channel_fd);
}

void
broker_close(const struct connection *c)
{
	struct control_close close = { .conn = c->number,
		.channel_ended = c->channel.fault == CHANNEL_ENDED };

	broker_tell(BROKER_REQ_CLOSE, &close);
}

void
broker_probed(
    const struct connection *c, uint32_t number, enum probe_result result)
{
	const struct control_probed p = {
		.conn = c->number, .number = number, .result = (uint8_t)result
	};

	broker_tell(BROKER_REQ_PROBED, &p);
}

/* --- whether execd works ------------------------------------------------- */

/* The broker sends a PING every five seconds. */
#define BROKER_SILENT_MS 8000
#define HELPERS_ASKED_MS 3000

static int64_t heard_ms;
static uint8_t broker_ill;

void
health_heard(void)
{
	heard_ms = now_ms();
}

void
health_broker(uint8_t ill)
{
	broker_ill = ill;
}

int64_t
health_silent_ms(void)
{
	return now_ms() - heard_ms;
}

static void
ask_helpers_cb(evutil_socket_t fd, short what, void *arg)
{
	helper_ask_all();
}

void
health_watch(void)
{
	static struct event timer;
	const struct timeval every = timeval_of_ms(HELPERS_ASKED_MS);

	health_heard();
	event_assign(&timer, base, -1, EV_PERSIST, ask_helpers_cb, NULL);
	loop_add(&timer, &every);
}

const char *
health_reason(void)
{
	if (frontend_drain == DRAIN_STOPPING)
		return "stopping\n";
	if (frontend_drain == DRAIN_OPERATOR)
		return "drained by the operator\n";
	/* This program may have been stopped itself. Messages that the broker
	 * sent meanwhile are read in this turn, before the next request. */
	if (health_silent_ms() > BROKER_SILENT_MS)
		return "the broker does not answer\n";
	if (broker_ill == BROKER_ILL_AUDIT)
		return "the audit log cannot be written\n";
	if (broker_ill == BROKER_ILL_ROOT)
		return "root's execd does not answer\n";
	return helper_reason();
}

/* --- the header of a signed token ---------------------------------------- */

static void
copy_member(
    const struct json_value *header, const char *name, char *text, size_t size)
{
	const struct json_value *v = json_get(header, name);

	if (v != NULL && v->type == JSON_STRING && v->text.len < size &&
	    memchr(v->text.ptr, '\0', v->text.len) == NULL)
		memcpy(text, v->text.ptr, v->text.len);
}

void
token_header_read(struct slice token, struct control_token_header *header)
{
	const char *dot = memchr(token.ptr, '.', token.len);
	_cleanup_free_ uint8_t *bytes = NULL;
	struct json_doc doc;
	ssize_t n;

	*header = (struct control_token_header){ 0 };
	if (dot == NULL)
		return;
	n = base64_decode_url(token.ptr, (size_t)(dot - token.ptr), &bytes);
	if (n < 0)
		return;
	if (json_parse(&doc, (const char *)bytes, (size_t)n) == 0) {
		copy_member(doc.root, "alg", header->alg, sizeof(header->alg));
		copy_member(doc.root, "kid", header->kid, sizeof(header->kid));
	}
	json_clear(&doc);
}
