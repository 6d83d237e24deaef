/* SPDX-License-Identifier: ISC */
#include "proxy_names.h"

#include <event2/event.h>

#include "loop.h"
#include "netproxy_control.h"
#include "proxy_client.h"

/* Look-ups that are taken before others have their turn. */
#define AT_ONCE 16
/* Look-ups of a list that wait for the runner. Who comes then asks again. */
#define WAITING_MAX 64
/* The address that was meant by who is redirected (linux/netfilter_ipv4.h). */
#define ORIGINAL_DESTINATION 80
#define DNS_PORT	     53

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
send_answer(const struct proxy_list *l, const struct sockaddr_in *to,
    const uint8_t *bytes, size_t n)
{
	if (sendto(l->resolver, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL,
		(const struct sockaddr *)to, sizeof(*to)) < 0)
		log_debug("an answer to a look-up: %s", strerror(errno));
}

static void
answer(const struct proxy_list *l, const struct sockaddr_in *to,
    const struct dns_query *q, enum dns_code code, uint32_t address)
{
	uint8_t bytes[DNS_ANSWER_MAX];

	send_answer(l, to, bytes, dns_answer_write(bytes, q, code, address));
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
deny(struct proxy_list *l, uint16_t client_port, const struct dns_query *q,
    const struct host_name *host, const struct proxy_verdict *v)
{
	union netproxy_message m = { .decided = { .list = l->number,
					 .target.protocol = NETPROXY_DNS,
					 .source = v->source,
					 .reason = v->reason,
					 .client_port = client_port } };

	if (is_second_half(l, host, q->type))
		return;
	memcpy(m.decided.target.host, host->text, sizeof(host->text));
	memcpy(m.decided.rule, v->rule, sizeof(v->rule));
	netproxy_control_tell(NETPROXY_DECIDED, &m);
}

/* There is no address, because of the limit or of a failure that the runner has
 * logged. */
static void
tell_full(struct proxy_list *l, uint16_t client_port, const struct dns_query *q,
    const struct host_name *host)
{
	const struct proxy_verdict v = { .source = NETPROXY_BY_LIMIT,
		.reason = NETPROXY_TOO_MANY_NAMES };

	deny(l, client_port, q, host, &v);
}

static void
refuse_more(struct proxy_list *l, const struct sockaddr_in *from,
    const struct dns_query *q, const struct host_name *host)
{
	if (l->names_full)
		tell_full(l, ntohs(from->sin_port), q, host);
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

/* Returns DNS_OK, the code to answer with, or -EBADMSG for no answer. */
static int
read_query(
    struct dns_query *q, struct host_name *host, const void *data, size_t len)
{
	int code = dns_query_read(q, data, len);

	if (code == DNS_OK &&
	    (proxy_host_read(host, (struct slice){ q->name, strlen(q->name) }) <
		    0 ||
		host->is_address))
		code = DNS_NO_NAME; /* no host is called like this */
	return code;
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
	int code = read_query(&q, &host, data, len);

	if (code < 0)
		return;
	if (code != DNS_OK) {
		answer(l, from, &q, (enum dns_code)code, 0);
		return;
	}
	nports = proxy_list_ports(l, &host, ports, &v);
	if (nports == 0) {
		deny(l, ntohs(from->sin_port), &q, &host, &v);
		answer(l, from, &q, DNS_NO_NAME, 0);
	} else if (q.type != DNS_A) {
		answer(l, from, &q, DNS_OK, 0);
	} else {
		take_address(l, from, &q, &host, ports, nports);
	}
}

/* --- where TCP is redirected ---------------------------------------------- */

/* Gives a name the next address of the block, which stays its own as long as
 * the command lives: the runner counts them. Returns 0 if there is none. */
static uint32_t
give_address(struct proxy_list *l, const struct host_name *host)
{
	struct proxy_name *n = find_name(l, host->text);

	if (n == NULL && l->given < NETPROXY_REDIRECTED_MAX) {
		n = name_new(l, host, NULL, 0);
		n->address = l->resolver_address + ++l->given;
		ask_runner(n);
	}
	return n == NULL ? 0 : n->address;
}

static bool
is_localhost(const char *name)
{
	const char *end = strrchr(name, '.');

	return strcmp(end == NULL ? name : end + 1, "localhost") == 0;
}

/* Names of the host itself (RFC 6761 section 6.3) are the sandbox's own. */
static uint32_t
address_of(struct proxy_list *l, const struct host_name *host)
{
	return is_localhost(host->text) ? INADDR_LOOPBACK
					: give_address(l, host);
}

size_t
proxy_names_answer(struct proxy_list *l, const void *query, size_t len,
    uint16_t client_port, uint8_t bytes[DNS_ANSWER_MAX])
{
	struct host_name host;
	struct dns_query q;
	int code = read_query(&q, &host, query, len);
	uint32_t address = 0;

	if (code < 0)
		return 0;
	if (code == DNS_OK && q.type == DNS_A) {
		address = address_of(l, &host);
		if (address == 0) {
			tell_full(l, client_port, &q, &host);
			code = DNS_FAILED;
		}
	}
	/* An address that the runner does not know of yet could become another
	 * name's. Who gets no answer asks again. */
	if (!netproxy_control_is_heard())
		return 0;
	return dns_answer_write(bytes, &q, (enum dns_code)code, address);
}

static void
answer_now(struct proxy_list *l, const struct sockaddr_in *to,
    const void *query, size_t len)
{
	uint8_t bytes[DNS_ANSWER_MAX];
	size_t n =
	    proxy_names_answer(l, query, len, ntohs(to->sin_port), bytes);

	if (n > 0)
		send_answer(l, to, bytes, n);
}

/* What an address stands for: a name, or itself. */
static struct host_name
host_at(const struct proxy_list *l, uint32_t address)
{
	const struct proxy_name *n;
	struct in6_addr mapped = { .s6_addr = { [10] = 0xff, 0xff } };
	struct host_name host;

	STAILQ_FOREACH (n, &l->names, link)
		if (n->address == address)
			return n->host;
	address = htonl(address);
	memcpy(&mapped.s6_addr[12], &address, sizeof(address));
	host_name_of(&host, &mapped);
	return host;
}

static void
redirected_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_list *l = arg;
	struct sockaddr_in meant = { 0 };
	socklen_t len = sizeof(meant);
	struct host_name host;
	uint32_t address;
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client < 0) {
		if (errno == EMFILE || errno == ENFILE)
			log_warn(errno, "a command's connection waits");
		return;
	}
	/* If the kernel does not answer, the address stays 0.0.0.0, which
	 * nobody may reach. */
	getsockopt(client, IPPROTO_IP, ORIGINAL_DESTINATION, &meant, &len);
	address = ntohl(meant.sin_addr.s_addr);
	host = host_at(l, address);
	if (address == l->resolver_address && meant.sin_port == htons(DNS_PORT))
		proxy_client_resolve(l, client);
	else
		proxy_client_direct(l, client, &host, ntohs(meant.sin_port));
	netproxy_control_watch(l);
}

static void
query_cb(evutil_socket_t fd, short what, void *arg)
{
	struct proxy_list *l = arg;
	uint8_t bytes[DNS_QUERY_MAX];

	for (int i = 0; i < AT_ONCE; i++) {
		struct sockaddr_in from = { 0 };
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT,
		    (struct sockaddr *)&from, &len);

		if (n < 0)
			return;
		if (l->redirected >= 0)
			answer_now(l, &from, bytes, (size_t)n);
		else
			take_query(l, &from, bytes, (size_t)n);
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
proxy_names_open(struct proxy_list *l, int resolver, int redirected)
{
	l->resolver = resolver;
	l->redirected = redirected;
	set_nonblock(resolver);
	event_assign(
	    &l->asking, loop_base, resolver, EV_READ | EV_PERSIST, query_cb, l);
	if (redirected < 0)
		return;
	set_nonblock(redirected);
	event_assign(&l->taking, loop_base, redirected, EV_READ | EV_PERSIST,
	    redirected_cb, l);
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
	if (l->redirected >= 0 && accepts)
		loop_add(&l->taking, NULL);
	else if (l->redirected >= 0)
		event_del(&l->taking);
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
	if (l->redirected < 0)
		return;
	event_del(&l->taking);
	close(l->redirected);
}

void
proxy_names_init(struct event_base *base)
{
	loop_base = base;
}
