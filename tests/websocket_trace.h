/* SPDX-License-Identifier: ISC */
/*
 * Runs the WebSocket parser and writes down what came out, in a way that does
 * not depend on how the input was cut: "ping(x) text(Hello) error(1002)". A
 * message stands where it ends; one that an error cut short is left out. The
 * promises of websocket.h are asserted on the way. For test_websocket and
 * fuzz_websocket.
 */
#pragma once

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "buf.h"
#include "utf8.h"
#include "websocket.h"

#define TRACE_SHOW_MAX 40 /* longer payloads show as length and hash */
#define TRACE_LIMIT    (256u << 20)

struct trace {
	struct websocket_parser parser;
	struct buf events;
	struct buf message;
	bool open; /* a message began and did not end */
	bool binary;
	bool fragmented;
	uint64_t announced;
	bool over;	 /* error */
	uint16_t status; /* its code */
	const char *error;
};

static inline void
trace_init(struct trace *t, uint64_t message_max)
{
	*t = (struct trace){ 0 };
	websocket_parser_init(&t->parser, message_max);
	buf_init(&t->events, TRACE_LIMIT);
	buf_init(&t->message, TRACE_LIMIT);
}

static inline void
trace_clear(struct trace *t)
{
	buf_clear(&t->events);
	buf_clear(&t->message);
}

static inline void
trace_payload(struct trace *t, const uint8_t *p, size_t n)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 16777619u;
	if (n > TRACE_SHOW_MAX) {
		buf_printf(&t->events, "#%zu:%08x", n, hash);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (isprint(p[i]) && p[i] != '\\')
			buf_put_u8(&t->events, p[i]);
		else
			buf_printf(&t->events, "\\x%02x", p[i]);
	}
}

static inline void
trace_event(struct trace *t, const char *name, const uint8_t *p, size_t n)
{
	if (t->events.len > 0)
		buf_puts(&t->events, " ");
	buf_puts(&t->events, name);
	buf_puts(&t->events, "(");
	trace_payload(t, p, n);
	buf_puts(&t->events, ")");
}

static inline void
trace_begin(struct trace *t, const struct websocket_item *item)
{
	t->open = true;
	t->binary = item->binary;
	t->fragmented = item->fragmented;
	t->announced = item->message_len;
	assert(!item->fragmented || item->message_len == 0);
	t->message.len = 0;
}

static inline void
trace_data(struct trace *t, const struct websocket_item *item)
{
	assert(item->first == !t->open);
	assert(item->len > 0 || item->first || item->last);
	if (item->first)
		trace_begin(t, item);
	assert(item->binary == t->binary && item->fragmented == t->fragmented);
	buf_put(&t->message, item->payload, item->len);
	if (!t->fragmented)
		assert(item->last == (t->message.len == t->announced));
	if (!item->last)
		return;
	t->open = false;
	assert(
	    t->binary || utf8_check(0, t->message.data, t->message.len) == 0);
	trace_event(
	    t, t->binary ? "binary" : "text", t->message.data, t->message.len);
}

static inline void
trace_item(struct trace *t, const struct websocket_item *item)
{
	char text[32];

	switch (item->event) {
	case WEBSOCKET_EV_NEED_MORE:
		return;
	case WEBSOCKET_EV_DATA:
		trace_data(t, item);
		return;
	case WEBSOCKET_EV_PING:
	case WEBSOCKET_EV_PONG:
		assert(item->len <= WEBSOCKET_CONTROL_MAX);
		trace_event(t,
		    item->event == WEBSOCKET_EV_PING ? "ping" : "pong",
		    item->payload, item->len);
		return;
	case WEBSOCKET_EV_CLOSE:
		assert(item->len <= WEBSOCKET_CONTROL_MAX && item->len != 1);
		snprintf(text, sizeof(text), "close:%u", item->close_code);
		trace_event(t, text, item->payload + (item->len ? 2 : 0),
		    item->len ? item->len - 2 : 0);
		return;
	case WEBSOCKET_EV_ERROR:
		assert(item->error != NULL);
		t->over = true;
		t->status = item->close_code;
		t->error = item->error;
		buf_printf(&t->events, "%serror:%u",
		    t->events.len > 0 ? " " : "", item->close_code);
		return;
	}
	assert(!"unknown event");
}

/* Feeds one piece, from memory of exactly its size. */
static inline void
trace_feed(struct trace *t, const uint8_t *data, size_t len)
{
	uint8_t *piece = xmalloc(len);
	size_t at = 0;

	if (len > 0)
		memcpy(piece, data, len);
	while (at < len && !t->over) {
		struct websocket_item item;
		size_t n =
		    websocket_parse(&t->parser, piece + at, len - at, &item);

		assert(n > 0 && n <= len - at);
		if (item.event == WEBSOCKET_EV_DATA && item.len > 0)
			assert(item.payload >= piece + at &&
			       item.payload + item.len == piece + at + n);
		trace_item(t, &item);
		at += n;
		assert(item.event != WEBSOCKET_EV_NEED_MORE || at == len);
	}
	free(piece);
}

static inline const char *
trace_string(struct trace *t)
{
	buf_put_u8(&t->events, '\0');
	t->events.len--;
	return (const char *)t->events.data;
}
