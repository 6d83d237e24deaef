/* SPDX-License-Identifier: ISC */
/*
 * Listening sockets, and the agent of a proxy, whose connections get one line.
 */
#include "base.h"
#include "frontend_main.h"

#include <netinet/tcp.h>

#include "admission.h"
#include "broker_request.h"
#include "connection.h"
#include "log_limit.h"
#include "loop.h"
#include "rights.h"

/*
 * The agent of a proxy.
 */

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

/* Answers, and takes the descriptor over. */
static void
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

/*
 * Listening sockets. When descriptors run out, a reserve descriptor is closed
 * to accept and refuse one client. A waiting client then learns of it at once.
 */

#define ACCEPTS_PER_WAKE 64

static struct listener {
	struct event event;
	struct listener_traits traits;
	SSL_CTX *tls; /* NULL: no TLS */
	int fd;
	struct nets trusted; /* proxies that are believed */
} listeners[CONTROL_LISTENERS_MAX];
static size_t count;
static int reserve_fd = -1;

static void
spend_reserve(const struct listener *l)
{
	int fd;

	if (log_permits(LOG_DECISION, "accept", ""))
		log_error(-EMFILE, "accept");
	if (reserve_fd >= 0)
		close(reserve_fd);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0 && l->traits.keys.agent)
		agent_take(fd);
	else if (fd >= 0)
		admission_refuse(fd, l->tls != NULL, 1000);
	reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 4);
}

static void
welcome(const struct listener *l, int fd, const struct sockaddr_storage *a)
{
	struct visitor v = {
		.listener = l->traits.id, .fd = fd, .tls = l->tls != NULL
	};

	const struct sockaddr *from = (const struct sockaddr *)a;

	if (l->traits.keys.agent) {
		agent_take(fd);
		return;
	}
	source_text(from, v.peer);
	if (source_lies_in(from, &l->trusted))
		proxied_take(&v);
	else
		admission_take(&v, from);
}

static struct listener *
find(uint32_t id)
{
	for (size_t i = 0; i < count; i++)
		if (listeners[i].traits.id == id)
			return &listeners[i];
	return NULL;
}

static bool
begin(const struct visitor *v, bool slot)
{
	const struct listener *l = find(v->listener);
	struct connection *c;
	int on = 1;

	if (l == NULL)
		return false;
	/* Every message is sent as a whole, so Nagle's algorithm only delays it
	 * (quirk Q16). */
	if (l->traits.kind == LISTENER_WS)
		setsockopt(v->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c = connection_new(&l->traits, v->fd, v->fd,
	    l->tls != NULL ? tls_new(l->tls, v->fd) : NULL, v->peer);
	c->source = v->source;
	c->has_slot = slot;
	if (v->proxy[0] != '\0')
		c->proxy = xstrdup(v->proxy);
	connection_timer(c, config.pre_auth_deadline_ms);
	connection_read_client(c, true);
	return true;
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
	l->traits = (struct listener_traits){ order->id, order->kind,
		order->keys, order->has_operators };
	l->trusted = order->trusted;
	l->tls = tls;
	l->fd = fd;
	set_nonblock(fd);
	if (l->traits.kind == LISTENER_UNIX)
		/* closing a client's descriptor could block us */
		rights_refuse(fd);
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

static unsigned
count_connections(void)
{
	return connection_count() + (unsigned)proxied_count();
}

static const struct admission_target admission_target = {
	.begin = begin,
	.count = count_connections,
};

bool
listener_is_idle(void)
{
	for (size_t i = 0; i < count; i++)
		accept_cb(listeners[i].fd, EV_READ, &listeners[i]);
	return count_connections() == 0 && admission_waiting() == 0;
}

void
listener_take(const struct offer *o, bool start)
{
	admission_init(&admission_target);
	for (uint32_t i = 0; i < o->have; i++)
		take(&o->listeners[i].listener, o->listeners[i].fds,
		    o->listeners[i].nfds, start);
}

void
listener_prepare_stdio(const struct offer *o)
{
	struct stat st;

	/* A pipe or socket belongs to us alone. A terminal or file may be
	 * shared with programs that do not expect it to become non-blocking. */
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
		const struct listener_traits stdio = {
			.id = o->listeners[i].listener.id,
			.kind = LISTENER_STDIO,
		};

		if (o->listeners[i].listener.kind == LISTENER_STDIO)
			handshake_stdio(connection_new(
			    &stdio, fds[0], fds[1], NULL, "stdio"));
	}
}

void
listener_rest(void)
{
	for (size_t i = 0; i < count; i++)
		event_del(&listeners[i].event);
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
