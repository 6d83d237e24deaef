/* SPDX-License-Identifier: ISC */
/*
 * A broker of a later release, for tests: it begins, and root's execd does not
 * speak its version.
 */
#include <stdlib.h>
#include <unistd.h>

#include "control_spawn.h"
#include "seqpacket.h"

int
main(void)
{
	const struct {
		struct spawn_head head;
		struct control_begin begin;
	} begin = { { SPAWN_BEGIN, SPAWN_VERSION + 1 }, { 0 } };
	const char *channel = getenv(SPAWN_CHANNEL_VARIABLE);
	int pair[2];

	if (channel == NULL || seqpacket_pair(pair) < 0 ||
	    seqpacket_send(atoi(channel), &begin,
		sizeof(begin.head) + sizeof(begin.begin), &pair[1], 1) < 0)
		return 1;
	for (;;)
		pause();
}
