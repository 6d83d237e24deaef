/* SPDX-License-Identifier: ISC */
/*
 * direct: what a client sends to a runner that it was handed to, in pieces, is
 * the messages that the parser of frames finds in one piece, and ends with the
 * same code; what is answered leaves in whole frames. The first byte chooses
 * the pieces, how much came along with the hand-over, and by 0x80 whether the
 * owner pauses at every message.
 */
#include <assert.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel_direct.h"
#include "channel_pieces.h"
#include "control.h"
#include "frame.h"
#include "rights.h"
#include "util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MESSAGE_MAX 600

static const struct control_session_config terms = { .ping_interval_ms =
							 3600 * 1000 };

struct seen {
	struct buf messages; /* each with its length, without initialize */
	size_t count;
	bool begun, pauses, ended;
};

static void
put_message(struct seen *s, const void *text, size_t len)
{
	buf_put_u32(&s->messages, (uint32_t)len);
	buf_put(&s->messages, text, len);
	s->count++;
}

static void
on_message(struct channel *ch, char *text, size_t len)
{
	struct seen *s = ch->owner;
	struct json_writer w = channel_begin(ch);

	assert(len > 0 && len <= MESSAGE_MAX && !s->ended);
	json_u64(&w, len);
	channel_send(ch);
	if (s->begun)
		put_message(s, text, len);
	s->begun = true;
	if (s->pauses)
		channel_pause(ch, true);
}

static void
on_drained(struct channel *ch)
{
}

static void
on_ended(struct channel *ch)
{
	struct seen *s = ch->owner;

	assert(!s->ended);
	s->ended = true;
}

static void
on_broken(struct channel *ch, int err)
{
	assert(!"a client cannot break the channel");
}

static const struct channel_events on = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

static void
hand_over(int front_end, int client, const uint8_t *kept, size_t n)
{
	static const char text[] = "{}";
	uint8_t header[2 * FRAME_HEADER_BYTES];
	struct iovec iov[] = { { header, sizeof(header) },
		{ (void *)(uintptr_t)text, 2 },
		{ (void *)(uintptr_t)kept, n } };

	frame_put_length(header, (uint32_t)(FRAME_HEADER_BYTES + 2 + n));
	frame_put_length(header + FRAME_HEADER_BYTES, 2);
	assert(rights_send(front_end, iov, 3, client) > 0);
	close(client);
}

/* What must come of it. Returns the code it ends with. */
static uint16_t
expect(uint8_t *data, size_t len, struct seen *s)
{
	struct websocket_parser p;
	struct websocket_item item;
	struct buf message;
	uint16_t code = 0;

	websocket_parser_init(&p, MESSAGE_MAX);
	buf_init(&message, MESSAGE_MAX);
	for (size_t at = 0; at < len && code == 0;) {
		at += websocket_parse(&p, data + at, len - at, &item);
		code = item.close_code;
		if (item.event != WEBSOCKET_EV_DATA)
			continue;
		buf_put(&message, item.payload, item.len);
		if (!item.last)
			continue;
		put_message(s, message.len ? message.data : (uint8_t *)" ",
		    message.len ? message.len : 1);
		message.len = 0;
	}
	buf_clear(&message);
	return code;
}

/* The last report names the code; answers and pongs are whole frames. */
static void
check_ends(int front_end, int client, uint16_t code)
{
	uint8_t bytes[64 << 10];
	struct control_client r;
	struct websocket_parser p;
	struct websocket_item item = { .event = WEBSOCKET_EV_NEED_MORE };
	ssize_t n = recv(front_end, bytes, sizeof(bytes), MSG_DONTWAIT);
	size_t at = 0, size = 0, len = n > 0 ? (size_t)n : 0;

	while (at < len) {
		size = frame_get_length(bytes + at);
		at += FRAME_HEADER_BYTES + size;
	}
	assert(at == len && len > 0);
	assert(control_get(bytes + at - size, size, CHANNEL_CLIENT, &r) == 0);
	assert(r.event == CLIENT_ENDED && r.close_code == code);
	n = recv(client, bytes, sizeof(bytes), MSG_DONTWAIT);
	len = n > 0 ? (size_t)n : 0;
	websocket_parser_init_client(&p, MESSAGE_MAX);
	for (at = 0; at < len;) {
		at += websocket_parse(&p, bytes + at, len - at, &item);
		assert(item.event != WEBSOCKET_EV_ERROR);
	}
	assert(item.event != WEBSOCKET_EV_NEED_MORE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct event_base *base;
	struct channel ch;
	struct seen s = { 0 }, expected = { 0 };
	_cleanup_free_ uint8_t *copy = NULL;
	int channel[2], client[2];
	size_t kept;

	if (base == NULL)
		base = event_base_new();
	if (len == 0 || len > 8192)
		return 0;
	s.pauses = data[0] & 0x80;
	kept = data[0] % 31 < len - 1 ? data[0] % 31 : len - 1;
	buf_init(&s.messages, SIZE_MAX);
	buf_init(&expected.messages, SIZE_MAX);
	assert(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) == 0);
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client) == 0);
	channel_open(&ch, base, channel[0], channel[0], MESSAGE_MAX, &on, &s);
	ch.hand_over = &terms;
	hand_over(channel[1], client[1], data + 1, kept);
	turn(&ch, base, &s.count);
	feed(&ch, base, client[0], data + 1 + kept, len - 1 - kept,
	    data[0] * 2654435761u, &s.count);
	copy = xmalloc(len);
	memcpy(copy, data + 1, len - 1);
	check_ends(channel[1], client[0], expect(copy, len - 1, &expected));
	assert(s.ended && s.messages.len == expected.messages.len);
	assert(s.messages.len == 0 ||
	       memcmp(s.messages.data, expected.messages.data,
		   s.messages.len) == 0);
	channel_close(&ch);
	close(channel[1]);
	close(client[0]);
	buf_clear(&s.messages);
	buf_clear(&expected.messages);
	return 0;
}
