/*
 * One exchange: sent, perhaps redirected, answered whole or as a stream.
 */
#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "http.h"
#include "log.h"
#include "loop.h"

/* So much of a redirect's body is read to keep its connection. */
#define DISCARD_MAX (64u << 10)

#define DELTA_BYTES (256 << 10)

static TAILQ_HEAD(, exchange) exchanges = TAILQ_HEAD_INITIALIZER(exchanges);
static unsigned exchange_count;

static int send_message(struct exchange *x);

static void
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
	buf_clear(&x->body);
	free(x->request_id);
	free(x->location);
	free(x);
}

/* --- what the client is told --------------------------------------------- */

static void
reply_response(struct exchange *x)
{
	struct json_writer w;

	x->channel->tag = x->number | (x->stream ? FRAME_STREAM : 0);
	w = reply_begin(x->channel, &x->id);
	json_begin(&w, '{');
	json_key(&w, "status");
	json_i64(&w, x->status);
	json_key(&w, "headers");
	json_begin(&w, '[');
	json_raw(&w, (const char *)x->headers.data, x->headers.len);
	json_end(&w, ']');
	json_key(&w, "bodyBase64");
	json_base64(&w, x->body.data, x->body.len);
	json_end(&w, '}');
	reply_end(x->channel, &w);
	x->answered = true;
}

static void
tell_delta(struct exchange *x, const void *data, size_t len, const char *error)
{
	bool done = len == 0;
	struct json_writer w;

	x->channel->tag = done ? FRAME_STREAM : 0;
	w = channel_begin(x->channel);
	rpc_begin_notification(&w, "http/request/bodyDelta");
	json_begin(&w, '{');
	json_key(&w, "requestId");
	json_string(&w, x->request_id, x->request_id_len);
	json_key(&w, "seq");
	json_u64(&w, ++x->seq);
	json_key(&w, "deltaBase64");
	json_base64(&w, data, len);
	json_key(&w, "done");
	json_bool(&w, done);
	json_key(&w, "error");
	if (error != NULL)
		json_cstring(&w, error);
	else
		json_null(&w);
	json_end(&w, '}');
	rpc_end_notification(&w);
	channel_send(x->channel);
}

/* URLs may hold secrets: curl's texts name hosts at most (quirk Q20). */
static void
fail(struct exchange *x, const char *detail)
{
	x->channel->tag = x->number;
	if (x->answered)
		tell_delta(x, NULL, 0, detail);
	else
		reply_error(x->channel, &x->id, RPC_INTERNAL, "%s: %s",
		    x->in_body ? "failed to read http/request response body"
			       : "http/request failed",
		    detail);
	exchange_free(x);
}

static void
finish(struct exchange *x)
{
	if (!x->answered)
		reply_response(x);
	if (x->stream)
		tell_delta(x, NULL, 0, NULL);
	exchange_free(x);
}

static void
timeout_cb(evutil_socket_t fd, short what, void *arg)
{
	fail(arg, "operation timed out");
}

/* --- what curl tells us --------------------------------------------------- */

static bool
is_visible(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') ||
		    (unsigned char)s[i] >= 0x7f)
			return false;
	return true;
}

static void
note_header(struct exchange *x, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
	_cleanup_free_ char *lower = xstrndup(name, name_len);

	for (char *c = lower; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	if (strcmp(lower, "location") == 0) {
		free(x->location);
		x->location = xstrndup(value, value_len);
	}
	if (!is_visible(value, value_len))
		return;
	json_begin(&x->header_list, '{');
	json_key(&x->header_list, "name");
	json_string(&x->header_list, lower, strlen(lower));
	json_key(&x->header_list, "value");
	json_string(&x->header_list, value, value_len);
	json_end(&x->header_list, '}');
}

/* A status line: what came before was only informational. */
static void
begin_response(struct exchange *x)
{
	buf_clear(&x->headers);
	json_writer_init(&x->header_list, &x->headers);
	free(x->location);
	x->location = NULL;
	x->in_body = false;
}

static void
headers_complete(struct exchange *x)
{
	curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->status);
	if (x->status < 200)
		return;
	x->in_body = true;
	x->redirecting = x->follow && x->location != NULL &&
			 ((x->status >= 301 && x->status <= 303) ||
			     x->status == 307 || x->status == 308);
	if (x->stream && !x->redirecting)
		reply_response(x);
}

static size_t
on_header(char *line, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	const char *colon;
	size_t len = n;

	while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == '\n'))
		len--;
	if (len >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		begin_response(x);
	} else if (x->in_body) {
		return n; /* a trailer */
	} else if (len == 0) {
		headers_complete(x);
	} else if ((colon = memchr(line, ':', len)) != NULL) {
		const char *value = colon + 1, *end = line + len;

		while (value < end && (*value == ' ' || *value == '\t'))
			value++;
		while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		note_header(x, line, (size_t)(colon - line), value,
		    (size_t)(end - value));
	}
	return x->headers.failed ? 0 : n;
}

static size_t
on_body(char *data, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;

	if (x->redirecting) {
		x->discarded += n;
		return x->discarded > DISCARD_MAX ? 0 : n;
	}
	if (!x->stream) {
		buf_put(&x->body, data, n);
		return x->body.failed ? 0 : n;
	}
	if (channel_congested(x->channel)) {
		x->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	tell_delta(x, data, n, NULL);
	return n;
}

void
exchange_resume_all(void)
{
	struct exchange *x, *next;

	TAILQ_FOREACH_SAFE (x, &exchanges, link, next) {
		if (!x->paused)
			continue;
		x->paused = false;
		curl_easy_pause(x->easy, CURLPAUSE_CONT);
	}
}

/* --- sending ---------------------------------------------------------------
 */

/* Sends again where the response pointed. */
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
		multi_remove(x);
		if (send_message(x) < 0)
			fail(x, "the request cannot be sent");
	}
}

void
exchange_done(struct exchange *x, CURLcode code)
{
	if (x->redirecting && x->in_body)
		follow(x);
	else if (x->headers.failed)
		fail(x, "the response has too many headers");
	else if (x->body.failed)
		fail(x, "the body is longer than 536870912 bytes");
	else if (code != CURLE_OK)
		fail(x, curl_easy_strerror(code));
	else
		finish(x);
}

/* What curl would add on its own, unless the client gave it. */
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
	x->redirecting = x->in_body = false;
	x->discarded = 0;
	curl_easy_setopt(e, CURLOPT_PRIVATE, x);
	curl_easy_setopt(e, CURLOPT_CURLU, x->message.url);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)DELTA_BYTES);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, x);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, plain_headers(&x->message));
	set_body(x);
	set_trust(x);
	return multi_add(x);
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

/* Refuses and returns false when it cannot be started. */
static bool
check(struct request *r, const struct http_request_params *p,
    struct http_message *m)
{
	char error[ARGS_ERROR_MAX];

	if (http_message_init(m, p, error) < 0)
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
	else if (p->has_body && strcmp(m->method, "HEAD") == 0)
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "http/request HEAD with a body is not supported");
	else
		return true;
	http_message_clear(m);
	return false;
}

static void
arm_timeout(struct exchange *x, uint64_t ms)
{
	struct timeval tv = { (time_t)(ms / 1000 > INT32_MAX ? INT32_MAX
							     : ms / 1000),
		(suseconds_t)(ms % 1000 * 1000) };

	loop_add(&x->timeout, &tv);
}

void
exchange_start(struct request *r, struct event_base *base,
    const struct http_request_params *p)
{
	struct http_message m;
	struct exchange *x;

	if (!check(r, p, &m))
		return;
	x = xcalloc(1, sizeof(*x));
	x->channel = r->channel;
	x->number = r->channel->tag;
	x->id = r->id;
	r->id = (struct rpc_id){ 0 };
	x->message = m;
	x->request_id = xmalloc(p->request_id.len + 1);
	memcpy(x->request_id, p->request_id.ptr, p->request_id.len);
	x->request_id_len = p->request_id.len;
	x->stream = p->stream;
	x->follow = p->follow_redirects;
	buf_init(&x->headers, HTTP_HEADERS_MAX);
	buf_init(&x->body, HTTP_BODY_MAX);
	event_assign(&x->timeout, base, -1, 0, timeout_cb, x);
	TAILQ_INSERT_TAIL(&exchanges, x, link);
	exchange_count++;
	if (p->has_timeout)
		arm_timeout(x, p->timeout_ms);
	x->easy = curl_easy_init();
	if (x->easy == NULL || send_message(x) < 0)
		fail(x, "the request cannot be sent");
}
