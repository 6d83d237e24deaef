/* SPDX-License-Identifier: ISC */
/*
 * Commands to a runner.
 */
#include "base.h"
#include "session_registry.h"

#include "frame.h"
#include "seqpacket.h"
#include "spawn_client.h"

/* A command that does not fit into the socket means that the runner has not
 * read hundreds of messages. It is stuck, and its session with it. */
static int
send_command(struct session *s, enum control_type type, const struct buf *b,
    const int *fds, size_t nfds)
{
	int err =
	    seqpacket_send(s->runner.control.fd, b->data, b->len, fds, nfds);

	if (err < 0 && err != -EPIPE) {
		log_error(err, "session %.*s: %s: killing the runner",
		    ID_LOG_CHARS, s->id, control_name(type));
		if (s->runner.pid > 0)
			spawn_kill(s->runner.pid);
	}
	return err;
}

int
session_send_command(struct session *s, enum control_type type,
    const void *payload, const int *fds, size_t nfds)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = send_command(s, type, &b, fds, nfds);
	buf_clear(&b);
	return err;
}

void
session_commands_begin(struct session_commands *o, const int *fds, size_t nfds)
{
	buf_init(&o->packet, CONTROL_MESSAGE_MAX);
	buf_put_u32(&o->packet, RUNNER_COMMAND_SEVERAL);
	o->fds = fds;
	o->nfds = nfds;
}

void
session_commands_add(
    struct session_commands *o, enum control_type type, const void *payload)
{
	const uint8_t length[FRAME_HEADER_BYTES] = { 0 };
	size_t at = o->packet.len, begin = at + sizeof(length);

	buf_put(&o->packet, length, sizeof(length));
	control_put(&o->packet, type, payload);
	frame_put_length(
	    o->packet.data + at, (uint32_t)(o->packet.len - begin));
}

void
session_commands_send(struct session *s, struct session_commands *o)
{
	send_command(s, RUNNER_COMMAND_SEVERAL, &o->packet, o->fds, o->nfds);
	buf_clear(&o->packet);
}
