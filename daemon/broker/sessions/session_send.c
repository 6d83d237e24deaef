/* SPDX-License-Identifier: ISC */
/*
 * Commands to a runner.
 */
#include "base.h"
#include "session_registry.h"

#include "seqpacket.h"
#include "spawn_client.h"

/* A command that does not fit into the socket means that the runner has not
 * read hundreds of messages. It is stuck, and its session with it. */
int
session_send_command(struct session *s, enum control_type type,
    const void *payload, const int *fds, size_t nfds)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(
	    watch_fd(&s->runner.control), b.data, b.len, fds, nfds);
	buf_clear(&b);
	if (err < 0 && err != -EPIPE) {
		log_error(err, "session %.*s: %s: killing the runner",
		    ID_LOG_CHARS, s->id, control_name(type));
		if (s->runner.pid > 0)
			spawn_kill(s->runner.pid);
	}
	return err;
}
