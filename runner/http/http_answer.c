/* SPDX-License-Identifier: ISC */
/*
 * The answer of an exchange: what curl reports, and what the client is told.
 * Bodies that are not streamed are in http_body.c.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "http_exchange.h"

/*
 * This much of a redirect's body is read so that its connection can be reused.
 */
#define DISCARD_MAX (64u << 10)

void
answer_write(struct exchange *x, struct json_writer *w)
{
	json_key_i64(w, "status", x->status);
	json_key(w, "headers");
	json_begin(w, '[');
	json_raw(w, (const char *)x->headers.data, x->headers.len);
	json_end(w, ']');
	json_key(w, "bodyBase64");
	json_base64(w, NULL, 0);
	x->text_at = w->buf->len - 1;
}

void
answer_headers(struct exchange *x)
{
	struct json_writer w;

	x->channel->tag = x->number | FRAME_STREAM;
	w = reply_begin(x->channel, &x->id);
	answer_write(x, &w);
	reply_end(x->channel, &w);
	x->answered = true;
}

void
answer_delta(
    struct exchange *x, const void *data, size_t len, const char *error)
{
	bool done = len == 0;
	struct json_writer w;

	x->channel->tag = done ? FRAME_STREAM : 0;
	w = channel_begin(x->channel);
	rpc_begin_notification(&w, "http/request/bodyDelta");
	json_begin(&w, '{');
	json_key_string(&w, "requestId", x->request_id, x->request_id_len);
	json_key_u64(&w, "seq", ++x->seq);
	json_key(&w, "deltaBase64");
	json_base64(&w, data, len);
	json_key_bool(&w, "done", done);
	json_key(&w, "error");
	if (error != NULL)
		json_cstring(&w, error);
	else
		json_null(&w);
	json_end(&w, '}');
	rpc_end_notification(&w);
	channel_send(x->channel);
}

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
	json_key_string(&x->header_list, "name", lower, strlen(lower));
	json_key_string(&x->header_list, "value", value, value_len);
	json_end(&x->header_list, '}');
}

/*
 * A status line begins a response; responses before it were only informational.
 */
static void
begin_response(struct exchange *x)
{
	buf_clear(&x->headers);
	json_writer_init(&x->header_list, &x->headers);
	free(x->location);
	x->location = NULL;
	free(x->length);
	x->length = NULL;
	x->in_body = false;
}

/* Tells whether s is a token (RFC 9110 section 5.6.2). */
static bool
is_token(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) &&
		    strchr("!#$%&'*+-.^_`|~", s[i]) == NULL)
			return false;
	return n > 0;
}

/*
 * Tells whether a second Content-Length differs from the first. Then readers
 * disagree about where the body ends (RFC 9112 section 6.3).
 */
static bool
is_contradiction(struct exchange *x, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
	if (name_len != strlen("content-length") ||
	    strncasecmp(name, "content-length", name_len) != 0)
		return false;
	if (x->length == NULL) {
		x->length = xstrndup(value, value_len);
		return false;
	}
	return strlen(x->length) != value_len ||
	       memcmp(x->length, value, value_len) != 0;
}

/*
 * Takes a line "Name: value". Returns false if it is no header line, continues
 * the line before it (RFC 9112 section 5.2), or contradicts another one.
 */
static bool
take_header(struct exchange *x, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len), *end = line + len, *value;
	size_t name_len = colon != NULL ? (size_t)(colon - line) : 0;

	if (!is_token(line, name_len))
		return false;
	value = colon + 1;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (is_contradiction(x, line, name_len, value, (size_t)(end - value)))
		return false;
	note_header(x, line, name_len, value, (size_t)(end - value));
	return true;
}

static void
headers_complete(struct exchange *x)
{
	curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->status);
	if (x->status < 200)
		return;
	x->in_body = true;
	/*
	 * If the location is no URL, the response is the result, with its body.
	 */
	x->redirecting = x->follow && http_message_redirects(
					  &x->message, x->status, x->location);
	if (x->stream && !x->redirecting)
		answer_headers(x);
}

size_t
answer_on_header(char *line, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;
	size_t len = n;

	while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == '\n'))
		len--;
	if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
		begin_response(x);
	else if (x->in_body)
		return n; /* a trailer */
	else if (len == 0)
		headers_complete(x);
	else
		x->malformed = !take_header(x, line, len);
	if (x->malformed || (x->head && x->in_body))
		return 0; /* ends the transfer */
	return x->headers.failed ? 0 : n;
}

size_t
answer_on_body(char *data, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;

	if (x->redirecting) {
		x->discarded += n;
		return x->discarded > DISCARD_MAX ? 0 : n;
	}
	if (!x->stream)
		return body_add(x, data, n) ? n : 0;
	if (channel_congested(x->channel)) {
		x->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	answer_delta(x, data, n, NULL);
	return n;
}
