/* SPDX-License-Identifier: ISC */
/*
 * The runner's side of execd-netproxy: its start and end, its lists, and the
 * questions to the client.
 */
#include "netproxy.h"

#include <event2/event.h>

#include "helper.h"
#include "jsonrpc.h"
#include "loop.h"
#include "netproxy_sockets.h"
#include "sandbox.h"
#include "seqpacket.h"

/* The interval at which it is checked while it runs. */
#define LOOK_SECONDS 5
/* It is replaced when a signal has stopped it for so many checks in a row. */
#define LOOKS_STOPPED 2
/* It ends after so many checks in a row without a list. */
#define LOOKS_IDLE 2

/* It is started again with the next use. If it then dies soon, there is a pause
 * before that, which doubles. A start that fails is tried again after WAIT_MS.
 */
#define LIVED_LONG_MS 10000
#define WAIT_MS	      1000
#define WAIT_MAX_MS   32000

/* The client has at most so many questions to answer at once. What would be one
 * more is denied. */
#define ASKS_MAX 256

/* The messages that wait for execd-netproxy. If there are more, it reads
 * nothing, and is replaced. */
#define QUEUE_MAX 4096

/* Of execd-netproxy's messages, of which none has a list. */
#define MESSAGE_MAX 2048

/* What is taken at most before the exit of a command is told. */
#define SETTLE_MAX 4096

/* A question to the client. */
struct ask {
	TAILQ_ENTRY(ask) link; /* netproxy.asks */
	struct netproxy *proxy;
	struct network *network;
	uint32_t number; /* execd-netproxy's */
	uint64_t id;	 /* of the request */
	struct event timeout;
};

/* A message that the socket has no room for. */
struct waiting_message {
	STAILQ_ENTRY(waiting_message) link; /* netproxy.queue */
	int fds[NETPROXY_PORTS_MAX];	    /* owned */
	size_t nfds;
	size_t len;
	uint8_t bytes[];
};

struct netproxy {
	struct session *session;
	struct reaper_watch watch;
	int fd; /* -1: it does not run */
	struct event in_event, out_event;
	struct event timer; /* a check, or the next start */
	bool refuses;	    /* connections, until the timer ends a long pause */
	bool reading;
	TAILQ_HEAD(, network) lists; /* open */
	uint32_t last_list;
	unsigned last_block; /* of netproxy_sockets_make() */
	STAILQ_HEAD(, waiting_message) queue;
	unsigned queued;
	TAILQ_HEAD(, ask) asks;
	unsigned nasks;
	uint64_t last_id; /* of requests to clients; begins with 1 */
	int64_t started_ms;
	uint64_t wait_ms;	/* before the next start */
	unsigned stopped, idle; /* checks in a row that found it so */
};

static void failed(struct netproxy *p, const char *how);

/* --- to execd-netproxy -------------------------------------------------- */

/*
 * Returns false if the message could not be sent. If that is for want of room,
 * it is tried again. Any other error is followed by the end of the channel.
 */
static bool
send_now(struct netproxy *p, const void *bytes, size_t len, const int *fds,
    size_t nfds)
{
	int err = seqpacket_send(p->fd, bytes, len, fds, nfds);

	if (err == -EAGAIN)
		loop_add(&p->out_event, NULL);
	else if (err < 0)
		log_debug("execd-netproxy: %s", strerror(-err));
	return err == 0;
}

/* The list as execd-netproxy gets it: the client's part and the operator's. */
static bool
send_open(struct netproxy *p, struct network *n)
{
	const struct network_limits *l = &p->session->network_limits;
	union netproxy_message m = { .open = {
					 .list = n->number,
					 .connections = l->connections,
					 .bytes = l->bytes,
					 .asks = n->list.asks,
					 .limited = n->list.limited,
					 .allow_local = n->list.allow_local,
					 .redirected = n->redirected >= 0,
					 .resolver = n->resolver_address,
					 .names = n->names,
				     } };
	const int fds[] = { n->listener, n->resolver, n->redirected };
	struct buf rules, b;
	bool sent;

	buf_init(&rules, NETPROXY_RULES_MAX);
	network_put_rules(&rules, &n->list, l);
	m.open.rules = (struct slice){ (const char *)rules.data, rules.len };
	buf_init(&b, NETPROXY_MESSAGE_MAX);
	netproxy_put(&b, NETPROXY_OPEN, &m);
	/* Both parts have limits that fit together. */
	if (rules.failed || b.failed)
		log_fatal("a list of hosts does not fit into a message");
	sent = send_now(p, b.data, b.len, fds,
	    1u + (n->resolver >= 0) + (n->redirected >= 0));
	buf_clear(&rules);
	buf_clear(&b);
	return sent;
}

static void
remove_first(struct netproxy *p)
{
	struct waiting_message *w = STAILQ_FIRST(&p->queue);

	STAILQ_REMOVE_HEAD(&p->queue, link);
	p->queued--;
	netproxy_sockets_close(w->fds, w->nfds);
	free(w);
}

static void
flush(struct netproxy *p)
{
	struct waiting_message *w;
	struct network *n;

	TAILQ_FOREACH (n, &p->lists, link)
		if (!n->told && !(n->told = send_open(p, n)))
			break;
	while (n == NULL && (w = STAILQ_FIRST(&p->queue)) != NULL &&
	       send_now(p, w->bytes, w->len, w->fds, w->nfds))
		remove_first(p);
}

static void
out_cb(evutil_socket_t fd, short what, void *arg)
{
	flush(arg);
}

/* What does not run has forgotten everything, and is told nothing. The
 * descriptors are taken over. */
static void
tell_with(struct netproxy *p, enum netproxy_type type,
    const union netproxy_message *m, const int *fds, size_t nfds)
{
	struct waiting_message *w;
	struct buf b;

	if (p->fd < 0 || p->queued == QUEUE_MAX) {
		netproxy_sockets_close(fds, nfds);
		if (p->fd >= 0)
			failed(p, "reads nothing, and is replaced");
		return;
	}
	buf_init(&b, MESSAGE_MAX);
	netproxy_put(&b, type, m);
	w = xmalloc(sizeof(*w) + b.len);
	w->len = b.len;
	memcpy(w->bytes, b.data, b.len);
	buf_clear(&b);
	w->nfds = nfds;
	for (size_t i = 0; i < nfds; i++)
		w->fds[i] = fds[i];
	STAILQ_INSERT_TAIL(&p->queue, w, link);
	p->queued++;
	flush(p);
}

static void
tell(struct netproxy *p, enum netproxy_type type,
    const union netproxy_message *m)
{
	tell_with(p, type, m, NULL, 0);
}

static void
clear_queue(struct netproxy *p)
{
	while (!STAILQ_EMPTY(&p->queue))
		remove_first(p);
}

/* --- questions to the client -------------------------------------------- */

static void
ask_free(struct ask *a)
{
	TAILQ_REMOVE(&a->proxy->asks, a, link);
	a->proxy->nasks--;
	event_del(&a->timeout);
	free(a);
}

static void
answer(struct netproxy *p, uint32_t list, uint32_t number, bool allowed)
{
	const union netproxy_message m = {
		.answer = { .list = list, .ask = number, .allowed = allowed }
	};

	tell(p, NETPROXY_ANSWER, &m);
}

static void
ask_finish(struct ask *a, bool allowed)
{
	struct netproxy *p = a->proxy;
	uint32_t list = a->network->number, number = a->number;

	ask_free(a);
	answer(p, list, number, allowed);
}

static void
silence_cb(evutil_socket_t fd, short what, void *arg)
{
	ask_finish(arg, false);
}

/* A client that is away, or only watches, cannot be asked. */
static bool
may_ask(const struct netproxy *p, const struct network *n)
{
	return session_is_told(n->process) && !p->session->client.input_ended &&
	       p->nasks < ASKS_MAX;
}

static void
write_request(
    struct session *s, const struct ask *a, const struct netproxy_target *t)
{
	const struct session_process *sp = a->network->process;
	struct json_writer w = channel_begin(&s->client.channel);

	rpc_begin_request(&w, a->id, "network/policyRequest");
	json_begin(&w, '{');
	json_key_string(&w, "processId", sp->id, sp->id_len);
	json_key_begin(&w, "request", '{');
	network_write_protocol(&w, t->protocol);
	json_key_cstring(&w, "host", t->host);
	json_key_u64(&w, "port", t->port);
	json_end(&w, '}');
	json_end(&w, '}');
	rpc_end_request(&w);
	channel_send(&s->client.channel);
}

static void
take_ask(
    struct netproxy *p, struct network *n, const struct netproxy_ask *asked)
{
	struct ask *a;

	if (!may_ask(p, n)) {
		answer(p, asked->list, asked->ask, false);
		return;
	}
	a = xcalloc(1, sizeof(*a));
	a->proxy = p;
	a->network = n;
	a->number = asked->ask;
	a->id = ++p->last_id;
	event_assign(&a->timeout, p->session->base, -1, 0, silence_cb, a);
	loop_add_ms(&a->timeout, n->list.ask_ms);
	TAILQ_INSERT_TAIL(&p->asks, a, link);
	p->nasks++;
	write_request(p->session, a, &asked->target);
}

/* {"decision": {"type": "allow"}}; everything else denies. */
static bool
says_allow(const struct rpc_message *m)
{
	const struct json_value *v =
	    json_get(json_get(m->doc.root, "result"), "decision");
	const struct json_value *type = json_get(v, "type");

	return type != NULL && json_is(type, "allow");
}

bool
netproxy_take_answer(struct client *c, const struct rpc_message *m)
{
	struct netproxy *p = c->session->netproxy;
	struct ask *a;
	uint64_t id;

	if (p == NULL || c->watching || json_to_u64(m->id, &id) < 0 ||
	    id == 0 || id > p->last_id)
		return false;
	TAILQ_FOREACH (a, &p->asks, link)
		if (a->id == id)
			break;
	/* An answer that comes too late changes nothing. */
	if (a != NULL)
		ask_finish(a, says_allow(m));
	return true;
}

void
netproxy_detached(struct session *s)
{
	struct netproxy *p = s->netproxy;

	while (p != NULL && !TAILQ_EMPTY(&p->asks))
		ask_finish(TAILQ_FIRST(&p->asks), false);
}

static void
drop_asks(struct netproxy *p, const struct network *n)
{
	struct ask *a, *next;

	TAILQ_FOREACH_SAFE (a, &p->asks, link, next)
		if (n == NULL || a->network == n)
			ask_free(a);
}

/* --- from execd-netproxy ------------------------------------------------ */

/* NULL: the list has ended, which execd-netproxy does not know yet. */
static struct network *
find_list(const struct netproxy *p, uint32_t number)
{
	struct network *n;

	TAILQ_FOREACH (n, &p->lists, link)
		if (n->number == number)
			break;
	return n;
}

/* Gives a name an address. A port may be taken, by a command that listens on
 * all addresses. */
static void
take_name(
    struct netproxy *p, struct network *n, const struct netproxy_name *asked)
{
	union netproxy_message m = { .named = { .list = asked->list,
					 .name = asked->name } };
	int fds[NETPROXY_PORTS_MAX], err;

	if (n->redirected >= 0) {
		n->names++;
		return;
	}
	err = netproxy_sockets_name(n, asked, &m.named.address, fds);
	m.named.full = err == -ENOSPC;
	m.named.over = m.named.full || err == -ESTALE;
	if (err < 0 && !m.named.full)
		log_warn(err, "a name that a command looks up has no address: "
			      "its ports in the sandbox");
	tell_with(p, NETPROXY_NAMED, &m, fds, err < 0 ? 0 : asked->nports);
}

/* Returns false if it is no message that execd-netproxy sends. */
static bool
take(struct netproxy *p, const void *bytes, size_t len)
{
	union netproxy_message m;
	struct network *n;
	int type = netproxy_get(bytes, len, &m);

	if (type == NETPROXY_DECIDED) {
		n = find_list(p, m.decided.list);
		if (n != NULL)
			network_decided(n, &m.decided);
	} else if (type == NETPROXY_ASK) {
		n = find_list(p, m.ask.list);
		if (n != NULL)
			take_ask(p, n, &m.ask);
	} else if (type == NETPROXY_NAME) {
		n = find_list(p, m.name.list);
		if (n != NULL)
			take_name(p, n, &m.name);
	} else {
		return false;
	}
	return true;
}

/* Returns false if there is nothing more to take. */
static bool
take_next(struct netproxy *p)
{
	static uint8_t bytes[MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds = 0;
	ssize_t n = seqpacket_recv(p->fd, bytes, sizeof(bytes), fds, &nfds);
	bool fine;

	if (n == -EAGAIN)
		return false;
	fine = n > 0 && nfds == 0 && take(p, bytes, (size_t)n);
	while (n > 0 && nfds > 0)
		close(fds[--nfds]);
	if (!fine)
		failed(p, n > 0 ? "sent what cannot be" : "ended unexpectedly");
	return fine;
}

/* While the client does not read, nothing is taken: execd-netproxy then lets
 * nobody in, and commands wait, as they do with their output. */
static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct netproxy *p = arg;

	if (channel_is_open(&p->session->client.channel) &&
	    channel_congested(&p->session->client.channel))
		loop_watch(&p->in_event, &p->reading, false);
	else
		take_next(p);
}

void
netproxy_resume(struct session *s)
{
	struct netproxy *p = s->netproxy;

	if (p != NULL && p->fd >= 0)
		loop_watch(&p->in_event, &p->reading, true);
}

/* --- the program -------------------------------------------------------- */

static int
start(struct netproxy *p)
{
	struct session *s = p->session;
	int pair[2], err = seqpacket_pair(pair);
	pid_t pid;

	if (err < 0)
		return err;
	pid = helper_spawn(s, HELPER_NETPROXY, pair[1]);
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (err < 0) {
		close(pair[0]);
		return err;
	}
	p->fd = pair[0];
	p->started_ms = now_ms();
	p->stopped = p->idle = 0;
	reaper_add(&p->watch, pid, NULL);
	event_assign(
	    &p->in_event, s->base, p->fd, EV_READ | EV_PERSIST, in_cb, p);
	event_assign(&p->out_event, s->base, p->fd, EV_WRITE, out_cb, p);
	p->reading = false;
	loop_watch(&p->in_event, &p->reading, true);
	loop_add_ms(&p->timer, LOOK_SECONDS * 1000);
	return 0;
}

static void
stop(struct netproxy *p)
{
	struct network *n;

	event_del(&p->in_event);
	event_del(&p->out_event);
	event_del(&p->timer);
	close(steal_fd(&p->fd));
	if (p->watch.pid > 0)
		kill(p->watch.pid, SIGKILL);
	reaper_remove(&p->watch);
	clear_queue(p);
	drop_asks(p, NULL);
	TAILQ_FOREACH (n, &p->lists, link)
		n->told = false;
}

/* --- its start, with the first use of a list ----------------------------- */

static void
unwatch(struct network *n)
{
	event_del(&n->first_use[0]);
	event_del(&n->first_use[1]);
	event_del(&n->first_use[2]);
}

/* The sockets are execd-netproxy's as soon as it has them, so they are watched
 * no longer. */
static void
watch(struct network *n)
{
	loop_add(&n->first_use[0], NULL);
	if (n->resolver >= 0)
		loop_add(&n->first_use[1], NULL);
	if (n->redirected >= 0)
		loop_add(&n->first_use[2], NULL);
}

static void
watch_lists(struct netproxy *p, bool wanted)
{
	struct network *n;

	TAILQ_FOREACH (n, &p->lists, link)
		if (wanted)
			watch(n);
		else
			unwatch(n);
}

/* What waits must not wait for a program that does not come. Nobody knows which
 * host was meant, so the decision names the proxy's own port. */
static void
refuse(struct network *n)
{
	struct netproxy_decided d = {
		.list = n->number,
		.target = { .protocol = NETPROXY_HTTP,
		    .port = n->port,
		    .host = "127.0.0.1" },
		.source = NETPROXY_BY_LIMIT,
		.reason = NETPROXY_NOT_STARTED,
	};

	if (netproxy_sockets_refuse(n) > 0)
		network_decided(n, &d);
}

static void
no_start_before(struct netproxy *p, uint64_t ms)
{
	struct network *n;

	TAILQ_FOREACH (n, &p->lists, link)
		refuse(n);
	loop_add_ms(&p->timer, ms);
	p->refuses = ms > WAIT_MS;
	watch_lists(p, p->refuses);
}

/* Event callback of a socket of a list. */
static void
first_use_cb(evutil_socket_t fd, short what, void *arg)
{
	struct network *n = arg;
	struct netproxy *p = n->process->session->netproxy;
	int err;

	if (event_pending(&p->timer, EV_TIMEOUT, NULL)) {
		refuse(n);
		watch(n);
		return;
	}
	watch_lists(p, false);
	err = start(p);
	if (err == 0) {
		flush(p);
		return;
	}
	log_error(err, "starting execd-netproxy");
	no_start_before(p, WAIT_MS);
}

/* The program is gone, or to be given up. Its connections are reset. */
static void
failed(struct netproxy *p, const char *how)
{
	bool lived_long = now_ms() - p->started_ms > LIVED_LONG_MS;

	stop(p);
	if (p->session->terminating)
		return;
	log_error(0, "execd-netproxy %s", how);
	if (lived_long)
		p->wait_ms = 0;
	if (p->wait_ms == 0)
		watch_lists(p, true);
	else
		no_start_before(p, p->wait_ms);
	p->wait_ms = p->wait_ms == 0		    ? WAIT_MS
		     : p->wait_ms * 2 < WAIT_MAX_MS ? p->wait_ms * 2
						    : WAIT_MAX_MS;
}

static void
look(struct netproxy *p)
{
	p->stopped = reaper_is_stopped(&p->watch) ? p->stopped + 1 : 0;
	p->idle = TAILQ_EMPTY(&p->lists) ? p->idle + 1 : 0;
	if (p->idle >= LOOKS_IDLE)
		stop(p);
	else if (p->stopped >= LOOKS_STOPPED)
		failed(p, "was stopped by a signal, and is replaced");
	else
		loop_add_ms(&p->timer, LOOK_SECONDS * 1000);
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct netproxy *p = arg;

	if (p->fd >= 0)
		look(p);
	else if (!p->session->terminating)
		watch_lists(p, true);
}

/* --- lists -------------------------------------------------------------- */

static struct netproxy *
get(struct session *s)
{
	struct netproxy *p = s->netproxy;

	if (p != NULL)
		return p;
	p = xcalloc(1, sizeof(*p));
	p->session = s;
	p->fd = -1;
	TAILQ_INIT(&p->lists);
	TAILQ_INIT(&p->asks);
	STAILQ_INIT(&p->queue);
	event_assign(&p->timer, s->base, -1, 0, timer_cb, p);
	s->netproxy = p;
	return p;
}

/* Returns a block of addresses that no open list has; 0: all are taken. */
static unsigned
find_block(struct netproxy *p)
{
	struct network *n;

	for (unsigned i = 0; i < NETPROXY_BLOCKS; i++) {
		p->last_block = p->last_block % NETPROXY_BLOCKS + 1;
		TAILQ_FOREACH (n, &p->lists, link)
			if (netproxy_sockets_block(n) == p->last_block)
				break;
		if (n == NULL)
			return p->last_block;
	}
	log_warn(0,
	    "more than %u lists of hosts at once: a command that knows "
	    "no proxy reaches none of its hosts",
	    NETPROXY_BLOCKS);
	return 0;
}

static struct network *
new_network(const struct network_list *list)
{
	struct network *n = xcalloc(1, sizeof(*n));

	n->list = *list;
	n->list.text = xstrdup(list->text);
	n->list.rules.ptr = n->list.text + (list->rules.ptr - list->text);
	n->listener = n->resolver = n->redirected = -1;
	return n;
}

int
netproxy_prepare(struct session *s, struct sandbox *sandbox,
    const struct network_list *list, struct network **network, uint16_t *port,
    const char **why)
{
	struct netproxy *p = get(s);
	unsigned block = sandbox->names ? find_block(p) : 0;
	int err;

	*why = "execd-netproxy, which was missing when execd started";
	if (s->netproxy_program < 0)
		return -ENOENT;
	*why = "transparent TCP, for which no addresses are left";
	if (list->transparent && sandbox->names && block == 0)
		return -EUSERS;
	*why = "its proxy's port";
	*network = new_network(list);
	err = netproxy_sockets_make(*network, sandbox, block, port);
	(*network)->port = *port;
	if (err < 0)
		network_free(*network);
	return err;
}

void
netproxy_open(struct session_process *sp, struct network *network)
{
	struct netproxy *p = sp->session->netproxy;

	network->process = sp;
	network->number = ++p->last_list;
	sp->network = network;
	TAILQ_INSERT_TAIL(&p->lists, network, link);
	event_assign(&network->first_use[0], p->session->base,
	    network->listener, EV_READ, first_use_cb, network);
	event_assign(&network->first_use[1], p->session->base,
	    network->resolver, EV_READ, first_use_cb, network);
	event_assign(&network->first_use[2], p->session->base,
	    network->redirected, EV_READ, first_use_cb, network);
	if (p->fd >= 0)
		flush(p);
	else if (p->refuses || !event_pending(&p->timer, EV_TIMEOUT, NULL))
		watch(network);
}

void
netproxy_settle(struct session_process *sp)
{
	struct netproxy *p = sp->session->netproxy;

	for (int i = 0; i < SETTLE_MAX && p->fd >= 0 && take_next(p); i++)
		continue;
}

void
netproxy_close(struct session_process *sp)
{
	struct netproxy *p = sp->session->netproxy;
	struct network *n = sp->network;
	const union netproxy_message m = { .close = { n->number } };

	if (n->listener < 0)
		return;
	netproxy_settle(sp);
	TAILQ_REMOVE(&p->lists, n, link);
	unwatch(n);
	drop_asks(p, n);
	if (n->told)
		tell(p, NETPROXY_CLOSE, &m);
	close(steal_fd(&n->listener));
	if (n->resolver >= 0)
		close(steal_fd(&n->resolver));
	if (n->redirected >= 0)
		close(steal_fd(&n->redirected));
	network_list_clear(&n->list);
}
