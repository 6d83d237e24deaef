/* SPDX-License-Identifier: ISC */
#include "proxy_names.h"

#include <event2/event.h>
#include <sys/socket.h>

#include "base.h"
#include "loop.h"
#include "netproxy_control.h"
#include "proxy_client.h"
#include "proxy_dns.h"

/* Look-ups that are taken before others have their turn. */
#define AT_ONCE 16
/* Look-ups of a list that wait for the runner. Who comes then asks again. */
#define WAITING_MAX 64

struct lookup {
	STAILQ_ENTRY(lookup) link; /* proxy_name.waiting */
	struct sockaddr_in from;
	struct dns_query query;
};

struct proxy_listener {
	struct proxy_name *name;
	int fd;
	uint16_t port;
	struct event accepting;
};

struct proxy_name {
	STAILQ_ENTRY(proxy_name) link; /* proxy_list.names */
	struct proxy_list *list;
	uint32_t number;
	struct host_name host;
	uint32_t address; /* in host order; 0: the runner was asked for it */
	struct proxy_listener listeners[NETPROXY_PORTS_MAX];
	size_t nports;
	STAILQ_HEAD(, lookup) waiting;
};

static struct event_base *loop_base;

/* --- connections -------------------------------------------------------- */

static void
accept_cb(evutil_socket_t fd, short what, void *arg)
{
	const struct proxy_listener *at = arg;
	struct proxy_list *l = at->name->list;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client >= 0) {
		proxy_client_direct(l, client, &at->name->host, at->port);
		netproxy_control_watch(l);
	} else if (errno == EMFILE || errno == ENFILE)
		log_warn(errno, "a command's connection waits");
}

static void
watch_listeners(struct proxy_name *n, bool accepts)
{
	for (size_t i = 0; n->address != 0 && i < n->nports; i++)
		if (accepts)
			loop_add(&n->listeners[i].accepting, NULL);
		else
			event_del(&n->listeners[i].accepting);
}

/* --- names -------------------------------------------------------------- */

static struct proxy_name *
name_new(struct proxy_list *l, const struct host_name *host,
    const uint16_t *ports, size_t nports)
{
	struct proxy_name *n = xcalloc(1, sizeof(*n));

	n->list = l;
	n->number = ++l->last_name;
	n->host = *host;
	n->nports = nports;
	for (size_t i = 0; i < nports; i++)
		n->listeners[i] = (struct proxy_listener){
			.name = n, .fd = -1, .port = ports[i]
		};
	STAILQ_INIT(&n->waiting);
	STAILQ_INSERT_TAIL(&l->names, n, link);
	return n;
}

static void
name_free(struct proxy_name *n)
{
	struct lookup *w;

	watch_listeners(n, false);
	for (size_t i = 0; i < n->nports; i++)
		if (n->listeners[i].fd >= 0)
			close(n->listeners[i].fd);
	while ((w = STAILQ_FIRST(&n->waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&n->waiting, link);
		n->list->lookups--;
		free(w);
	}
	STAILQ_REMOVE(&n->list->names, n, proxy_name, link);
	free(n);
}

static struct proxy_name *
find_name(const struct proxy_list *l, const char *text)
{
	struct proxy_name *n;

	STAILQ_FOREACH (n, &l->names, link)
		if (strcmp(n->host.text, text) == 0)
			break;
	return n;
}

static void
ask_runner(const struct proxy_name *n)
{
	union netproxy_message m = { .name = { .list = n->list->number,
					 .name = n->number,
					 .nports = (uint32_t)n->nports } };

	for (size_t i = 0; i < n->nports; i++)
		m.name.ports[i] = n->listeners[i].port;
	netproxy_control_tell(NETPROXY_NAME, &m);
}

/* --- answers ------------------------------------------------------------ */

/* An answer for which there is no room is lost, as others of UDP are. */
static void
answer(const struct proxy_list *l, const struct sockaddr_in *to,
    const struct dns_query *q, enum dns_code code, uint32_t address)
{
	uint8_t bytes[DNS_ANSWER_MAX];
	size_t n = dns_answer_write(bytes, q, code, address);

	if (sendto(l->resolver, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL,
		(const struct sockaddr *)to, sizeof(*to)) < 0)
		log_debug("an answer to a look-up: %s", strerror(errno));
}

/* Most look-ups come twice, for both kinds of addresses; they count once. */
static bool
is_second_half(
    struct proxy_list *l, const struct host_name *host, uint16_t type)
{
	bool second = l->denied_type != 0 && l->denied_type != type &&
		      strcmp(l->denied, host->text) == 0;

	memcpy(l->denied, host->text, sizeof(l->denied));
	l->denied_type = second ? 0 : type;
	return second;
}

static void
deny(struct proxy_list *l, const struct sockaddr_in *from,
    const struct dns_query *q, const struct host_name *host,
    const struct proxy_verdict *v)
{
	union netproxy_message m = { .decided = { .list = l->number,
					 .target.protocol = NETPROXY_DNS,
					 .source = v->source,
					 .reason = v->reason,
					 .client_port =
					     ntohs(from->sin_port) } };

	if (is_second_half(l, host, q->type))
		return;
	memcpy(m.decided.target.host, host->text, sizeof(host->text));
	memcpy(m.decided.rule, v->rule, sizeof(v->rule));
	netproxy_control_tell(NETPROXY_DECIDED, &m);
}

/* There is no address, because of the limit or of a failure that the runner has
 * logged. */
static void
refuse_more(struct proxy_list *l, const struct sockaddr_in *from,
    const struct dns_query *q, const struct host_name *host)
{
	const struct proxy_verdict v = { .source = NETPROXY_BY_LIMIT,
		.reason = NETPROXY_TOO_MANY_NAMES };

	if (l->names_full)
		deny(l, from, q, host, &v);
	answer(l, from, q, DNS_FAILED, 0);
}

static void
wait_for(struct proxy_name *n, const struct sockaddr_in *from,
    const struct dns_query *q)
{
	struct lookup *w = xmalloc(sizeof(*w));

	w->from = *from;
	w->query = *q;
	STAILQ_INSERT_TAIL(&n->waiting, w, link);
	n->list->lookups++;
}

static void
take_address(struct proxy_list *l, const struct sockaddr_in *from,
    const struct dns_query *q, const struct host_name *host,
    const uint16_t *ports, size_t nports)
{
	struct proxy_name *n = find_name(l, host->text);

	if (n != NULL && n->address != 0) {
		answer(l, from, q, DNS_OK, n->address);
	} else if (n == NULL && l->names_over) {
		refuse_more(l, from, q, host);
	} else if (l->lookups < WAITING_MAX) {
		bool is_new = n == NULL;

		if (is_new)
			n = name_new(l, host, ports, nports);
		wait_for(n, from, q);
		if (is_new)
			ask_runner(n);
	}
}

/* A permitted name has IPv4 addresses and nothing else. */
static void
take_query(struct proxy_list *l, const struct sockaddr_in *from,
    const void *data, size_t len)
{
	struct proxy_verdict v;
	uint16_t ports[NETPROXY_PORTS_MAX];
	struct host_name host;
	struct dns_query q;
	size_t nports;
	int code = dns_query_read(&q, data, len);

	if (code < 0)
		return;
	if (code == DNS_OK &&
	    (proxy_host_read(&host, (struct slice){ q.name, strlen(q.name) }) <
		    0 ||
		host.is_address))
		code = DNS_NO_NAME; /* no host is called like this */
	if (code != DNS_OK) {
		answer(l, from, &q, (enum dns_code)code, 0);
		return;
	}
	nports = proxy_list_ports(l, &host, ports, &v);
	if (nports == 0) {
		deny(l, from, &q, &host, &v);
		answer(l, from, &q, DNS_NO_NAME, 0);
	} else if (q.type != DNS_A) {
		answer(l, from, &q, DNS_OK, 0);
	} else {
		take_address(l, from, &q, &host, ports, nports);
	}
}

static void
query_cb(evutil_socket_t fd, short what, void *arg)
{
	uint8_t bytes[DNS_QUERY_MAX];

	for (int i = 0; i < AT_ONCE; i++) {
		struct sockaddr_in from = { 0 };
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT,
		    (struct sockaddr *)&from, &len);

		if (n < 0)
			return;
		take_query(arg, &from, bytes, (size_t)n);
	}
}

/* --- the runner's answer ------------------------------------------------ */

static void
take_listeners(struct proxy_name *n, uint32_t address, const int *fds)
{
	n->address = address;
	for (size_t i = 0; i < n->nports; i++) {
		struct proxy_listener *at = &n->listeners[i];

		at->fd = fds[i];
		set_nonblock(at->fd);
		event_assign(&at->accepting, loop_base, at->fd,
		    EV_READ | EV_PERSIST, accept_cb, at);
	}
	watch_listeners(n, n->list->accepts);
}

static void
answer_waiting(struct proxy_name *n)
{
	struct lookup *w;

	while ((w = STAILQ_FIRST(&n->waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&n->waiting, link);
		n->list->lookups--;
		if (n->address != 0)
			answer(
			    n->list, &w->from, &w->query, DNS_OK, n->address);
		else
			refuse_more(n->list, &w->from, &w->query, &n->host);
		free(w);
	}
}

void
proxy_names_named(struct proxy_list *l, const struct netproxy_named *named,
    const int *fds, size_t nfds)
{
	struct proxy_name *n;

	STAILQ_FOREACH (n, &l->names, link)
		if (n->number == named->name)
			break;
	if (n == NULL || n->address != 0 ||
	    nfds != (named->address == 0 ? 0 : n->nports))
		log_fatal("impossible message from the runner");
	if (named->address != 0)
		take_listeners(n, named->address, fds);
	l->names_over |= named->over;
	l->names_full |= named->full;
	answer_waiting(n);
	if (n->address == 0)
		name_free(n);
}

/* --- the resolver ------------------------------------------------------- */

void
proxy_names_open(struct proxy_list *l, int fd)
{
	l->resolver = fd;
	set_nonblock(fd);
	event_assign(
	    &l->asking, loop_base, fd, EV_READ | EV_PERSIST, query_cb, l);
}

void
proxy_names_watch(struct proxy_list *l, bool accepts, bool answers)
{
	struct proxy_name *n;

	if (l->resolver < 0)
		return;
	if (answers)
		loop_add(&l->asking, NULL);
	else
		event_del(&l->asking);
	if (accepts == l->accepts)
		return;
	l->accepts = accepts;
	STAILQ_FOREACH (n, &l->names, link)
		watch_listeners(n, accepts);
}

void
proxy_names_close(struct proxy_list *l)
{
	if (l->resolver < 0)
		return;
	while (!STAILQ_EMPTY(&l->names))
		name_free(STAILQ_FIRST(&l->names));
	event_del(&l->asking);
	close(l->resolver);
}

void
proxy_names_init(struct event_base *base)
{
	loop_base = base;
}
