/* SPDX-License-Identifier: ISC */
/*
 * The session channel of a connection: made, read and closed.
 */
#include "connection.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frontend.h"
#include "handoff.h"
#include "log.h"
#include "relay.h"
#include "rights.h"

static void
channel_in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	if (c->handoff != NULL)
		handoff_read(c);
	else
		relay_read_runner(c);
}

static void
channel_out_cb(evutil_socket_t fd, short what, void *arg)
{
	relay_write_runner(arg);
}

/* The channel cannot be watched, so it is given up. If the runner is alive, its
 * session can be resumed. */
static void
lose_channel(struct connection *c, int err)
{
	log_error(err, "connection %u: session channel", c->number);
	c->channel.fault = CHANNEL_FAILED;
	connection_hear_end(c->channel.fd, &c->channel.in_event);
}

void
connection_read_runner(struct connection *c, bool on)
{
	if (c->channel.reading == on || c->channel.fd < 0)
		return;
	c->channel.reading = on;
	if (!on)
		event_del(&c->channel.in_event);
	else if (event_add(&c->channel.in_event, NULL) < 0)
		lose_channel(c, -errno);
}

void
connection_await_runner(struct connection *c)
{
	if (event_add(&c->channel.out_event, NULL) < 0)
		lose_channel(c, -errno);
}

int
connection_attach(struct connection *c)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		pair) < 0)
		return -errno;
	c->channel.fd = pair[0];
	rights_refuse(c->channel.fd);
	event_assign(&c->channel.in_event, base, c->channel.fd,
	    EV_READ | EV_PERSIST, channel_in_cb, c);
	event_assign(&c->channel.out_event, base, c->channel.fd, EV_WRITE,
	    channel_out_cb, c);
	connection_read_runner(c, true);
	return pair[1];
}

void
connection_drop_channel(struct connection *c)
{
	if (c->channel.fd < 0)
		return;
	event_del(&c->channel.in_event);
	event_del(&c->channel.out_event);
	close(c->channel.fd);
	c->channel.fd = -1;
	c->channel.reading = false;
}

void
connection_unattach(struct connection *c)
{
	connection_drop_channel(c);
	c->channel.fault = CHANNEL_WORKS;
	buf_clear(&c->channel.uplink.buf);
	c->channel.uplink.at = 0;
}
