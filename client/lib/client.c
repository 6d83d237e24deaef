/* SPDX-License-Identifier: ISC */
#include "client.h"

#include <sys/random.h>

/*
 * Requests and their answers. A repeatable request keeps its message until the
 * answer comes, so that it can be sent again on a new connection.
 */

static void
call_finish(
    struct execd_client *c, struct call *call, const struct execd_answer *a)
{
	TAILQ_REMOVE(&c->calls, call, link);
	if (call->fn != NULL)
		call->fn(call->arg, a);
	buf_clear(&call->message);
	free(call);
}

static void
call_fail(struct execd_client *c, struct call *call, int code, const char *why)
{
	struct execd_answer a = {
		.code = code, .message = why, .repeated = call->sent > 1
	};

	call_finish(c, call, &a);
}

static void
call_send(struct execd_client *c, struct call *call)
{
	wire_send(c, (const char *)call->message.data, call->message.len);
	call->sent++;
	call->in_flight = true;
	if (!(call->flags & EXECD_REPEAT))
		buf_clear(&call->message);
}

/* --- Asking ------------------------------------------------------------- */

static void
write_call(
    struct call *call, const char *method, const char *params, size_t len)
{
	struct json_writer w;

	json_writer_init(&w, &call->message);
	json_begin(&w, '{');
	json_key_u64(&w, "id", call->id);
	json_key_cstring(&w, "method", method);
	if (params != NULL) {
		json_key(&w, "params");
		json_raw(&w, params, len);
	}
	json_end(&w, '}');
}

static struct call *
call_new(
    struct execd_client *c, unsigned int flags, execd_answer_fn *fn, void *arg)
{
	struct call *call = xcalloc(1, sizeof(*call));

	call->id = c->next_id++;
	call->flags = flags;
	call->fn = fn;
	call->arg = arg;
	return call;
}

static void
call_begin(struct execd_client *c, struct call *call, const char *method,
    const char *params, size_t len)
{
	buf_init(&call->message, CLIENT_SEND_MAX);
	write_call(call, method, params, len);
	TAILQ_INSERT_TAIL(&c->calls, call, link);
	if (call->message.failed)
		call_fail(c, call, EXECD_CODE_TOO_LONG,
		    "the request is longer than 16 MiB");
	else if (c->state == EXECD_OVER)
		call_fail(c, call, EXECD_CODE_LOST, execd_client_error(c));
	else if (c->link == LINK_READY)
		call_send(c, call);
}

void
execd_client_request(struct execd_client *c, const char *method,
    const char *params, size_t len, unsigned int flags, execd_answer_fn *fn,
    void *arg)
{
	call_begin(c, call_new(c, flags, fn, arg), method, params, len);
}

void
calls_begin(struct json_text *t)
{
	json_text_init(t, CLIENT_SEND_MAX);
	json_begin(&t->w, '{');
}

void
calls_send(struct execd_process *p, const char *method, struct json_text *t,
    execd_answer_fn *fn, void *arg)
{
	struct execd_client *c = p->client;
	struct call *call = call_new(c, EXECD_REPEAT, fn, arg);

	call->owner = p;
	json_end(&t->w, '}');
	call_begin(c, call, method, (const char *)t->buf.data, t->buf.len);
	buf_clear(&t->buf);
}

void
calls_orphan(const struct execd_process *p)
{
	struct call *call;

	TAILQ_FOREACH (call, &p->client->calls, link)
		if (call->owner == p)
			call->fn = NULL;
}

/* Counts the bytes in the send queue and the requests that wait for a
 * connection. */
size_t
execd_client_queued(const struct execd_client *c)
{
	size_t n = c->out.len - c->out_at;
	const struct call *call;

	TAILQ_FOREACH (call, &c->calls, link)
		if (!call->in_flight)
			n += call->message.len;
	return n;
}

static bool
calls_any(const struct execd_client *c)
{
	return !TAILQ_EMPTY(&c->calls);
}

/* --- Answers ------------------------------------------------------------ */

static struct call *
find_call(struct execd_client *c, const struct json_value *id)
{
	struct call *call;
	uint64_t wanted;

	if (id == NULL || json_to_u64(id, &wanted) < 0)
		return NULL;
	TAILQ_FOREACH (call, &c->calls, link)
		if (call->id == wanted && call->in_flight)
			return call;
	return NULL;
}

static void
finish_with_error(struct execd_client *c, struct call *call,
    struct execd_answer *a, const struct json_value *error)
{
	const struct json_value *message = json_get(error, "message");
	_cleanup_free_ char *text =
	    xstrndup(message->text.ptr, message->text.len);

	a->code = (int)execd_json_number(json_get(error, "code"), 0);
	if (a->code == 0)
		a->code = RPC_INTERNAL;
	a->message = text;
	call_finish(c, call, a);
}

void
calls_answer(struct execd_client *c, const struct rpc_message *m,
    const char *text, size_t len)
{
	const struct json_value *id = json_get(m->doc.root, "id");
	struct call *call = find_call(c, id);
	struct execd_answer a = { .text = text, .text_len = len };
	uint64_t zero;

	if (c->link == LINK_INITIALIZE) {
		/* Only initialize was sent, with id 0. The server uses id -1
		 * for a message that it could not parse. */
		if (json_to_u64(id, &zero) < 0 || zero == 0)
			link_initialized(c, m, text, len);
		return;
	}
	if (call == NULL)
		return;
	a.result = json_get(m->doc.root, "result");
	a.repeated = call->sent > 1;
	if (a.result != NULL)
		call_finish(c, call, &a);
	else
		finish_with_error(c, call, &a, json_get(m->doc.root, "error"));
}

/* --- When the connection goes ------------------------------------------- */

void
calls_lost(struct execd_client *c)
{
	struct call *call, *next;

	/* Requests that a callback makes here are not in flight yet, so the
	 * loop leaves them alone. */
	TAILQ_FOREACH_SAFE (call, &c->calls, link, next) {
		if (call->in_flight && !(call->flags & EXECD_REPEAT))
			call_fail(c, call, EXECD_CODE_LOST,
			    "the connection was lost before the answer; "
			    "whether it was done is unknown");
		else
			call->in_flight = false;
	}
}

void
calls_resume(struct execd_client *c)
{
	struct call *call;

	TAILQ_FOREACH (call, &c->calls, link)
		if (!call->in_flight)
			call_send(c, call);
}

static void
calls_fail_all(struct execd_client *c)
{
	while (!TAILQ_EMPTY(&c->calls))
		call_fail(c, TAILQ_FIRST(&c->calls), EXECD_CODE_LOST,
		    execd_client_error(c));
}

#define CONNECT_TIMEOUT_MS    10000
#define INITIALIZE_TIMEOUT_MS 10000
#define RESUME_TIMEOUT_MS     75000 /* the peer keeps a session for 80 s */
#define SILENCE_TIMEOUT_MS    15000

void
client_set_state(struct execd_client *c, enum execd_state state)
{
	if (c->state == state)
		return;
	c->state = state;
	if (c->options.on_state != NULL)
		c->options.on_state(c->options.arg, state);
}

void
client_set_error(struct execd_client *c, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	free(c->error);
	c->error = text;
}

void
client_over(struct execd_client *c, enum execd_failure failure)
{
	if (c->state == EXECD_OVER)
		return;
	c->failure = failure;
	client_set_state(c, EXECD_OVER);
	lease_release(&c->lease);
	process_fail_all(c);
	calls_fail_all(c);
}

/* --- Making one --------------------------------------------------------- */

static const char *
copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void
copy_options(struct execd_options *o)
{
	o->url = copy(o->url ? o->url : "");
	o->token = copy(o->token);
	o->ca_file = copy(o->ca_file);
	o->certificate_file = copy(o->certificate_file);
	o->key_file = copy(o->key_file);
	o->server_key = copy(o->server_key);
	o->client_name =
	    copy(o->client_name ? o->client_name : "libexecd-client");
	o->session_id = copy(o->session_id);
	if (o->connect_timeout_ms == 0)
		o->connect_timeout_ms = CONNECT_TIMEOUT_MS;
	if (o->initialize_timeout_ms == 0)
		o->initialize_timeout_ms = INITIALIZE_TIMEOUT_MS;
	if (o->attached_timeout_ms == 0)
		o->attached_timeout_ms = o->initialize_timeout_ms;
	if (o->silence_timeout_ms == 0)
		o->silence_timeout_ms = SILENCE_TIMEOUT_MS;
}

/* The token becomes part of a header, so it must be one line without blanks
 * (RFC 6750 section 2.1). */
static bool
token_is_clean(const char *token)
{
	for (const unsigned char *p = (const unsigned char *)token; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			return false;
	return token[0] != '\0' && strlen(token) <= 8192;
}

int
client_check_server(struct execd_client *c)
{
	const char *why;
	char *error = NULL;

	if (endpoint_parse(&c->endpoint, c->options.url, &why) < 0) {
		client_set_error(c, "URL `%s': %s", c->options.url, why);
		return -EINVAL;
	}
	if (c->options.token != NULL && !token_is_clean(c->options.token)) {
		client_set_error(c, "the token is empty, over 8192 bytes, or "
				    "has blanks or control characters inside");
		return -EINVAL;
	}
	if (c->endpoint.kind == ENDPOINT_ASK && c->session_id != NULL) {
		client_set_error(c,
		    "%s: the program is asked for a new server, and a session "
		    "is on the one that it began on",
		    c->options.url);
		return -EINVAL;
	}
	if (c->endpoint.kind != ENDPOINT_WSS)
		return 0;
	/* execd_server_key() asks what the authorities say, too. */
	c->stream_config.any_key =
	    c->options.server_key != NULL &&
	    (c->options.ca_file == NULL || c->options.server_key[0] == '\0');
	if (stream_tls_config(&c->stream_config, c->options.ca_file,
		c->options.certificate_file, c->options.key_file, &error) < 0) {
		client_set_error(c, "%s", error);
		free(error);
		return -EINVAL;
	}
	return 0;
}

/* Makes this handle's ids unique: a session can outlive a handle, so ids of
 * different handles meet in one session. */
static void
make_nonce(char nonce[17])
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint64_t)now_ms();
	snprintf(nonce, 17, "%016llx", (unsigned long long)random);
}

struct execd_client *
execd_client_new(const struct execd_options *options)
{
	struct execd_client *c = xcalloc(1, sizeof(*c));

	c->options = *options;
	copy_options(&c->options);
	stream_init(&c->stream);
	lease_init(&c->lease);
	buf_init(&c->in, CLIENT_RECEIVE_MAX);
	buf_init(&c->out, SIZE_MAX / 2);
	TAILQ_INIT(&c->calls);
	TAILQ_INIT(&c->processes);
	make_nonce(c->nonce);
	c->bytes = xmalloc(CLIENT_READ_BYTES);
	c->next_id = 1;
	if (c->options.session_id != NULL)
		c->session_id = xstrdup(c->options.session_id);
	if (c->session_id != NULL && c->options.cookie != NULL)
		upgrade_keep_cookie(c->cookie, c->options.cookie);
	c->options.cookie = NULL; /* it was copied, if it is one */
	if (client_check_server(c) < 0) {
		c->failure = EXECD_FAILURE_USAGE;
		c->state = EXECD_OVER;
	}
	return c;
}

static void
say_goodbye(struct execd_client *c)
{
	static const uint8_t normal[] = { WEBSOCKET_CLOSE_NORMAL >> 8,
		WEBSOCKET_CLOSE_NORMAL & 0xff };

	if (c->link != LINK_READY)
		return;
	wire_control(c, WEBSOCKET_CLOSE, normal, sizeof(normal));
	wire_flush(c);
}

static void
free_options(const struct execd_options *o)
{
	/* copy_options() allocated these strings; they are const only for the
	 * caller. */
	free((char *)(uintptr_t)o->url);
	if (o->token != NULL)
		explicit_bzero((char *)(uintptr_t)o->token, strlen(o->token));
	free((char *)(uintptr_t)o->token);
	free((char *)(uintptr_t)o->ca_file);
	free((char *)(uintptr_t)o->certificate_file);
	free((char *)(uintptr_t)o->key_file);
	free((char *)(uintptr_t)o->server_key);
	free((char *)(uintptr_t)o->client_name);
	free((char *)(uintptr_t)o->session_id);
}

void
execd_client_free(struct execd_client *c)
{
	if (c == NULL)
		return;
	say_goodbye(c);
	while (!TAILQ_EMPTY(&c->processes))
		execd_process_free(TAILQ_FIRST(&c->processes));
	c->options.on_state = NULL;
	calls_fail_all(c);
	link_close(c);
	lease_end(&c->lease);
	free(c->lease_how);
	stream_config_clear(&c->stream_config);
	endpoint_clear(&c->endpoint);
	buf_clear(&c->in);
	buf_clear(&c->out);
	if (c->has_info)
		json_clear(&c->info);
	free(c->info_text);
	free(c->session_id);
	free(c->error);
	free(c->taken_by);
	free(c->bytes);
	free_options(&c->options);
	free(c);
}

/* --- The loop ----------------------------------------------------------- */

static void
begin(struct execd_client *c)
{
	if (c->state != EXECD_IDLE)
		return;
	client_set_state(c, EXECD_CONNECTING);
	c->first_ms = now_ms();
	link_begin(c);
}

static void
lower(int *timeout_ms, int64_t at_ms)
{
	int64_t left;

	if (at_ms == INT64_MAX)
		return;
	left = at_ms - now_ms();
	if (left < 0)
		left = 0;
	if (*timeout_ms < 0 || left < *timeout_ms)
		*timeout_ms = left > INT32_MAX ? INT32_MAX : (int)left;
}

size_t
execd_client_prepare(
    struct execd_client *c, struct pollfd fds[EXECD_POLL_MAX], int *timeout_ms)
{
	size_t n;

	if (c->state == EXECD_IDLE && calls_any(c))
		begin(c);
	link_prepare(c, fds, &n);
	lower(timeout_ms, link_next_ms(c));
	/* A caller that waits for the end must see it at once. */
	if (c->state == EXECD_OVER)
		*timeout_ms = 0;
	return n;
}

int
execd_client_dispatch(
    struct execd_client *c, const struct pollfd *fds, size_t n)
{
	if (c->state == EXECD_OVER)
		return -ENOTCONN;
	link_events(c, fds, n);
	if (c->state != EXECD_OVER && now_ms() >= link_next_ms(c))
		link_timeout(c);
	return c->state == EXECD_OVER ? -ENOTCONN : 0;
}

int
execd_client_run(struct execd_client *c, int timeout_ms)
{
	struct pollfd fds[EXECD_POLL_MAX];
	size_t n = execd_client_prepare(c, fds, &timeout_ms);

	if (poll(fds, (nfds_t)n, timeout_ms) < 0) {
		if (errno != EINTR)
			return -errno;
		for (size_t i = 0; i < n; i++)
			fds[i].revents = 0;
	}
	return execd_client_dispatch(c, fds, n);
}

int
execd_client_connect(struct execd_client *c)
{
	begin(c);
	while (c->state != EXECD_READY)
		if (execd_client_run(c, -1) < 0)
			return -ENOTCONN;
	return 0;
}

void
execd_client_answer(struct execd_client *c, const char *message, size_t len)
{
	if (c->link == LINK_READY)
		wire_send(c, message, len);
}

void
execd_client_pause(struct execd_client *c, bool pause)
{
	if (c->paused && !pause) {
		/* While paused nothing was read, so that time does not count as
		 * silence. */
		link_heard(c);
	}
	c->paused = pause;
}

void
execd_client_ended(struct execd_client *c)
{
	c->ended = true;
}

int
execd_server_key(const struct execd_options *options, char **key, char **error)
{
	struct execd_options o = *options;
	struct execd_client *c;
	int err;

	o.server_key = "";
	c = execd_client_new(&o);
	c->verdict = -ENOTCONN;
	execd_client_connect(c);
	err = c->verdict;
	*key = c->server_key[0] != '\0' ? xstrdup(c->server_key) : NULL;
	*error = err < 0 ? xstrdup(execd_client_error(c)) : NULL;
	execd_client_free(c);
	return err;
}

/* --- What it knows ------------------------------------------------------ */

enum execd_state
execd_client_state(const struct execd_client *c)
{
	return c->state;
}

enum execd_failure
execd_client_failure(const struct execd_client *c)
{
	return c->failure;
}

const char *
execd_client_error(const struct execd_client *c)
{
	return c->error ? c->error : "no error";
}

const char *
execd_client_server_key(const struct execd_client *c)
{
	return c->server_key[0] != '\0' ? c->server_key : NULL;
}

const char *
execd_client_session(const struct execd_client *c)
{
	return c->session_id;
}

const char *
execd_client_cookie(const struct execd_client *c)
{
	return c->cookie[0] != '\0' ? c->cookie : NULL;
}

const struct json_value *
execd_client_info(const struct execd_client *c)
{
	if (!c->has_info)
		return NULL;
	return json_get(json_get(c->info.root, "result"), "environmentInfo");
}

int64_t
execd_client_kept_ms(const struct execd_client *c)
{
	const struct json_value *result =
	    c->has_info ? json_get(c->info.root, "result") : NULL;

	return execd_json_number(
	    json_get(json_get(result, "sessionKeep"), "maxMs"), 0);
}

bool
execd_client_can(const struct execd_client *c, const char *capability)
{
	const struct json_value *all =
	    json_get(execd_client_info(c), "capabilities");

	return execd_json_bool(json_get(all, capability), false);
}

int64_t
execd_client_lost_ms(const struct execd_client *c)
{
	/* Adds 1 so that the result is not 0 in the first millisecond. */
	return c->lost_ms == 0 ? 0 : now_ms() - c->lost_ms + 1;
}

unsigned int
execd_client_resume_ms(const struct execd_client *c)
{
	if (c->options.resume_timeout_ms > 0)
		return c->options.resume_timeout_ms;
	/* A server that keeps sessions for less says so when it is reached:
	 * that the session is unknown is worth more than a timeout. */
	return c->detached_ttl_ms > RESUME_TIMEOUT_MS ? c->detached_ttl_ms
						      : RESUME_TIMEOUT_MS;
}

/* --- Values of messages, for programs that do not include json.h -------- */

const struct json_value *
execd_json_get(const struct json_value *v, const char *key)
{
	return json_get(v, key);
}

const struct json_value *
execd_json_first(const struct json_value *v)
{
	return v ? v->first : NULL;
}

const struct json_value *
execd_json_next(const struct json_value *v)
{
	return v ? v->next : NULL;
}

const char *
execd_json_string(const struct json_value *v, size_t *len)
{
	if (v == NULL || v->type != JSON_STRING)
		return NULL;
	*len = v->text.len;
	return v->text.ptr;
}

int64_t
execd_json_number(const struct json_value *v, int64_t fallback)
{
	int64_t number;

	if (v == NULL || json_to_i64(v, &number) < 0)
		return fallback;
	return number;
}

bool
execd_json_bool(const struct json_value *v, bool fallback)
{
	return v != NULL && v->type == JSON_BOOL ? v->boolean : fallback;
}
