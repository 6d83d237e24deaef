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
#include "util.h"

#define ACCEPTS_PER_WAKE 64

static struct listener {
	struct event event;
	uint32_t index;
	int fd;
} listeners[CONTROL_FDS_MAX];
static size_t count;
static int reserve_fd = -1;

static const char busy_reply[] =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "retry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

static void
format_peer(const struct sockaddr_storage *a, char peer[CONTROL_PEER_MAX])
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (a->ss_family == AF_INET6) {
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

static void
refuse(int fd)
{
	/* A short answer fits into the socket of a new connection. */
	if (send(fd, busy_reply, sizeof(busy_reply) - 1,
		MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
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
		refuse(fd);
	reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4);
}

static void
welcome(const struct listener *l, int fd, const struct sockaddr_storage *a)
{
	char peer[CONTROL_PEER_MAX];
	struct connection *c;
	int on = 1;

	format_peer(a, peer);
	if (connection_count() >= config.max_connections) {
		log_warn(0, "%s: refused, limit of %u connections reached",
		    peer, config.max_connections);
		refuse(fd);
		return;
	}
	/* Every message is complete when it is sent (quirk Q16). */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c = connection_new(l->index, fd, fd, peer);
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

void
listener_add(uint32_t index, int fd)
{
	struct listener *l = &listeners[count++];

	if (reserve_fd < 0)
		reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4);
	l->index = index;
	l->fd = fd;
	set_nonblock(fd);
	event_assign(&l->event, base, fd, EV_READ | EV_PERSIST, accept_cb, l);
	if (event_add(&l->event, NULL) < 0)
		log_fatal("listener %u: no event", index);
}

void
listener_add_stdio(uint32_t index, int in_fd, int out_fd)
{
	struct connection *c;
	struct stat st;

	/* A pipe or socket is ours alone; a terminal or file may be shared
	 * with others who do not expect it to change. */
	if (fstat(out_fd, &st) == 0 &&
	    (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		set_nonblock(out_fd);
	c = connection_new(index, in_fd, out_fd, "stdio");
	c->stdio = true;
	handshake_stdio(c);
}

void
listener_close_all(void)
{
	while (count > 0) {
		struct listener *l = &listeners[--count];

		event_del(&l->event);
		close(l->fd);
	}
}
