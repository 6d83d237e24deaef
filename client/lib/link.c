/* SPDX-License-Identifier: ISC */
/*
 * The life of the connection: it is opened, used, lost, and opened again until
 * the resume timeout ends. The first connection is tried again, too, within the
 * connect timeout, where nothing has started and the server is not there now.
 * The program that answers is not trusted.
 *
 *	NONE -> CONNECT -> TLS -> UPGRADE -> INITIALIZE -> READY
 *	  ^        |        |       |            |           |
 *	  +- WAIT <+--------+-------+------------+-----------+
 */
#include "base.h"
#include "client.h"

#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS   1000

/* How long a proxy may say that it has no host for a session that it should
 * know the host of. Hosts whose execd is restarted are back in less. */
#define GONE_MS 1500

/* What a server answers to initialize that is about to end. Behind its address
 * there will be another one. */
#define SHUTTING_DOWN "the server is shutting down"

/* What a drained server answers. Its operator may undo it, and a proxy in front
 * of several servers will soon send clients to another one. */
#define DRAINED                                                                \
	"the server takes no new sessions: it is drained by its operator"

#define ATTACHED_RETRY_MS 100 /* the server still sees the old connection */

/* A server cannot make its client try for longer. */
#define DETACHED_TTL_MAX_MS (24 * 3600 * 1000)

/* Takes the steps that need no event. */
static void advance(struct execd_client *c);

void
link_close(struct execd_client *c)
{
	stream_close(&c->stream);
	wire_reset(c);
	c->link = LINK_NONE;
	c->retry_ms = 0;
}

/* --- When it fails ------------------------------------------------------ */

/* Tells whether another attempt is useless. */
static bool
is_final(const struct execd_client *c, enum execd_failure failure)
{
	if (c->endpoint.kind == ENDPOINT_STDIO)
		return true;
	if (c->state == EXECD_CONNECTING)
		return !c->may_pass;
	return failure != EXECD_FAILURE_UNREACHABLE &&
	       failure != EXECD_FAILURE_LOST;
}

static void
give_up(struct execd_client *c, enum execd_failure failure)
{
	_cleanup_free_ char *cause = xstrdup(c->error);

	if (c->state != EXECD_CONNECTING) {
		client_set_error(c,
		    "the connection was lost and could not be resumed within "
		    "%u s: %s",
		    execd_client_resume_ms(c) / 1000, cause);
		failure = EXECD_FAILURE_LOST;
	}
	client_over(c, failure);
}

/* Returns when no further attempt begins. */
static int64_t
last_attempt_ms(const struct execd_client *c)
{
	return c->state == EXECD_CONNECTING
		   ? c->first_ms + c->options.connect_timeout_ms
		   : c->lost_ms + execd_client_resume_ms(c);
}

/* Doubles with each attempt. */
static int64_t
retry_delay_ms(const struct execd_client *c)
{
	int64_t delay = RETRY_FIRST_MS;

	for (unsigned int i = 1; i < c->attempts && delay < RETRY_MAX_MS; i++)
		delay *= 2;
	return delay < RETRY_MAX_MS ? delay : RETRY_MAX_MS;
}

/* Notes whether the proxy said again that it has no host for the session.
 * Returns true when it has said so for long enough. */
static bool
host_is_gone(struct execd_client *c, int64_t now, int64_t *next)
{
	if (!c->said_gone || c->state == EXECD_CONNECTING) {
		c->gone_ms = 0;
		return false;
	}
	if (c->gone_ms == 0)
		c->gone_ms = now;
	if (*next > c->gone_ms + GONE_MS)
		*next = c->gone_ms + GONE_MS;
	return now >= c->gone_ms + GONE_MS;
}

static void
give_up_host(struct execd_client *c)
{
	_cleanup_free_ char *cause = xstrdup(c->error);

	client_set_error(c,
	    "the host of session %s is gone, says the proxy in front of it: %s",
	    c->session_id, cause);
	client_over(c, EXECD_FAILURE_SESSION);
}

/* Ends this attempt. The caller has set the error. */
void
link_failed(struct execd_client *c, enum execd_failure failure)
{
	int64_t now = now_ms(), next = now + retry_delay_ms(c);
	bool first = c->state == EXECD_CONNECTING;

	link_close(c);
	if (host_is_gone(c, now, &next)) {
		give_up_host(c);
		return;
	}
	if (is_final(c, failure)) {
		client_over(c, failure);
		return;
	}
	/* Another first attempt would have no time to be answered. */
	if ((first ? next : now) >= last_attempt_ms(c)) {
		give_up(c, failure);
		return;
	}
	c->link = LINK_WAIT;
	c->retry_ms = next;
	if (first && c->options.on_state != NULL)
		c->options.on_state(c->options.arg, EXECD_CONNECTING);
}

/* Handles the loss of the connection. The caller has set the error. */
static void
lose(struct execd_client *c)
{
	bool was_ready = c->link == LINK_READY;

	if (!was_ready) {
		link_failed(c, c->expired ? EXECD_FAILURE_AUTH
					  : EXECD_FAILURE_UNREACHABLE);
		return;
	}
	link_close(c);
	c->lost_ms = now_ms();
	c->gone_ms = 0;
	c->attempts = 0;
	calls_lost(c);
	if (c->state == EXECD_OVER)
		return;
	if (link_lease_is_over(c)) {
		link_lease_failed(c);
		return;
	}
	if (c->endpoint.kind == ENDPOINT_STDIO || c->ended) {
		client_over(c, EXECD_FAILURE_LOST);
		return;
	}
	if (c->taken_by != NULL) {
		client_set_error(c,
		    "the session was taken over by another client, %s",
		    c->taken_by);
		client_over(c, EXECD_FAILURE_TAKEN);
		return;
	}
	if (c->session_over) {
		client_over(c, EXECD_FAILURE_SESSION);
		return;
	}
	client_set_state(c, EXECD_RESUMING);
	c->link = LINK_WAIT;
	c->retry_ms = c->lost_ms;
}

/* --- Connecting --------------------------------------------------------- */

static void
next_address(struct execd_client *c, int err)
{
	client_set_error(c, "%s: connect: %s", c->options.url, strerror(-err));
	stream_close(&c->stream);
	c->may_pass |= err == -ECONNREFUSED;
	if (++c->address < c->stream_config.naddresses)
		c->link = LINK_NONE; /* advance() tries the next address */
	else
		link_failed(c, EXECD_FAILURE_UNREACHABLE);
}

static void
try_address(struct execd_client *c)
{
	int err;

	wire_reset(c);
	err = stream_connect(
	    &c->stream, &c->endpoint, &c->stream_config, c->address);
	c->link = LINK_CONNECT;
	if (err == 0)
		c->link =
		    c->endpoint.kind == ENDPOINT_WSS ? LINK_TLS : LINK_UPGRADE;
	else if (err != -EINPROGRESS)
		next_address(c, err);
}

void
link_begin(struct execd_client *c)
{
	char *error = NULL;

	if (c->endpoint.kind == ENDPOINT_ASK) {
		link_ask(c);
		return;
	}
	if (c->stream_config.naddresses == 0 &&
	    stream_resolve(&c->stream_config, &c->endpoint,
		c->options.connect_timeout_ms, &error) < 0) {
		client_set_error(c, "%s: %s", c->options.url, error);
		free(error);
		client_over(c, EXECD_FAILURE_UNREACHABLE);
		return;
	}
	c->attempts++;
	c->address = 0;
	c->retry_ms = 0;
	c->may_pass = c->said_gone = c->expired = false;
	c->link = LINK_NONE;
	c->deadline_ms =
	    (c->state == EXECD_CONNECTING && c->attempts > 1 ? c->first_ms
							     : now_ms()) +
	    c->options.connect_timeout_ms;
	advance(c);
}

static void
connected(struct execd_client *c)
{
	int err = stream_connected(&c->stream);

	if (err < 0) {
		next_address(c, err);
		return;
	}
	c->link = c->endpoint.kind == ENDPOINT_WSS ? LINK_TLS : LINK_UPGRADE;
}

/* The key that the options expect decides in place of authorities. If they
 * expect "", this is execd_server_key(), which only wants to see it. */
static int
judge_key(struct execd_client *c, char **error)
{
	const char *expected = c->options.server_key;
	int err = stream_server_key(&c->stream, c->server_key);

	if (err < 0)
		*error = xstrdup("the server has no certificate");
	else if (expected[0] == '\0')
		c->verdict =
		    stream_verdict(&c->stream, c->endpoint.host, error);
	else if (strcmp(c->server_key, expected) != 0)
		*error = xasprintf("the server's key is refused: it is %s, and "
				   "%s is expected",
		    c->server_key, expected);
	else
		return 0;
	return err < 0 ? err : -EACCES;
}

static void
shake_hands(struct execd_client *c)
{
	char *error = NULL;
	int err = stream_handshake(
	    &c->stream, &c->endpoint, &c->stream_config, &error);

	if (err == -EAGAIN)
		return;
	if (err == 0 && c->stream_config.any_key)
		err = judge_key(c, &error);
	if (err == 0) {
		c->link = LINK_UPGRADE;
		return;
	}
	client_set_error(c, "%s: %s", c->options.url, error ? error : "");
	free(error);
	link_failed(c, err == -EACCES ? EXECD_FAILURE_CERTIFICATE
				      : EXECD_FAILURE_UNREACHABLE);
}

static void
send_initialize(struct execd_client *c)
{
	struct json_text t;

	calls_begin(&t);
	json_key_u64(&t.w, "id", 0);
	json_key_cstring(&t.w, "method", "initialize");
	json_key_begin(&t.w, "params", '{');
	json_key_cstring(&t.w, "clientName", c->options.client_name);
	if (c->session_id != NULL)
		json_key_cstring(&t.w,
		    c->options.watch ? "watchSessionId" : "resumeSessionId",
		    c->session_id);
	/* Two that take it from each other would never end. */
	if (c->options.take_over && c->state == EXECD_CONNECTING)
		json_key_bool(&t.w, "takeOver", true);
	json_end(&t.w, '}');
	json_end(&t.w, '}');
	wire_send(c, (const char *)t.buf.data, t.buf.len);
	buf_clear(&t.buf);
	c->retry_ms = 0;
	c->link = LINK_INITIALIZE;
}

static void
begin_initialize(struct execd_client *c)
{
	c->deadline_ms = now_ms() + c->options.initialize_timeout_ms;
	send_initialize(c);
}

/* --- The upgrade -------------------------------------------------------- */

static void
begin_upgrade(struct execd_client *c)
{
	if (c->endpoint.kind == ENDPOINT_STDIO)
		begin_initialize(c);
	else if (c->accept[0] == '\0' &&
		 upgrade_request(&c->out, &c->endpoint, c->options.token,
		     c->session_id != NULL ? execd_client_cookie(c) : NULL,
		     c->accept) < 0) {
		client_set_error(c, "no random numbers");
		link_failed(c, EXECD_FAILURE_UNREACHABLE);
	}
}

/* Tells whether a proxy knows which host has the session: by its cookie, or by
 * the query of the URL. */
static bool
is_pinned(const struct execd_client *c)
{
	return c->session_id != NULL &&
	       (c->cookie[0] != '\0' || strchr(c->endpoint.path, '?') != NULL);
}

/* Handles the HTTP statuses of servers and of the proxies in front of them.
 * `later`: the answer says when to come again, as those of execd do. */
static void
upgrade_refused(struct execd_client *c, int status, bool later)
{
	const char *body = (const char *)c->in.data;
	size_t n = c->in.len > 200 ? 200 : c->in.len;
	enum execd_failure failure = EXECD_FAILURE_PROTOCOL;
	const char *text = "this is not an exec-server";

	if (status == 401 || status == 403 || status == 407) {
		failure = EXECD_FAILURE_AUTH;
		text = c->options.token
			   ? "the server does not accept the token"
			   : "the server requires a token, and none was given";
	} else if (status == 429 || status >= 500) {
		failure = EXECD_FAILURE_UNREACHABLE;
		text = "the server is not available";
		c->may_pass = status == 429 || status == 503;
		c->said_gone = status == 503 && is_pinned(c) && !later;
	}
	while (n > 0 && (unsigned char)body[n - 1] <= ' ')
		n--;
	client_set_error(c, "%s: %s (HTTP status %d%s%.*s)", c->options.url,
	    text, status, n > 0 ? ": " : "", (int)n, n > 0 ? body : "");
	link_failed(c, failure);
}

/* Reads what has arrived of a refusal's body, for the error message. */
static void
refused_with_body(struct execd_client *c, int status, size_t head)
{
	char more[256];
	ssize_t n = stream_read(&c->stream, more, sizeof(more));
	bool later =
	    upgrade_has_header((char *)c->in.data, head, "Retry-After");

	buf_consume(&c->in, head);
	if (n > 0)
		buf_put(&c->in, more, (size_t)n);
	upgrade_refused(c, status, later);
}

static void
take_upgrade(struct execd_client *c)
{
	const char *why;
	int status;
	ssize_t n = upgrade_answer(
	    (const char *)c->in.data, c->in.len, c->accept, &status, &why);

	if (n == 0)
		return;
	if (n < 0) {
		client_set_error(c, "%s: %s", c->options.url, why);
		link_failed(c, EXECD_FAILURE_PROTOCOL);
	} else if (status != 101) {
		refused_with_body(c, status, (size_t)n);
	} else if ((size_t)n < c->in.len) {
		/* A server must not send anything before initialize. */
		client_set_error(c, "%s: unexpected bytes after the upgrade",
		    c->options.url);
		link_failed(c, EXECD_FAILURE_PROTOCOL);
	} else {
		if (!upgrade_cookie((char *)c->in.data, c->in.len, c->offered))
			memcpy(c->offered, c->cookie, sizeof(c->offered));
		c->in.len = 0;
		begin_initialize(c);
	}
}

static void
read_upgrade(struct execd_client *c)
{
	char data[1024];
	ssize_t n = stream_read(&c->stream, data, sizeof(data));

	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		client_set_error(c,
		    "%s: the connection was closed instead of upgraded%s%s%s",
		    c->options.url, n < 0 ? ": " : "",
		    n < 0 ? stream_strerror((int)n) : "",
		    c->stream.tls == NULL
			? " (if there is TLS, its address begins with wss://)"
			: "");
		link_failed(c, n == -EKEYREVOKED || n == -EKEYEXPIRED ||
				       n == -EKEYREJECTED || n == -ENOKEY
				   ? EXECD_FAILURE_AUTH
				   : EXECD_FAILURE_UNREACHABLE);
		return;
	}
	buf_put(&c->in, data, (size_t)n);
	if (c->in.len > CLIENT_UPGRADE_MAX) {
		client_set_error(c, "%s: the headers are longer than %u bytes",
		    c->options.url, CLIENT_UPGRADE_MAX);
		link_failed(c, EXECD_FAILURE_PROTOCOL);
		return;
	}
	take_upgrade(c);
}

/* --- initialize --------------------------------------------------------- */

/* Tells whether to ask again for a session that another connection has. */
static bool
may_become_free(const struct execd_client *c)
{
	return c->state != EXECD_CONNECTING ||
	       now_ms() < c->deadline_ms - c->options.initialize_timeout_ms +
			      c->options.attached_timeout_ms;
}

static void
initialize_refused(struct execd_client *c, const struct json_value *error)
{
	const struct json_value *message = json_get(error, "message");
	int64_t code = execd_json_number(json_get(error, "code"), 0);

	client_set_error(c, "%s: initialize: %.*s", c->options.url,
	    (int)message->text.len, message->text.ptr);
	c->may_pass = slice_equal(message->text, SLICE(SHUTTING_DOWN)) ||
		      slice_equal(message->text, SLICE(DRAINED));
	if (code == RPC_ATTACHED && may_become_free(c))
		c->retry_ms = now_ms() + ATTACHED_RETRY_MS;
	else if (code == RPC_ATTACHED)
		link_failed(c, EXECD_FAILURE_ATTACHED);
	else
		link_failed(c, c->session_id ? EXECD_FAILURE_SESSION
					     : EXECD_FAILURE_REFUSED);
}

static void
keep_info(struct execd_client *c, const char *text, size_t len)
{
	if (c->has_info)
		json_clear(&c->info);
	free(c->info_text);
	c->info_text = xstrndup(text, len);
	c->has_info = true;
	/* The text was parsed before, so this cannot fail. */
	json_parse(&c->info, c->info_text, len);
}

static unsigned int
detached_ttl(const struct json_value *result)
{
	int64_t ms = execd_json_number(json_get(result, "detachedTtl"), 0);

	if (ms > DETACHED_TTL_MAX_MS)
		return DETACHED_TTL_MAX_MS;
	return ms > 0 ? (unsigned int)ms : 0;
}

static const char *
check_session(const struct execd_client *c, const struct json_value *id)
{
	/* A server that ignores watchSessionId has made a new session. */
	if (c->options.watch && !c->watching)
		return "this server does not let clients watch sessions (it "
		       "does not announce sessionWatch)";
	if (id == NULL || id->type != JSON_STRING || id->text.len == 0 ||
	    memchr(id->text.ptr, '\0', id->text.len) != NULL)
		return "the answer to initialize names no session: this is "
		       "not an exec-server";
	if (c->session_id != NULL && !json_is(id, c->session_id))
		return "the server resumed another session";
	return NULL;
}

void
link_initialized(struct execd_client *c, const struct rpc_message *m,
    const char *text, size_t len)
{
	static const char initialized[] = "{\"method\":\"initialized\"}";
	const struct json_value *error = json_get(m->doc.root, "error");
	const struct json_value *result = json_get(m->doc.root, "result");
	const struct json_value *id = json_get(result, "sessionId");
	const char *why;

	if (result == NULL) {
		initialize_refused(c, error);
		return;
	}
	c->watching = execd_json_bool(json_get(result, "watching"), false);
	why = check_session(c, id);
	if (why != NULL) {
		client_set_error(c, "%s: %s", c->options.url, why);
		link_failed(c, EXECD_FAILURE_PROTOCOL);
		return;
	}
	if (c->session_id == NULL)
		c->session_id = xstrndup(id->text.ptr, id->text.len);
	c->detached_ttl_ms = detached_ttl(result);
	keep_info(c, text, len);
	/* Only the host of the session is worth coming back to. */
	memcpy(c->cookie, c->offered, sizeof(c->cookie));
	c->link = LINK_READY;
	c->lost_ms = 0;
	link_heard(c);
	wire_send(c, initialized, sizeof(initialized) - 1);
	calls_resume(c);
	process_resume_all(c);
	client_set_state(c, EXECD_READY);
}

/* Takes the steps that need no event. */
static void
advance(struct execd_client *c)
{
	while (c->link == LINK_NONE && c->state != EXECD_OVER) {
		c->accept[0] = '\0';
		try_address(c);
	}
	if (c->link == LINK_TLS)
		shake_hands(c);
	if (c->link == LINK_UPGRADE)
		begin_upgrade(c);
}

/* --- Events ------------------------------------------------------------- */

void
link_prepare(const struct execd_client *c, struct pollfd fds[2], size_t *n)
{
	short in = c->paused ? 0 : POLLIN;
	short out = wire_pending(c) ? POLLOUT : 0;

	*n = link_lease_prepare(c, fds);
	/* Leaves out a descriptor without events: poll(2) would report its
	 * hangup again and again while nobody reads. */
	if (c->link == LINK_NONE || c->link == LINK_WAIT || c->link == LINK_ASK)
		return;
	if (c->link == LINK_CONNECT)
		in = POLLOUT;
	if (c->link == LINK_TLS)
		in = c->stream.tls_wants;
	if (c->stream.in == c->stream.out) {
		in = (short)(in | out);
		out = 0;
	}
	if (in != 0)
		fds[(*n)++] =
		    (struct pollfd){ .fd = c->stream.in, .events = in };
	if (out != 0)
		fds[(*n)++] =
		    (struct pollfd){ .fd = c->stream.out, .events = out };
}

static void
transfer(struct execd_client *c)
{
	int err = c->paused ? 0 : wire_read(c);

	/* A callback may have ended the client or lost the connection. */
	if (err == 0 && c->link >= LINK_INITIALIZE)
		err = wire_flush(c);
	if (err == -EBADMSG && c->link >= LINK_INITIALIZE) {
		link_close(c);
		client_over(c, EXECD_FAILURE_PROTOCOL);
	} else if (err < 0 && c->link >= LINK_INITIALIZE) {
		lose(c);
	}
}

void
link_events(struct execd_client *c, const struct pollfd *fds, size_t n)
{
	short happened = 0;

	for (size_t i = 0; i < n; i++)
		happened |= fds[i].revents;
	if (happened == 0 && !stream_has_input(&c->stream) && !wire_pending(c))
		return;
	if (happened != 0) {
		bool asking = c->link == LINK_ASK;

		link_lease_events(c);
		if (asking)
			return; /* what happened was not on a stream */
	}
	if (c->link == LINK_CONNECT && happened != 0)
		connected(c);
	advance(c);
	if (c->link == LINK_UPGRADE) {
		if (wire_flush(c) < 0)
			link_failed(c, EXECD_FAILURE_UNREACHABLE);
		else if (happened & (POLLIN | POLLHUP | POLLERR))
			read_upgrade(c);
	}
	if (c->link >= LINK_INITIALIZE)
		transfer(c);
}

/* --- Silence ------------------------------------------------------------ */

void
link_heard(struct execd_client *c)
{
	c->heard_ms = c->alive_ms = now_ms();
	c->doubted_ms = 0;
	c->asked = c->behind = false;
}

/* Returns when to look for signs of life: after half of the silence timeout,
 * and again half of it later, also if this program was stopped meanwhile.
 * INT64_MAX: never. */
static int64_t
silence_at(const struct execd_client *c)
{
	if (c->link != LINK_READY || c->paused ||
	    c->endpoint.kind == ENDPOINT_STDIO)
		return INT64_MAX;
	return (c->doubted_ms ? c->doubted_ms : c->alive_ms) +
	       c->options.silence_timeout_ms / 2;
}

/*
 * Tells whether some of what waited at the last look was taken since. A ping
 * behind it is not answered yet. A ping that was taken itself is no sign of
 * life: the kernel takes it for a server that hangs.
 */
static bool
makes_way(struct execd_client *c)
{
	uint64_t before = c->taken;
	bool waited = c->behind;

	c->taken = stream_taken(&c->stream);
	c->behind = wire_pending(c) || stream_is_behind(&c->stream);
	return waited && (int64_t)(c->taken - before) > 0;
}

int64_t
link_next_ms(const struct execd_client *c)
{
	int64_t at = silence_at(c);

	if (c->link != LINK_NONE && c->link < LINK_READY &&
	    c->link != LINK_WAIT)
		at = c->deadline_ms;
	if (link_lease_at(c) < at)
		at = link_lease_at(c);
	if (c->retry_ms != 0 && c->retry_ms < at)
		at = c->retry_ms;
	if (c->link >= LINK_INITIALIZE && !c->paused &&
	    stream_has_input(&c->stream))
		at = 0;
	return at;
}

static void
step_timed_out(struct execd_client *c)
{
	static const char *const steps[] = { [LINK_ASK] = "ask",
		[LINK_CONNECT] = "connect",
		[LINK_TLS] = "TLS handshake",
		[LINK_UPGRADE] = "upgrade to WebSocket",
		[LINK_INITIALIZE] = "initialize" };
	bool attached = c->link == LINK_INITIALIZE && c->retry_ms != 0;

	/* Keeps the server's error that the session is attached to another
	 * connection: it says more than a timeout. */
	if (!attached)
		client_set_error(c, "%s: %s: no answer within %u ms",
		    c->options.url, steps[c->link],
		    c->link == LINK_INITIALIZE
			? c->options.initialize_timeout_ms
			: c->options.connect_timeout_ms);
	wire_add_said(c);
	link_failed(c, attached && c->state == EXECD_CONNECTING
			   ? EXECD_FAILURE_ATTACHED
			   : EXECD_FAILURE_UNREACHABLE);
}

/* Is called when half of the silence timeout has passed, and again when all of
 * it has. Progress in either direction begins it anew. */
static void
look_for_life(struct execd_client *c, int64_t now)
{
	if (makes_way(c)) {
		c->alive_ms = now;
		c->doubted_ms = 0;
	} else if (c->doubted_ms != 0) {
		client_set_error(c, "%s: the server sent nothing for %lld ms",
		    c->options.url, (long long)(now - c->heard_ms));
		lose(c);
		return;
	} else {
		c->doubted_ms = now;
	}
	if (!c->asked)
		wire_control(c, WEBSOCKET_PING, NULL, 0);
	c->asked = true;
}

void
link_timeout(struct execd_client *c)
{
	int64_t now = now_ms();

	if (now >= link_lease_at(c)) {
		link_close(c);
		link_lease_failed(c);
	} else if (c->link == LINK_WAIT && now >= c->retry_ms) {
		link_begin(c);
	} else if (c->link == LINK_READY && now >= silence_at(c)) {
		look_for_life(c, now);
	} else if (c->link != LINK_NONE && c->link < LINK_READY &&
		   c->link != LINK_WAIT && now >= c->deadline_ms) {
		step_timed_out(c);
	} else if (c->link == LINK_INITIALIZE && c->retry_ms != 0 &&
		   now >= c->retry_ms) {
		send_initialize(c);
	}
}
