/* SPDX-License-Identifier: ISC */
/*
 * The agent of a proxy.
 */
#include "agent.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frontend.h"
#include "health.h"
#include "log.h"
#include "util.h"

/* The most connections that wait for the other side to close. With another one
 * the oldest is closed, so that silent ones cost nothing more. */
#define LINGERING_MAX 16

/* A broker that hangs is replaced before this, and the sessions go on. A proxy
 * that took this host for down meanwhile would send those who resume to other
 * hosts, which do not have their sessions. */
#define BROKER_LOST_MS 20000

static uint8_t room_percent = 100;

static struct lingering {
	struct event event;
	int fd; /* valid if `used` */
	bool used;
} lingering[LINGERING_MAX];
static size_t oldest;

void
agent_set_room(uint8_t percent)
{
	room_percent = percent;
}

/* HAProxy forgets a drain only when it reads "ready". */
static const char *
write_state(char text[32])
{
	if (frontend_drain != DRAIN_NONE)
		return "drain\n";
	if (health_silent_ms() > BROKER_LOST_MS)
		return "down\n";
	snprintf(text, 32, "ready up %u%%\n",
	    health_reason() != NULL ? 0u : (unsigned)room_percent);
	return text;
}

static void
drop(struct lingering *l)
{
	if (!l->used)
		return;
	event_del(&l->event);
	close(l->fd);
	l->used = false;
}

/* What the other side sends is thrown away. Without reading it, close(2) would
 * reset the connection, and the answer could be lost. */
static void
discard_cb(evutil_socket_t fd, short what, void *arg)
{
	char rest[512];
	ssize_t n = recv(fd, rest, sizeof(rest), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		drop(arg);
}

void
agent_take(int fd)
{
	struct lingering *l = &lingering[oldest++ % LINGERING_MAX];
	char text[32];
	const char *state = write_state(text);

	/* A short answer fits into the buffer of a new connection. */
	if (send(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("an agent check did not hear the answer");
	shutdown(fd, SHUT_WR);
	drop(l);
	l->fd = fd;
	l->used = true;
	event_assign(&l->event, base, fd, EV_READ | EV_PERSIST, discard_cb, l);
	if (event_add(&l->event, NULL) < 0)
		drop(l);
}

void
agent_end(void)
{
	for (size_t i = 0; i < LINGERING_MAX; i++)
		drop(&lingering[i]);
}
