/*
 * Listening sockets. When descriptors run out, a reserve one is spent to
 * accept and drop, so that a waiting client hears of it at once.
 */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connection.h"
#include "frontend.h"
#include "handshake.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "monitor_client.h"
#include "util.h"

#define ACCEPTS_PER_WAKE 64

static struct listener {
	struct event event;
	uint32_t id;
	enum listener_kind kind;
	bool operate;
	SSL_CTX *tls; /* NULL: none */
	int fd;
} listeners[CONTROL_LISTENERS_MAX];
static size_t count;
static int reserve_fd = -1;

static void
format_peer(const struct sockaddr_storage *a, char peer[CONTROL_PEER_MAX])
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (a->ss_family == AF_UNIX) {
		snprintf(peer, CONTROL_PEER_MAX, "websocket unix");
	} else if (a->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)a;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(peer, CONTROL_PEER_MAX, "websocket [%s]:%u", host,
		    ntohs(in6->sin6_port));
	} else {
		const struct sockaddr_in *in = (const void *)a;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(peer, CONTROL_PEER_MAX, "websocket %s:%u", host,
		    ntohs(in->sin_port));
	}
}

/* What a flood could fill the log with: a line a second, and how many it
 * stands for. */
static void
log_refusal(const char *peer, const char *why, uint32_t limit)
{
	static int64_t logged_ms;
	static unsigned unlogged;
	int64_t now = now_ms();

	if (logged_ms != 0 && now - logged_ms < 1000) {
		unlogged++;
		return;
	}
	log_warn(0,
	    "%s: refused, limit of %u connections %sreached; %u more "
	    "refused since the last such line",
	    peer, limit, why, unlogged);
	logged_ms = now;
	unlogged = 0;
}

/* With TLS there is no short way to say anything. */
static void
refuse(const struct listener *l, int fd, int64_t wait_ms)
{
	char reply[160];
	int n = snprintf(reply, sizeof(reply),
	    "HTTP/1.1 503 Service Unavailable\r\nretry-after: %lld\r\n"
	    "connection: close\r\ncontent-length: 0\r\n\r\n",
	    (long long)((wait_ms + 999) / 1000));

	/* A short answer fits into the socket of a new connection. */
	if (l->tls == NULL &&
	    send(fd, reply, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("a refused client did not hear of it");
	close(fd);
}

static void
spend_reserve(const struct listener *l)
{
	int fd;

	log_error(-EMFILE, "accept");
	if (reserve_fd >= 0)
		close(reserve_fd);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		refuse(l, fd, 1000);
	reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4);
}

/* False: it was refused. Of penalties the log heard when they were given. */
static bool
admit(const struct listener *l, int fd, const struct sockaddr_storage *a,
    const char *peer, struct source **source)
{
	uint32_t max = config.max_connections < connections_possible
			   ? config.max_connections
			   : connections_possible;
	int64_t wait_ms = 1000;

	*source = NULL;
	if (connection_count() >= max) {
		log_refusal(peer, "", max);
		metrics.refused_limit++;
		refuse(l, fd, wait_ms);
		return false;
	}
	switch (source_admit(
	    &config, (const struct sockaddr *)a, now_ms(), source, &wait_ms)) {
	case ADMITTED:
		metrics.accepted++;
		return true;
	case REFUSED_CONNECTIONS:
		log_refusal(peer, "of one source ", config.max_per_source);
		metrics.refused_source++;
		break;
	case REFUSED_PENALTY:
		metrics.refused_penalty++;
		log_debug("%s: refused for %lld ms", peer, (long long)wait_ms);
		break;
	}
	refuse(l, fd, wait_ms);
	return false;
}

static void
welcome(const struct listener *l, int fd, const struct sockaddr_storage *a)
{
	char peer[CONTROL_PEER_MAX];
	struct source *source;
	struct connection *c;
	int on = 1;

	format_peer(a, peer);
	if (!admit(l, fd, a, peer, &source))
		return;
	/* Every message is complete when it is sent (quirk Q16). */
	if (l->kind == LISTENER_WS)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c = connection_new(l->id, fd, fd, peer);
	c->source = source;
	c->unix_peer = l->kind == LISTENER_UNIX;
	c->operate = l->operate;
	if (l->tls != NULL) {
		c->tls = tls_new(l->tls, fd);
		c->state = CONN_TLS;
	}
	connection_timer(c, config.pre_auth_deadline_ms);
	connection_read_client(c, true);
}

static void
accept_cb(evutil_socket_t fd, short what, void *arg)
{
	const struct listener *l = arg;

	for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
		struct sockaddr_storage a = { 0 };
		socklen_t len = sizeof(a);
		int client = accept4(fd, (struct sockaddr *)&a, &len,
		    SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client >= 0) {
			welcome(l, client, &a);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE)
			spend_reserve(l);
		else if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

static void
add(const struct control_listener *order, int fd, SSL_CTX *tls)
{
	struct listener *l = &listeners[count++];

	if (reserve_fd < 0)
		reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4);
	l->id = order->id;
	l->kind = order->kind;
	l->operate = order->operate;
	l->tls = tls;
	l->fd = fd;
	set_nonblock(fd);
	event_assign(&l->event, base, fd, EV_READ | EV_PERSIST, accept_cb, l);
	loop_add(&l->event, NULL);
}

static void
take(const struct control_listener *l, const int *fds, size_t nfds, bool start)
{
	SSL_CTX *tls = NULL;

	if (l->kind == LISTENER_STDIO)
		return;
	if (l->tls)
		tls = tls_context(l, fds[1], nfds > 2 ? fds[2] : -1);
	if (l->tls && tls == NULL && start)
		log_fatal("listener %u: no TLS", l->id);
	for (size_t i = 1; i < nfds; i++)
		close(fds[i]);
	if (l->tls && tls == NULL)
		close(fds[0]);
	else
		add(l, fds[0], tls);
}

void
listener_take(const struct offer *o, bool start)
{
	for (uint32_t i = 0; i < o->have; i++)
		take(&o->listeners[i].listener, o->listeners[i].fds,
		    o->listeners[i].nfds, start);
}

void
listener_prepare_stdio(const struct offer *o)
{
	struct stat st;

	/* A pipe or socket is ours alone; a terminal or file may be shared
	 * with others who do not expect it to change. */
	for (uint32_t i = 0; i < o->have; i++)
		if (o->listeners[i].listener.kind == LISTENER_STDIO &&
		    fstat(o->listeners[i].fds[1], &st) == 0 &&
		    (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
			set_nonblock(o->listeners[i].fds[1]);
}

void
listener_take_stdio(const struct offer *o)
{
	for (uint32_t i = 0; i < o->have; i++) {
		const int *fds = o->listeners[i].fds;
		struct connection *c;

		if (o->listeners[i].listener.kind != LISTENER_STDIO)
			continue;
		c = connection_new(
		    o->listeners[i].listener.id, fds[0], fds[1], "stdio");
		c->stdio = true;
		handshake_stdio(c);
	}
}

void
listener_close_all(void)
{
	while (count > 0) {
		struct listener *l = &listeners[--count];

		event_del(&l->event);
		tls_context_free(l->tls);
		close(l->fd);
	}
}
