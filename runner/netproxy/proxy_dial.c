/* SPDX-License-Identifier: ISC */
/*
 * Names are resolved by getaddrinfo(3), as every program of the machine does
 * it, in threads: it waits. A thread owns its lookup until it has written the
 * pointer into the pipe; then the loop does. A lookup that nobody waits for any
 * more is freed there.
 */
#include "proxy_dial.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>

#include "loop.h"
#include "own_ports.h"
#include "queue.h"

#define THREADS_MAX	16
#define ADDRESSES_MAX	16 /* of one name */
#define STACK_BYTES	(256u << 10)
#define ATTEMPT_SECONDS 10 /* for one address, if others are left */

struct lookup {
	STAILQ_ENTRY(lookup) link; /* waiting */
	char name[HOST_NAME_BYTES];
	struct proxy_dial *dial; /* NULL: cancelled */
	int err;		 /* of getaddrinfo(3) */
	struct addrinfo *found;
};

struct proxy_dial {
	struct host_name host;
	uint16_t port;
	const struct proxy_dial_events *events;
	void *arg;
	struct lookup *lookup; /* NULL: it has come back */
	struct in6_addr addresses[ADDRESSES_MAX];
	size_t count, next;
	bool found_any;
	int fd, err;
	struct event connecting, deadline;
};

static struct event_base *loop_base;
static int own_ports; /* of own_ports_open() */
static int results[2];
static struct event result_event;
static STAILQ_HEAD(, lookup) waiting = STAILQ_HEAD_INITIALIZER(waiting);
static unsigned threads;

static void
lookup_free(struct lookup *l)
{
	if (l->found != NULL)
		freeaddrinfo(l->found);
	free(l);
}

static void *
look_up(void *arg)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_ADDRCONFIG };
	struct lookup *l = arg;

	/* The name that was judged, and not one with a domain behind it. */
	if (res_init() == 0)
		_res.options &= ~(RES_DNSRCH | RES_DEFNAMES);
	l->err = getaddrinfo(l->name, NULL, &hints, &l->found);
	/* A pointer is smaller than PIPE_BUF, so it is written whole. */
	if (write(results[1], &l, sizeof(l)) != sizeof(l))
		log_fatal("the pipe of the resolver is broken");
	return NULL;
}

/* Starts threads for lookups that wait. */
static void
start_lookups(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (threads < THREADS_MAX && !STAILQ_EMPTY(&waiting)) {
		struct lookup *l = STAILQ_FIRST(&waiting);

		if (l->dial != NULL &&
		    pthread_create(&thread, &attr, look_up, l) != 0)
			break;
		STAILQ_REMOVE_HEAD(&waiting, link);
		if (l->dial != NULL)
			threads++;
		else
			lookup_free(l);
	}
	pthread_attr_destroy(&attr);
}

void
proxy_dial_cancel(struct proxy_dial *d)
{
	event_del(&d->connecting);
	event_del(&d->deadline);
	if (d->lookup != NULL)
		d->lookup->dial = NULL;
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

static void
fail(struct proxy_dial *d, int err, const char *why)
{
	const struct proxy_dial_events *events = d->events;
	void *arg = d->arg;

	proxy_dial_cancel(d);
	events->failed(arg, err, why);
}

static void try_next(struct proxy_dial *d);

static void
succeed(struct proxy_dial *d)
{
	const struct proxy_dial_events *events = d->events;
	void *arg = d->arg;
	int fd = steal_fd(&d->fd);

	proxy_dial_cancel(d);
	events->connected(arg, fd);
}

static void
connecting_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_dial *d = arg;
	socklen_t len = sizeof(d->err);

	if (what & EV_TIMEOUT)
		d->err = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &d->err, &len) < 0)
		d->err = errno;
	if (d->err == 0) {
		succeed(d);
		return;
	}
	close(d->fd);
	d->fd = -1;
	try_next(d);
}

/* Returns a socket that is connecting, or -errno; -OWN_PORTS_ERRNO for one of
 * execd's,
 * about which the kernel is asked now, whatever led here. */
static int
begin_connect(const struct in6_addr *address, uint16_t port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = *address };
	struct sockaddr_in four = { .sin_family = AF_INET,
		.sin_port = htons(port) };
	bool is_four = IN6_IS_ADDR_V4MAPPED(address);
	const struct sockaddr *to =
	    is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	int fd, err;

	memcpy(&four.sin_addr, &address->s6_addr[12], 4);
	if (own_ports_has(own_ports, to))
		return -OWN_PORTS_ERRNO;
	fd = socket(
	    to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, to, is_four ? sizeof(four) : sizeof(six)) == 0 ||
	    errno == EINPROGRESS)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void
try_next(struct proxy_dial *d)
{
	while (d->next < d->count) {
		int fd = begin_connect(&d->addresses[d->next++], d->port);

		if (fd < 0) {
			d->err = -fd;
			continue;
		}
		d->fd = fd;
		event_assign(
		    &d->connecting, loop_base, fd, EV_WRITE, connecting_cb, d);
		loop_add_ms(&d->connecting, ATTEMPT_SECONDS * 1000);
		return;
	}
	fail(d, d->err, strerror(d->err));
}

/* Keeps an address if it is permitted. */
static void
take_address(struct proxy_dial *d, const struct sockaddr *from)
{
	struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (from->sa_family == AF_INET)
		memcpy(&address.s6_addr[12],
		    &((const struct sockaddr_in *)(const void *)from)->sin_addr,
		    4);
	else if (from->sa_family == AF_INET6)
		address = ((const struct sockaddr_in6 *)(const void *)from)
			      ->sin6_addr;
	else
		return;
	d->found_any = true;
	if (d->count < ADDRESSES_MAX && d->events->permit(d->arg, &address))
		d->addresses[d->count++] = address;
}

static void
begin(struct proxy_dial *d, int err)
{
	if (d->count > 0)
		try_next(d);
	else if (d->found_any)
		fail(d, EACCES, "no address of it is permitted");
	else
		fail(d, 0,
		    err == EAI_SYSTEM || err == 0 ? "the name has no address"
						  : gai_strerror(err));
}

static void
found(struct lookup *l)
{
	struct proxy_dial *d = l->dial;

	if (d != NULL) {
		d->lookup = NULL;
		for (struct addrinfo *at = l->found; at; at = at->ai_next)
			take_address(d, at->ai_addr);
		begin(d, l->err);
	}
	lookup_free(l);
}

static void
result_cb(evutil_socket_t fd, short what, void *arg)
{
	struct lookup *l;

	if (read(fd, &l, sizeof(l)) != sizeof(l))
		return;
	threads--;
	found(l);
	start_lookups();
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_dial *d = arg;

	if (d->lookup != NULL)
		fail(d, ETIMEDOUT, "the name was not resolved in time");
	else
		fail(d, ETIMEDOUT, strerror(ETIMEDOUT));
}

/* An address needs no lookup, but its events come from the loop as well. */
static void
address_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_dial *d = arg;

	d->found_any = true;
	if (d->events->permit(d->arg, &d->host.address))
		d->addresses[d->count++] = d->host.address;
	begin(d, 0);
}

void
proxy_dial_init(struct event_base *base)
{
	loop_base = base;
	own_ports = own_ports_open();
	if (own_ports < 0)
		log_fatal_errno(own_ports, "the routes of this host");
	if (pipe2(results, O_CLOEXEC) < 0)
		log_fatal("no pipe for the resolver: %s", strerror(errno));
	set_nonblock(results[0]);
	event_assign(&result_event, base, results[0], EV_READ | EV_PERSIST,
	    result_cb, NULL);
	loop_add(&result_event, NULL);
}

struct proxy_dial *
proxy_dial(const struct host_name *host, uint16_t port,
    const struct proxy_dial_events *events, void *arg)
{
	struct proxy_dial *d = xcalloc(1, sizeof(*d));

	d->host = *host;
	d->port = port;
	d->events = events;
	d->arg = arg;
	d->fd = -1;
	event_assign(&d->deadline, loop_base, -1, 0, deadline_cb, d);
	loop_add_ms(&d->deadline, PROXY_DIAL_SECONDS * 1000);
	event_assign(&d->connecting, loop_base, -1, 0, address_cb, d);
	if (host->is_address) {
		loop_add_ms(&d->connecting, 0);
		return d;
	}
	d->lookup = xcalloc(1, sizeof(*d->lookup));
	memcpy(d->lookup->name, host->text, sizeof(host->text));
	d->lookup->dial = d;
	STAILQ_INSERT_TAIL(&waiting, d->lookup, link);
	start_lookups();
	return d;
}
