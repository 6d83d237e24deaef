/* SPDX-License-Identifier: ISC */
/*
 * Bodies that are answered in one piece. They are held within a limit until
 * they are complete, and then sent in parts directly from there.
 */
#include <event2/event.h>

#include "base64.h"
#include "frame.h"
#include "http_exchange.h"
#include "util.h"

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

bool
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

/* --- sent ----------------------------------------------------------------- */

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
