/* SPDX-License-Identifier: ISC */
/*
 * One exchange: sending, redirects, and its end. The answer is in
 * http_answer.c.
 */
#include <event2/event.h>

#include "base.h"
#include "http_decode.h"
#include "http_exchange.h"
#include "loop.h"

static void exchange_done(struct exchange *x, CURLcode code);

/* --- curl and libevent -------------------------------------------------- */

/*
 * Connects curl's multi interface with libevent. curl says which sockets and
 * which deadline it waits for; the event loop says when they are ready
 * (libcurl-multi(3), curl_multi_socket_action(3)).
 */

static struct event_base *multi_base;
static CURLM *multi;
static struct event timer;

/*
 * Takes the transfers that have ended, one at a time, because handling one may
 * remove others.
 */
static void
take_done(void)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(multi, &left)) != NULL) {
		struct exchange *x = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
		exchange_done(x, m->data.result);
	}
}

/*
 * If curl cannot go on, the program ends; otherwise a transfer would be waited
 * for for ever.
 */
static void
go_on(curl_socket_t fd, int action)
{
	int running;
	CURLMcode code = curl_multi_socket_action(multi, fd, action, &running);

	if (code != CURLM_OK)
		log_fatal("curl: %s", curl_multi_strerror(code));
	take_done();
}

static void
socket_cb(evutil_socket_t fd, short what, void *arg)
{
	go_on(fd, (what & EV_READ ? CURL_CSELECT_IN : 0) |
		      (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	go_on(CURL_SOCKET_TIMEOUT, 0);
}

/* Each socket has one event; curl keeps the pointer to it. */
static int
watch_socket(
    CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct event *event = socket_arg;
	short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) |
			       (what & CURL_POLL_OUT ? EV_WRITE : 0));

	if (event != NULL)
		event_free(event);
	event = NULL;
	if (what != CURL_POLL_REMOVE) {
		event = event_new(multi_base, fd, (short)(wanted | EV_PERSIST),
		    socket_cb, NULL);
		if (event == NULL)
			log_fatal("no event for a socket");
		loop_add(event, NULL);
	}
	curl_multi_assign(multi, fd, event);
	return 0;
}

static int
watch_timer(CURLM *m, long ms, void *arg)
{
	if (ms < 0)
		event_del(&timer);
	else
		loop_add_ms(&timer, (uint64_t)ms);
	return 0;
}

void
multi_init(struct event_base *event_base)
{
	multi_base = event_base;
	multi = curl_multi_init();
	if (multi == NULL)
		log_fatal("curl: no multi handle");
	event_assign(&timer, multi_base, -1, 0, timer_cb, NULL);
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, watch_timer);
}

static void
multi_remove(struct exchange *x)
{
	curl_multi_remove_handle(multi, x->easy);
}

/* --- an exchange -------------------------------------------------------- */

#define DELTA_BYTES (256 << 10)

static TAILQ_HEAD(, exchange) exchanges = TAILQ_HEAD_INITIALIZER(exchanges);
static unsigned exchange_count;

static int send_message(struct exchange *x);

void
exchange_free(struct exchange *x)
{
	if (x->easy != NULL) {
		multi_remove(x);
		curl_easy_cleanup(x->easy);
	}
	event_del(&x->timeout);
	TAILQ_REMOVE(&exchanges, x, link);
	exchange_count--;
	http_message_clear(&x->message);
	rpc_id_clear(&x->id);
	buf_clear(&x->headers);
	body_clear(x);
	free(x->request_id);
	free(x->location);
	free(x->length);
	free(x->coding);
	http_decoder_free(x->decoder);
	free(x);
}

/* --- what the client is told -------------------------------------------- */

/*
 * URLs may contain secrets; curl's error texts name at most hosts (quirk Q20).
 */
static void
fail(struct exchange *x, const char *detail)
{
	x->channel->tag = x->number;
	if (x->answered)
		answer_delta(x, NULL, 0, detail);
	else
		reply_error(x->channel, &x->id, RPC_INTERNAL, "%s: %s",
		    x->in_body ? "failed to read http/request response body"
			       : "http/request failed",
		    detail);
	exchange_free(x);
}

static void
fail_too_large(struct exchange *x)
{
	char text[160];

	snprintf(text, sizeof(text),
	    "the body is too large: limit is %llu bytes for all requests under "
	    "way that are not streamed",
	    HTTP_BODIES_MAX);
	fail(x, text);
}

static void
finish(struct exchange *x)
{
	if (x->stream && !x->answered)
		answer_headers(x);
	if (x->stream) {
		answer_delta(x, NULL, 0, NULL);
		exchange_free(x);
	} else {
		body_leave(x);
		exchange_resume_all();
	}
}

static void
timeout_cb(evutil_socket_t fd, short what, void *arg)
{
	fail(arg, "operation timed out");
}

void
exchange_resume_all(void)
{
	struct exchange *x, *next;

	if (!body_send_all())
		return;
	TAILQ_FOREACH_SAFE (x, &exchanges, link, next) {
		if (!x->paused)
			continue;
		x->paused = false;
		curl_easy_pause(x->easy, CURLPAUSE_CONT);
	}
}

/* --- sending ---------------------------------------------------------------
 */

/* Where a redirect leads is judged like where the request led. */
static void
send_again(struct exchange *x)
{
	char why[ARGS_ERROR_MAX];

	multi_remove(x);
	if (http_reach_judge(&x->reach, x->channel, &x->message, why) < 0) {
		x->in_body = false;
		fail(x, why);
	} else if (send_message(x) < 0) {
		fail(x, "the request cannot be sent");
	}
}

/* Sends the request again to where the response redirects. */
static void
follow(struct exchange *x)
{
	int r = http_message_redirect(&x->message, x->status, x->location);

	if (r == 0) {
		finish(x);
	} else if (r < 0 || ++x->redirects > HTTP_REDIRECTS_MAX) {
		x->in_body = false;
		fail(x, r < 0 ? "redirect to a scheme that is not http or https"
			      : "too many redirects");
	} else {
		send_again(x);
	}
}

static const char *
failure_of(const struct exchange *x, CURLcode code, char *text)
{
	const char *refused = http_reach_refused(&x->reach, text);

	return refused != NULL ? refused : curl_easy_strerror(code);
}

/* The transfer has ended. */
static void
exchange_done(struct exchange *x, CURLcode code)
{
	char text[ARGS_ERROR_MAX];

	if (x->malformed)
		fail(x, "the response has a malformed header");
	else if (x->redirecting && x->in_body)
		follow(x);
	else if (x->headers.failed)
		fail(x, "the response has too many headers");
	else if (x->too_large)
		fail_too_large(x);
	else if (x->undecodable || (code == CURLE_OK && x->decoder != NULL &&
				       !http_decoder_may_end(x->decoder)))
		fail(x, "error decoding response body");
	else if (code != CURLE_OK && !(x->head && x->in_body))
		fail(x, failure_of(x, code, text));
	else
		finish(x);
}

/* Suppresses the headers that curl would add, unless the client gave them. */
static struct curl_slist *
plain_headers(struct http_message *m)
{
	static const char *const unwanted[] = { "Expect:", "Content-Type:" };
	struct curl_slist *list = m->headers;

	for (size_t i = 0; i < nitems(unwanted); i++) {
		struct curl_slist *h = m->headers;

		while (h != NULL && strncasecmp(h->data, unwanted[i],
					strlen(unwanted[i]) - 1) != 0)
			h = h->next;
		if (h == NULL)
			list = curl_slist_append(list, unwanted[i]);
	}
	m->headers = list;
	return list;
}

static void
set_body(struct exchange *x)
{
	const struct http_message *m = &x->message;

	if (m->body != NULL) {
		curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, m->body);
		curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE,
		    (curl_off_t)m->body_len);
	} else if (strcmp(m->method, "HEAD") == 0) {
		curl_easy_setopt(x->easy, CURLOPT_NOBODY, 1L);
	}
	curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, m->method);
}

static void
set_trust(struct exchange *x)
{
	const char *file = getenv("SSL_CERT_FILE");
	const char *directory = getenv("SSL_CERT_DIR");

	if (file != NULL)
		curl_easy_setopt(x->easy, CURLOPT_CAINFO, file);
	if (directory != NULL)
		curl_easy_setopt(x->easy, CURLOPT_CAPATH, directory);
}

static int
send_message(struct exchange *x)
{
	CURL *e = x->easy;

	curl_easy_reset(e);
	x->redirecting = x->in_body = x->malformed = false;
	/* curl would wait for a body if a HEAD request has one itself. */
	x->head =
	    x->message.body != NULL && strcmp(x->message.method, "HEAD") == 0;
	x->discarded = 0;
	curl_easy_setopt(e, CURLOPT_PRIVATE, x);
	curl_easy_setopt(e, CURLOPT_CURLU, x->message.url);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)DELTA_BYTES);
	curl_easy_setopt(e, CURLOPT_HTTP_CONTENT_DECODING, 0L);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, answer_on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, x);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, answer_on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, plain_headers(&x->message));
	set_body(x);
	set_trust(x);
	http_reach_watch(&x->reach, e);
	return curl_multi_add_handle(multi, x->easy) == CURLM_OK ? 0 : -EIO;
}

static bool
is_active(struct slice request_id)
{
	struct exchange *x;

	TAILQ_FOREACH (x, &exchanges, link)
		if (x->stream &&
		    slice_equal(request_id,
			(struct slice){ x->request_id, x->request_id_len }))
			return true;
	return false;
}

/* Refuses the request and returns false if it cannot be started. */
static bool
check(struct request *r, const struct http_request_params *p,
    struct http_message *m, struct http_reach *reach)
{
	char error[ARGS_ERROR_MAX];

	if (http_message_init(m, p, error) < 0 ||
	    http_reach_judge(reach, r->channel, m, error) < 0)
		reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	else if (p->stream && is_active(p->request_id))
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "http/request streamResponse requestId `%.*s` is already "
		    "active",
		    (int)p->request_id.len, p->request_id.ptr);
	else if (exchange_count == HTTP_EXCHANGES_MAX)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "at most %d http requests may be under way per connection",
		    HTTP_EXCHANGES_MAX);
	else
		return true;
	http_message_clear(m);
	return false;
}

void
exchange_start(struct request *r, struct event_base *base,
    const struct http_request_params *p)
{
	struct http_message m;
	struct http_reach reach;
	struct exchange *x;

	if (!check(r, p, &m, &reach))
		return;
	x = xcalloc(1, sizeof(*x));
	x->channel = r->channel;
	x->number = r->channel->tag;
	x->id = r->id;
	r->id = (struct rpc_id){ 0 };
	x->message = m;
	x->reach = reach;
	x->request_id = xmalloc(p->request_id.len + 1);
	memcpy(x->request_id, p->request_id.ptr, p->request_id.len);
	x->request_id_len = p->request_id.len;
	x->stream = p->stream;
	x->follow = p->follow_redirects;
	buf_init(&x->headers, HTTP_HEADERS_MAX);
	buf_init(&x->body, HTTP_BODIES_MAX);
	event_assign(&x->timeout, base, -1, 0, timeout_cb, x);
	TAILQ_INSERT_TAIL(&exchanges, x, link);
	exchange_count++;
	if (p->has_timeout)
		loop_add_ms(&x->timeout, p->timeout_ms);
	x->easy = curl_easy_init();
	if (x->easy == NULL || send_message(x) < 0)
		fail(x, "the request cannot be sent");
}
