/*
 * Sockets without a descriptor.
 */
#include "parking.h"

#include <string.h>

#include "admission.h"
#include "frontend.h"
#include "inflight.h"
#include "log.h"

uint32_t parking_descriptors = UINT32_MAX;

static struct inflight sockets = INFLIGHT_INITIALIZER;
static uint64_t parked;

/* A client and its session channel; who waits will need as many. */
static uint64_t
taken(void)
{
	uint64_t connections = connection_count() + admission_waiting();

	return 2 * connections - parked + sockets.descriptors;
}

bool
parking_room(void)
{
	return taken() + 2 <= parking_descriptors;
}

/* Half of them are given away before anybody has to care. */
static bool
is_short(void)
{
	return 2 * (uint64_t)config.max_connections > parking_descriptors &&
	       2 * taken() >= parking_descriptors;
}

void
parking_put(struct connection *c)
{
	int key;

	if (!c->handed || c->in_fd < 0 || !is_short())
		return;
	key = inflight_put(&sockets, c->in_fd);
	if (key < 0) {
		log_debug(
		    "connection %u: not parked: %s", c->number, strerror(-key));
		return;
	}
	c->parked = key + 1;
	c->in_fd = c->out_fd = -1;
	parked++;
}

/* The last descriptors are given to no connection: there is one. */
void
parking_take(struct connection *c)
{
	int fd;

	if (c->parked == 0)
		return;
	fd = inflight_take(&sockets, c->parked - 1);
	if (fd < 0)
		log_fatal_errno(fd, "connection %u: its socket", c->number);
	c->parked = 0;
	parked--;
	connection_move(c, fd);
}
