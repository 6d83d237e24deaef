/* SPDX-License-Identifier: ISC */
/*
 * The answer of an exchange: what curl reports, and what the client is told.
 */
#include <ctype.h>
#include <event2/event.h>

#include "base.h"
#include "base64.h"
#include "frame.h"
#include "http_decode.h"
#include "http_exchange.h"
#include "http_text.h"

static void answer_write(struct exchange *x, struct json_writer *w);

/* --- bodies in one piece ------------------------------------------------ */

/*
 * Bodies that are answered in one piece. They are held within a limit until
 * they are complete, and then sent in parts directly from there.
 */

#define PIECE_BYTES (96u << 10) /* divisible by 3: no padding inside */

/* Complete answers, in the order in which they are sent. */
static TAILQ_HEAD(, exchange) leaving = TAILQ_HEAD_INITIALIZER(leaving);

static uint64_t claimed; /* by all exchanges */

/*
 * Returns the announced length of the body, or the bytes so far if they are
 * more.
 */
static uint64_t
expected(const struct exchange *x, size_t n)
{
	uint64_t there = x->body.len + n;
	curl_off_t length = -1;

	curl_easy_getinfo(x->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	return length > 0 && (uint64_t)length > there ? (uint64_t)length
						      : there;
}

/*
 * Adds a part of a body that is answered in one piece. Returns false if the
 * limit is reached, with x->too_large set.
 */
static bool
body_add(struct exchange *x, const void *data, size_t n)
{
	uint64_t bytes = expected(x, n);

	x->too_large = bytes > HTTP_BODIES_MAX - (claimed - x->claimed);
	if (x->too_large)
		return false;
	claimed += bytes - x->claimed;
	x->claimed = bytes;
	buf_put(&x->body, data, n);
	return true;
}

void
body_clear(struct exchange *x)
{
	if (x->leaving)
		TAILQ_REMOVE(&leaving, x, leaving_link);
	claimed -= x->claimed;
	buf_clear(&x->body);
	buf_clear(&x->text);
}

/* --- sent --------------------------------------------------------------- */

void
body_leave(struct exchange *x)
{
	struct json_writer w;

	event_del(&x->timeout);
	buf_init(&x->text, UINT32_MAX);
	json_writer_init(&w, &x->text);
	rpc_begin_result(&w, &x->id);
	json_begin(&w, '{');
	answer_write(x, &w);
	json_end(&w, '}');
	rpc_end_result(&w);
	x->leaving = true;
	TAILQ_INSERT_TAIL(&leaving, x, leaving_link);
}

static void
begin(struct exchange *x)
{
	struct channel *ch = x->channel;

	ch->tag = x->number;
	channel_relay_begin(
	    ch, (uint32_t)(x->text.len + base64_encoded_len(x->body.len)));
	channel_relay(ch, x->text.data, x->text_at);
	x->answered = true;
}

/* Sends the body. Returns false if the client does not read. */
static bool
send_body(struct exchange *x)
{
	static char text[PIECE_BYTES / 3 * 4];
	size_t left = x->body.len - x->sent;

	while (left > 0 && !x->channel->want_write) {
		size_t n = left < PIECE_BYTES ? left : PIECE_BYTES;

		channel_relay(x->channel, text,
		    base64_encode(text, x->body.data + x->sent, n));
		x->sent += n;
		left -= n;
		if (left > 0)
			channel_flush(x->channel);
		/* The client is gone. */
		if (x->channel->relay_left == 0)
			return false;
	}
	return left == 0;
}

bool
body_send_all(void)
{
	struct exchange *x;

	while ((x = TAILQ_FIRST(&leaving)) != NULL) {
		if (x->channel->want_write)
			return false;
		if (!x->answered)
			begin(x);
		if (!send_body(x))
			return false;
		channel_relay(x->channel, x->text.data + x->text_at,
		    x->text.len - x->text_at);
		exchange_free(x);
	}
	return true;
}

/* --- the answer --------------------------------------------------------- */

/*
 * This much of a redirect's body is read so that its connection can be reused.
 */
#define DISCARD_MAX (64u << 10)

/* What described the coded body is left out: neither is true any more. */
static void
write_headers(const struct exchange *x, struct json_writer *w)
{
	const char *name = (const char *)x->headers.data;
	const char *end = name + x->headers.len, *value;

	for (; name < end; name = value + strlen(value) + 1) {
		value = name + strlen(name) + 1;
		if (x->decoder != NULL &&
		    (strcmp(name, "content-encoding") == 0 ||
			strcmp(name, "content-length") == 0))
			continue;
		json_begin(w, '{');
		json_key_cstring(w, "name", name);
		json_key_cstring(w, "value", value);
		json_end(w, '}');
	}
}

/*
 * Writes the result of a request with an empty body. x->text_at is where the
 * body goes in the writer's buffer.
 */
static void
answer_write(struct exchange *x, struct json_writer *w)
{
	json_key_i64(w, "status", x->status);
	json_key_begin(w, "headers", '[');
	write_headers(x, w);
	json_end(w, ']');
	json_key_base64(w, "bodyBase64", NULL, 0);
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
	json_key_base64(&w, "deltaBase64", data, len);
	json_key_bool(&w, "done", done);
	json_key_optional(&w, "error", error);
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
	if (strcmp(lower, "content-encoding") == 0 && x->codings++ == 0)
		x->coding = xstrndup(value, value_len);
	if (!is_visible(value, value_len))
		return;
	buf_put(&x->headers, lower, name_len + 1);
	buf_put(&x->headers, value, value_len);
	buf_put(&x->headers, "", 1);
}

/*
 * A status line begins a response; responses before it were only informational.
 */
static void
begin_response(struct exchange *x)
{
	buf_clear(&x->headers);
	free(x->coding);
	x->coding = NULL;
	x->codings = 0;
	http_decoder_free(x->decoder);
	x->decoder = NULL;
	x->skip = 0;
	free(x->location);
	x->location = NULL;
	free(x->length);
	x->length = NULL;
	x->in_body = false;
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
	size_t name_len;

	if (colon == NULL)
		return false;
	name_len = (size_t)(colon - line);
	if (!http_is_token((struct slice){ line, name_len }))
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
	if (x->redirecting)
		return;
	if (x->codings == 1 && http_decoder_knows(x->coding)) {
		x->decoder = http_decoder_new(x->coding);
		x->undecodable = x->decoder == NULL;
	}
	if (x->stream)
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

/* Tells whether the client does not read; then the transfer pauses. */
static bool
pauses(struct exchange *x)
{
	x->paused = x->stream && channel_congested(x->channel);
	return x->paused;
}

/* Passes on a part of the body. Returns false if a limit is reached. */
static bool
pass_on(struct exchange *x, const void *data, size_t n)
{
	if (!x->stream)
		return body_add(x, data, n);
	answer_delta(x, data, n, NULL);
	return true;
}

/*
 * Decodes a part of the body, as far as the client reads. curl brings a part
 * again that was not taken as a whole, perhaps in other pieces; what was
 * decoded of it is skipped then.
 */
static size_t
decode(struct exchange *x, const char *data, size_t n)
{
	size_t skipped = x->skip < n ? x->skip : n, left = n - skipped;
	const char *at = data + skipped;
	const void *out;
	ssize_t len;

	for (;;) {
		if (pauses(x)) {
			x->skip += n - skipped - left;
			return CURL_WRITEFUNC_PAUSE;
		}
		len = http_decoder_step(x->decoder, &at, &left, &out);
		x->undecodable = len < 0;
		if (len <= 0)
			break;
		if (!pass_on(x, out, (size_t)len))
			return 0;
	}
	x->skip -= skipped;
	return len < 0 ? 0 : n;
}

size_t
answer_on_body(char *data, size_t size, size_t n, void *arg)
{
	struct exchange *x = arg;

	if (x->redirecting) {
		x->discarded += n;
		return x->discarded > DISCARD_MAX ? 0 : n;
	}
	if (x->undecodable)
		return 0;
	if (x->decoder != NULL)
		return decode(x, data, n);
	if (pauses(x))
		return CURL_WRITEFUNC_PAUSE;
	return pass_on(x, data, n) ? n : 0;
}
