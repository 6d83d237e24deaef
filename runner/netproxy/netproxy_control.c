/* SPDX-License-Identifier: ISC */
#include "netproxy_control.h"

#include <event2/event.h>

#include "control.h"
#include "loop.h"
#include "proxy_client.h"
#include "proxy_names.h"
#include "seqpacket.h"

#define REFUSED_MAX 64 /* connections of a list beyond its limit */

struct waiting {
	STAILQ_ENTRY(waiting) link;
	size_t len;
	uint8_t bytes[];
};

static struct event_base *loop_base;
static struct event reading, writing;
static STAILQ_HEAD(, waiting) queue = STAILQ_HEAD_INITIALIZER(queue);
static LIST_HEAD(, proxy_list) lists = LIST_HEAD_INITIALIZER(lists);

/*
 * Nobody is let in while the runner does not read, nor beyond those that are
 * only told that they are too many.
 */
void
netproxy_control_watch(struct proxy_list *l)
{
	bool heard = STAILQ_EMPTY(&queue);
	bool accepts = heard && l->connections < l->most + REFUSED_MAX;

	if (accepts)
		loop_add(&l->accepting, NULL);
	else
		event_del(&l->accepting);
	proxy_names_watch(l, accepts, heard);
}

static void
watch_listeners(void)
{
	struct proxy_list *l;

	LIST_FOREACH(l, &lists, link)
	netproxy_control_watch(l);
}

/* --- to the runner ------------------------------------------------------ */

/* Returns false if it must wait. A runner that is gone ends this program. */
static bool
send_now(const void *bytes, size_t len)
{
	int err = seqpacket_send(CONTROL_FD, bytes, len, NULL, 0);

	if (err < 0 && err != -EAGAIN)
		exit(0);
	return err == 0;
}

static void
write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct waiting *w;

	while (
	    (w = STAILQ_FIRST(&queue)) != NULL && send_now(w->bytes, w->len)) {
		STAILQ_REMOVE_HEAD(&queue, link);
		free(w);
	}
	if (w != NULL)
		loop_add(&writing, NULL);
	else
		watch_listeners();
}

void
netproxy_control_tell(enum netproxy_type type, const union netproxy_message *m)
{
	struct buf b;
	struct waiting *w;

	buf_init(&b, NETPROXY_MESSAGE_MAX);
	netproxy_put(&b, type, m);
	if (STAILQ_EMPTY(&queue) && send_now(b.data, b.len)) {
		buf_clear(&b);
		return;
	}
	w = xmalloc(sizeof(*w) + b.len);
	w->len = b.len;
	memcpy(w->bytes, b.data, b.len);
	buf_clear(&b);
	STAILQ_INSERT_TAIL(&queue, w, link);
	if (STAILQ_NEXT(STAILQ_FIRST(&queue), link) == NULL) {
		loop_add(&writing, NULL);
		watch_listeners();
	}
}

bool
netproxy_control_is_heard(void)
{
	return STAILQ_EMPTY(&queue);
}

/* --- from the runner ---------------------------------------------------- */

static void
accept_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_list *l = arg;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client >= 0) {
		proxy_client_new(l, client);
		netproxy_control_watch(l);
	} else if (errno == EMFILE || errno == ENFILE)
		log_warn(errno, "a command's connection waits");
}

void
netproxy_control_left(struct proxy_list *l)
{
	l->connections--;
	if (l->connections < l->most)
		l->told_limit = false;
	netproxy_control_watch(l);
}

static struct proxy_list *
find_list(uint32_t number)
{
	struct proxy_list *l;

	LIST_FOREACH(l, &lists, link)
	if (l->number == number)
		break;
	return l;
}

static void
open_list(const struct netproxy_open *o, int fd, int resolver, int redirected)
{
	struct proxy_list *l = xcalloc(1, sizeof(*l));

	l->number = o->list;
	l->asks = o->asks;
	l->limited = o->limited;
	l->most = o->connections;
	l->most_bytes = o->bytes;
	l->client.allow_local = o->allow_local;
	l->listener = fd;
	l->resolver = l->redirected = -1;
	l->resolver_address = o->resolver;
	l->given = o->names;
	/* As with the peer. It is the operator's list that narrows ports. */
	l->client.every_port = true;
	LIST_INIT(&l->clients);
	STAILQ_INIT(&l->names);
	proxy_list_read(l, o->rules);
	set_nonblock(fd);
	event_assign(
	    &l->accepting, loop_base, fd, EV_READ | EV_PERSIST, accept_cb, l);
	if (resolver >= 0)
		proxy_names_open(l, resolver, redirected);
	LIST_INSERT_HEAD(&lists, l, link);
	netproxy_control_watch(l);
}

static void
close_list(uint32_t number)
{
	struct proxy_list *l = find_list(number);

	if (l == NULL)
		return;
	proxy_client_end_all(l);
	proxy_names_close(l);
	event_del(&l->accepting);
	close(l->listener);
	LIST_REMOVE(l, link);
	network_rules_clear(&l->client);
	network_rules_clear(&l->ceiling);
	free(l);
}

static void
take_answer(const struct netproxy_answer *a)
{
	struct proxy_list *l = find_list(a->list);

	if (l != NULL)
		proxy_client_answered(l, a->ask, a->allowed);
}

/* A list that was closed meanwhile needs no addresses. */
static void
take_named(const struct netproxy_named *n, const int *fds, size_t nfds)
{
	struct proxy_list *l = find_list(n->list);

	if (l != NULL)
		proxy_names_named(l, n, fds, nfds);
	else
		while (nfds > 0)
			close(fds[--nfds]);
}

static void
take_message(const void *bytes, size_t len, const int *fds, size_t nfds)
{
	union netproxy_message m;
	int type = netproxy_get(bytes, len, &m);

	if (type == NETPROXY_OPEN && nfds >= 1 && nfds <= 3 &&
	    m.open.redirected == (nfds == 3))
		open_list(&m.open, fds[0], nfds > 1 ? fds[1] : -1,
		    nfds > 2 ? fds[2] : -1);
	else if (type == NETPROXY_CLOSE && nfds == 0)
		close_list(m.close.list);
	else if (type == NETPROXY_ANSWER && nfds == 0)
		take_answer(&m.answer);
	else if (type == NETPROXY_NAMED)
		take_named(&m.named, fds, nfds);
	else
		log_fatal("impossible message from the runner");
}

static void
read_cb(evutil_socket_t fd, short what, void *arg)
{
	static uint8_t bytes[NETPROXY_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n = seqpacket_recv(fd, bytes, sizeof(bytes), fds, &nfds);

	if (n > 0)
		take_message(bytes, (size_t)n, fds, nfds);
	else if (n != -EAGAIN)
		exit(0);
}

void
netproxy_control_init(struct event_base *base)
{
	loop_base = base;
	set_nonblock(CONTROL_FD);
	event_assign(
	    &reading, base, CONTROL_FD, EV_READ | EV_PERSIST, read_cb, NULL);
	event_assign(&writing, base, CONTROL_FD, EV_WRITE, write_cb, NULL);
	loop_add(&reading, NULL);
}
