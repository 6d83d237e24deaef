/* SPDX-License-Identifier: ISC */
/*
 * A channel's bytes, in pieces of random size.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>
#include <sys/socket.h>

#include "channel.h"

/* Until there is nothing more to do with what was sent so far; *count is of
 * the messages that were taken. */
static void
turn(struct channel *ch, struct event_base *base, const size_t *count)
{
	size_t before;

	do {
		before = *count;
		if (channel_is_open(ch))
			channel_pause(ch, false);
		event_base_loop(base, EVLOOP_NONBLOCK);
	} while (*count > before);
	if (channel_is_open(ch))
		channel_flush(ch);
}

static void
feed(struct channel *ch, struct event_base *base, int fd, const uint8_t *data,
    size_t len, uint32_t random, const size_t *count)
{
	while (len > 0) {
		size_t n = 1 + (random >> 16) % 97;

		random = random * 1664525 + 1013904223;
		n = n < len ? n : len;
		/* A channel that broke is closed. */
		if (send(fd, data, n, MSG_NOSIGNAL) != (ssize_t)n)
			break;
		turn(ch, base, count);
		data += n;
		len -= n;
	}
	shutdown(fd, SHUT_WR);
	turn(ch, base, count);
	turn(ch, base, count);
}
