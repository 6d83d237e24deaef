/* SPDX-License-Identifier: ISC */
/*
 * A compromised runner: stands where execd-runner does, and becomes the real
 * one as long as the test has written no settings. Then each life says to the
 * broker and to the front-end what a runner may say, in any order, passes
 * descriptors that nobody asked for, and ends with what it may not say.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "frame.h"
#include "rogue.h"
#include "seqpacket.h"
#include "util.h"

static void
become_real(char **argv)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 8);

	if (n < 0)
		exit(1);
	strcpy(path + n, ".real");
	execv(path, argv);
	exit(1);
}

/* The order of that type; its first descriptor, or -1. */
static int
wait_order(enum control_type type)
{
	struct pollfd ready = { .fd = CONTROL_FD, .events = POLLIN };
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	for (;;) {
		poll(&ready, 1, -1);
		n = seqpacket_recv(
		    CONTROL_FD, packet, sizeof(packet), fds, &nfds);
		if (n <= 0)
			exit(0);
		if (control_peek(packet, (size_t)n) == type)
			return nfds > 0 ? fds[0] : -1;
	}
}

static void
report(enum control_type type, const void *payload, size_t nfds)
{
	struct buf b;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	rogue_send(CONTROL_FD, b.data, b.len, nfds);
	buf_clear(&b);
}

/* What the tables permit: this generation, or one before it. */
static void
report_anything_permitted(void)
{
	struct control_detached d = { .generation = rogue_pick(2),
		.end = (uint8_t)rogue_pick(CHANNEL_END_RUNNER + 1) };

	report(RUNNER_EVENT_DETACHED, &d, 0);
}

/* All of it, though the channel is full. False: it hung up. */
static bool
send_all(int channel, const uint8_t *p, size_t n)
{
	struct pollfd room = { .fd = channel, .events = POLLOUT };

	while (n > 0) {
		ssize_t sent = send(channel, p, n, MSG_NOSIGNAL);

		if (sent < 0 && poll(&room, 1, 5000) <= 0)
			return false;
		if (sent < 0 && room.revents & (POLLHUP | POLLERR))
			return false;
		p += sent > 0 ? sent : 0;
		n -= sent > 0 ? (size_t)sent : 0;
	}
	return true;
}

/* Frames that the front-end passes on whatever they hold; sometimes with
 * descriptors, which nobody takes. False: it hung up. */
static bool
send_frame(int channel)
{
	static uint8_t frame[70000];
	uint32_t n = 1 + rogue_pick(rogue_pick(50) ? 200 : 65536);

	rogue_fill(frame + FRAME_HEADER_BYTES, n < 300 ? n : 300);
	frame_put_length(frame, n);
	return send_all(channel, frame, n + FRAME_HEADER_BYTES);
}

/* What the front-end may be told of a client that it handed over. */
static bool
send_report(int channel)
{
	struct control_client c = { .event = (uint8_t)rogue_pick(2),
		.received = rogue_pick(UINT32_MAX),
		.sent = rogue_pick(UINT32_MAX),
		.close_code = rogue_pick(2) ? 1000 : 0 };
	struct buf b;
	bool sent;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	buf_put_u32(&b, 0);
	control_put(&b, CHANNEL_CLIENT, &c);
	frame_put_length(b.data, (uint32_t)b.len - FRAME_HEADER_BYTES);
	sent = send_all(channel, b.data, b.len);
	buf_clear(&b);
	return sent;
}

/* It is ours now: to be talked to in any way. */
static void
say_anything(int client)
{
	uint8_t bytes[300];

	if (rogue_pick(100))
		return;
	rogue_fill(bytes, sizeof(bytes));
	send(client, bytes, 1 + rogue_pick(sizeof(bytes)),
	    MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The client's socket, or -1: its messages are passed on. */
static int
wait_initialize(int channel)
{
	char drop[4096], space[CMSG_SPACE(sizeof(int))];
	struct pollfd ready = { .fd = channel, .events = POLLIN };
	struct iovec iov = { drop, sizeof(drop) };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space) };
	struct cmsghdr *c;
	int client = -1;

	poll(&ready, 1, -1);
	if (recvmsg(channel, &m, 0) <= 0)
		exit(0);
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL)
		memcpy(&client, CMSG_DATA(c), sizeof(client));
	return client;
}

static void
answer_initialize(int channel)
{
	static const char text[] = "{\"id\":1,\"result\":{}}";
	uint8_t frame[FRAME_HEADER_BYTES + sizeof(text) - 1];

	frame_put_length(frame, sizeof(text) - 1);
	memcpy(frame + FRAME_HEADER_BYTES, text, sizeof(text) - 1);
	send(channel, frame, sizeof(frame), MSG_NOSIGNAL);
}

/* To the broker: what is not in its table, or names what never was. */
static void
violate(void)
{
	struct control_detached d = { .generation = 2 + rogue_pick(99) };
	struct control_unwatched u = { .number = rogue_pick(99) };
	struct control_exited e = { .code = 0 };

	switch (rogue_pick(7)) {
	case 0:
		report(RUNNER_EVENT_DETACHED, &d, 0);
		break;
	case 1:
		report(RUNNER_EVENT_UNWATCHED, &u, 0);
		break;
	case 2:
		report(RUNNER_EVENT_EXITED, &e, 0); /* there is no audit */
		break;
	case 3:
		report(RUNNER_EVENT_END, NULL, 1 + rogue_pick(252));
		break;
	case 4:
		break;
	default:
		while (!rogue_send_anything(CONTROL_FD))
			continue;
	}
}

static void
end(int channel, unsigned long flood)
{
	static const uint8_t impossible[] = { 0, 0, 0, 0 };

	switch (rogue_pick(4)) {
	case 0:
		/* Without a word, and lives on. */
		close(channel);
		break;
	case 1:
		send_all(channel, impossible, sizeof(impossible));
		break;
	case 2:
		report(RUNNER_EVENT_END, NULL, 1);
		/* fall through */
	default:
		violate();
		while (flood-- > 0 && rogue_send_anything(CONTROL_FD))
			continue;
	}
	for (;;)
		pause();
}

static void
play_session(void)
{
	struct rogue_settings settings;
	unsigned life = rogue_begin(&settings);
	int channel, client;

	wait_order(RUNNER_COMMAND_SANDBOX);
	channel = wait_order(RUNNER_COMMAND_ATTACH);
	client = wait_initialize(channel);
	if (client < 0)
		answer_initialize(channel);
	for (unsigned long i = 0; i < settings.messages; i++) {
		report_anything_permitted();
		if (client >= 0)
			say_anything(client);
		if (!(client < 0 ? send_frame(channel) : send_report(channel)))
			break;
	}
	rogue_say("runner %u: %lu messages", life, settings.messages);
	end(channel, settings.messages);
}

static bool
is_honest(void)
{
	char text[100];

	return !rogue_load("settings", text, sizeof(text)) || text[0] == '\0';
}

int
main(int argc, char **argv)
{
	if (argc > 1 || is_honest())
		become_real(argv);
	play_session();
}
