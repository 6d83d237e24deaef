/* SPDX-License-Identifier: ISC */
/*
 * Brokers for tests: one of a later release, which begins, and root's execd
 * does not speak its version; and with -DSEALS one that makes a list and fails
 * when it is to serve. The latter stops execd before it seals the list, so that
 * execd sees the list and the end of its broker at once. It may stop root's
 * execd, because a broker's program itself becomes another user, and this one
 * does not.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "control_spawn.h"
#include "seqpacket.h"

#ifndef SEALS
#define SEALS 0
#endif

static int
seal(int channel)
{
	const struct {
		struct spawn_head head;
		struct control_seal seal;
	} m = { { SPAWN_SEAL, SPAWN_VERSION },
		{ .uid = getuid(), .gid = getgid() } };
	struct pollfd answer = { .fd = channel, .events = POLLIN };
	char byte;

	/* The answer is READY. */
	if (poll(&answer, 1, -1) < 0 || read(channel, &byte, 1) < 0)
		return 1;
	kill(getppid(), SIGSTOP);
	if (seqpacket_send(
		channel, &m, sizeof(m.head) + sizeof(m.seal), NULL, 0) < 0)
		return 1;
	return 2;
}

int
main(void)
{
	const struct {
		struct spawn_head head;
		struct control_begin begin;
	} begin = { { SPAWN_BEGIN, SPAWN_VERSION + !SEALS }, { 0 } };
	const char *channel = getenv(SPAWN_CHANNEL_VARIABLE);

	if (channel == NULL ||
	    seqpacket_send(atoi(channel), &begin,
		sizeof(begin.head) + sizeof(begin.begin), NULL, 0) < 0)
		return 1;
	if (SEALS)
		return seal(atoi(channel));
	for (;;)
		pause();
}
