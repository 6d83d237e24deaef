/* SPDX-License-Identifier: ISC */
/*
 * channel: the session frames of a peer, in pieces, are the messages that a
 * parser in ten lines finds, or break the channel at the same frame; what is
 * answered leaves in whole frames. The first byte chooses the pieces, and by
 * 0x80 whether the owner pauses at every message.
 */
#include <assert.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "channel_pieces.h"
#include "frame.h"
#include "util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MESSAGE_MAX 600

struct seen {
	struct buf messages; /* each with its header, as they came */
	size_t count;
	bool pauses, ended, broken;
};

static void
on_message(struct channel *ch, char *text, size_t len)
{
	struct seen *s = ch->owner;
	uint8_t header[FRAME_HEADER_BYTES];
	struct json_writer w = channel_begin(ch);

	assert(len > 0 && len <= MESSAGE_MAX && !s->broken && !s->ended);
	frame_put_length(header, (uint32_t)len);
	buf_put(&s->messages, header, sizeof(header));
	buf_put(&s->messages, text, len);
	s->count++;
	json_u64(&w, len);
	channel_send(ch);
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

	assert(!s->broken && !s->ended);
	s->ended = true;
}

static void
on_broken(struct channel *ch, int err)
{
	struct seen *s = ch->owner;

	assert(err < 0 && !s->broken && !s->ended);
	s->broken = true;
	channel_close(ch);
}

static const struct channel_events on = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

/* The bytes of all whole frames; *bad: one that must not be follows. */
static size_t
whole_frames(const uint8_t *data, size_t len, bool *bad)
{
	size_t at = 0;

	*bad = false;
	while (len - at >= FRAME_HEADER_BYTES) {
		uint32_t n = frame_get_length(data + at);

		*bad = n == 0 || n > MESSAGE_MAX;
		if (*bad || n > len - at - FRAME_HEADER_BYTES)
			break;
		at += FRAME_HEADER_BYTES + n;
	}
	return at;
}

/* What must come of it: a header and a text for each message, whether it came
 * whole or in pieces; *bad: a frame that must not be is next. */
static void
expect(const uint8_t *data, size_t len, struct buf *out, bool *bad)
{
	static const uint8_t header[FRAME_HEADER_BYTES];
	size_t at = 0, begun = 0, done = 0;

	*bad = false;
	while (len - at >= FRAME_HEADER_BYTES) {
		bool more = frame_get_length(data + at) & FRAME_MORE;
		uint32_t n = frame_get_length(data + at) & ~FRAME_MORE;

		*bad = (n == 0 && begun == 0) || n > MESSAGE_MAX - begun;
		if (*bad || n > len - at - FRAME_HEADER_BYTES)
			break;
		if (begun == 0)
			buf_put(out, header, sizeof(header));
		buf_put(out, data + at + FRAME_HEADER_BYTES, n);
		at += FRAME_HEADER_BYTES + n;
		begun += n;
		if (more)
			continue;
		frame_put_length(out->data + done, (uint32_t)begun);
		done = out->len;
		begun = 0;
	}
	out->len = done;
}

/* Each answer is a frame that names the length of its message. */
static void
check_answers(int fd, const struct seen *s)
{
	uint8_t answers[64 << 10];
	ssize_t n = recv(fd, answers, sizeof(answers), MSG_DONTWAIT);
	size_t len = n > 0 ? (size_t)n : 0, count = 0;
	bool bad;

	assert(whole_frames(answers, len, &bad) == len && !bad);
	for (size_t at = 0; at < len; count++)
		at += FRAME_HEADER_BYTES + frame_get_length(answers + at);
	assert(s->broken || count == s->count);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct event_base *base;
	struct channel ch;
	struct seen s = { 0 };
	int pair[2];
	struct buf whole;
	bool bad;

	if (base == NULL)
		base = event_base_new();
	if (len == 0 || len > 8192)
		return 0;
	s.pauses = data[0] & 0x80;
	buf_init(&s.messages, len);
	assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	channel_open(&ch, base, pair[0], pair[0], MESSAGE_MAX, &on, &s);
	feed(&ch, base, pair[1], data + 1, len - 1, data[0] * 2654435761u,
	    &s.count);
	buf_init(&whole, len + FRAME_HEADER_BYTES);
	expect(data + 1, len - 1, &whole, &bad);
	assert(!s.messages.failed && s.messages.len == whole.len);
	assert(whole.len == 0 ||
	       memcmp(s.messages.data, whole.data, whole.len) == 0);
	buf_clear(&whole);
	assert(s.broken == bad && s.ended == !bad);
	check_answers(pair[1], &s);
	channel_close(&ch);
	close(pair[1]);
	buf_clear(&s.messages);
	return 0;
}
