/* SPDX-License-Identifier: ISC */
#include "source.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "siphash.h"
#include "table.h"

/*
 * Decides which connection may come in next.
 */

void
fair_source_init(struct fair_source *s)
{
	*s = (struct fair_source){ .waiting = 0 };
	TAILQ_INIT(&s->waiters);
}

/* After a reload, more slots may be taken than the new maximum. */
static bool
may_take(const struct fairness *f, const struct fair_source *s, size_t max)
{
	return f->slots < max && s->slots < max - f->slots;
}

static void
take(struct fairness *f, struct fair_source *s)
{
	f->slots++;
	s->slots++;
}

bool
fairness_enter(struct fairness *f, struct fair_source *s, size_t max)
{
	if (s->waiting > 0 || !may_take(f, s, max))
		return false;
	take(f, s);
	return true;
}

void
fairness_leave(struct fairness *f, struct fair_source *s)
{
	f->slots--;
	s->slots--;
}

void
fairness_wait(struct fairness *f, struct fair_source *s, struct fair_waiter *w)
{
	w->source = s;
	if (s->waiting++ == 0)
		TAILQ_INSERT_TAIL(&f->turns, s, turn);
	TAILQ_INSERT_TAIL(&s->waiters, w, link);
	f->waiting++;
}

void
fairness_forget(struct fairness *f, struct fair_waiter *w)
{
	struct fair_source *s = w->source;

	TAILQ_REMOVE(&s->waiters, w, link);
	f->waiting--;
	if (--s->waiting == 0)
		TAILQ_REMOVE(&f->turns, s, turn);
}

/* Takes the oldest waiter of s. If s has more, its next turn is the last. */
static struct fair_waiter *
take_first(struct fairness *f, struct fair_source *s)
{
	struct fair_waiter *w = TAILQ_FIRST(&s->waiters);

	fairness_forget(f, w);
	take(f, s);
	if (s->waiting > 0) {
		TAILQ_REMOVE(&f->turns, s, turn);
		TAILQ_INSERT_TAIL(&f->turns, s, turn);
	}
	return w;
}

struct fair_waiter *
fairness_next(struct fairness *f, size_t max)
{
	struct fair_source *s;

	if (f->slots >= max)
		return NULL;
	TAILQ_FOREACH (s, &f->turns, turn)
		if (may_take(f, s, max))
			return take_first(f, s);
	return NULL;
}

struct fair_waiter *
fairness_fullest(const struct fairness *f)
{
	struct fair_source *s, *fullest = TAILQ_FIRST(&f->turns);

	TAILQ_FOREACH (s, &f->turns, turn)
		if (s->waiting >= fullest->waiting)
			fullest = s;
	return fullest ? TAILQ_FIRST(&fullest->waiters) : NULL;
}

/*
 * Sources of connections, and their penalties.
 */

#define KEY_BYTES 16
#define MAPPED	  96 /* bits before an IPv4 address in IPv6 form */

struct source {
	struct table_node node;	  /* sources */
	TAILQ_ENTRY(source) link; /* idle, while it has no connections */
	uint8_t key[KEY_BYTES];
	struct fair_source share;
	uint32_t connections;
	int64_t until; /* when its penalty time ends; in the past: none */
};

static struct table sources;
static TAILQ_HEAD(, source) idle = TAILQ_HEAD_INITIALIZER(idle);

/* Sets the address in IPv6 form, which is ::ffff:a.b.c.d for IPv4. Returns
 * false if it is no IP address. */
static bool
address_of(const struct sockaddr *from, uint8_t address[KEY_BYTES])
{
	const struct sockaddr_in6 *in6 = (const void *)from;
	const struct sockaddr_in *in = (const void *)from;

	memset(address, 0, KEY_BYTES);
	switch (from->sa_family) {
	case AF_INET6:
		memcpy(address, &in6->sin6_addr, KEY_BYTES);
		return true;
	case AF_INET:
		address[10] = address[11] = 0xff;
		memcpy(address + 12, &in->sin_addr, 4);
		return true;
	default:
		return false;
	}
}

static bool
is_in(const uint8_t *address, const uint8_t *net)
{
	unsigned bits = net[KEY_BYTES], bytes = bits / 8;
	uint8_t mask = (uint8_t)(0xff00 >> bits % 8);

	return memcmp(address, net, bytes) == 0 &&
	       (bits % 8 == 0 || ((address[bytes] ^ net[bytes]) & mask) == 0);
}

static bool
is_in_any(const uint8_t *address, const struct nets *nets)
{
	for (uint32_t i = 0; i < nets->count; i++)
		if (is_in(address, nets->items[i]))
			return true;
	return false;
}

bool
source_lies_in(const struct sockaddr *from, const struct nets *nets)
{
	uint8_t address[KEY_BYTES];

	return address_of(from, address) && is_in_any(address, nets);
}

/* Clears the lower half of an IPv6 address, which does not tell sources
 * apart. */
static void
make_key(uint8_t address[KEY_BYTES])
{
	static const uint8_t mapped[MAPPED / 8] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(address, mapped, sizeof(mapped)) != 0)
		memset(address + 8, 0, 8);
}

static bool
match_key(const struct table_node *node, const void *key)
{
	return memcmp(TABLE_OBJECT(node, const struct source, node)->key, key,
		   KEY_BYTES) == 0;
}

static struct source *
find(const uint8_t key[KEY_BYTES])
{
	struct table_node *node =
	    table_find(&sources, siphash_bytes(key, KEY_BYTES), match_key, key);

	return node ? TABLE_OBJECT(node, struct source, node) : NULL;
}

static void
forget(struct source *s)
{
	TAILQ_REMOVE(&idle, s, link);
	table_remove(&sources, &s->node);
	free(s);
}

/* Forgets idle sources without a penalty, the longest idle first. If there are
 * too many sources, those with a penalty are forgotten as well. */
static void
make_room(int64_t now)
{
	struct source *s;

	while ((s = TAILQ_FIRST(&idle)) != NULL &&
	       (s->until <= now || sources.count >= SOURCES_MAX))
		forget(s);
}

static struct source *
find_or_make(const uint8_t key[KEY_BYTES], int64_t now)
{
	struct source *s = find(key);

	if (s != NULL)
		return s;
	make_room(now);
	s = xcalloc(1, sizeof(*s));
	memcpy(s->key, key, KEY_BYTES);
	fair_source_init(&s->share);
	table_insert(&sources, &s->node, siphash_bytes(key, KEY_BYTES));
	TAILQ_INSERT_TAIL(&idle, s, link);
	return s;
}

enum admission
source_admit(const struct frontend_limits *c, const struct sockaddr *from,
    int64_t now, struct source **source, int64_t *wait_ms)
{
	uint8_t key[KEY_BYTES];
	struct source *s;

	*source = NULL;
	if (!address_of(from, key) || is_in_any(key, &c->exempt))
		return ADMITTED;
	make_key(key);
	s = find_or_make(key, now);
	if (s->until - now > (int64_t)c->penalty_threshold_ms) {
		*wait_ms = s->until - now;
		return REFUSED_PENALTY;
	}
	if (c->max_per_source > 0 && s->connections >= c->max_per_source)
		return REFUSED_CONNECTIONS;
	if (s->connections++ == 0)
		TAILQ_REMOVE(&idle, s, link);
	*source = s;
	return ADMITTED;
}

void
source_text(const struct sockaddr *from, char text[CONTROL_PEER_MAX])
{
	const struct sockaddr_in6 *in6 = (const void *)from;
	const struct sockaddr_in *in = (const void *)from;
	char host[INET6_ADDRSTRLEN] = "?";

	if (from->sa_family == AF_UNIX) {
		snprintf(text, CONTROL_PEER_MAX, "websocket unix");
	} else if (from->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, CONTROL_PEER_MAX, "websocket [%s]:%u", host,
		    ntohs(in6->sin6_port));
	} else {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, CONTROL_PEER_MAX, "websocket %s:%u", host,
		    ntohs(in->sin_port));
	}
}

struct fair_source *
source_share(struct source *s)
{
	return &s->share;
}

void
source_leave(struct source *s, int64_t now)
{
	if (s == NULL || --s->connections > 0)
		return;
	TAILQ_INSERT_TAIL(&idle, s, link);
	if (s->until <= now)
		forget(s);
}

static uint32_t
cost_of(const struct frontend_limits *c, enum offence offence)
{
	switch (offence) {
	case OFFENCE_AUTHENTICATION:
		return c->penalty_auth_ms;
	case OFFENCE_DEADLINE:
		return c->penalty_deadline_ms;
	case OFFENCE_PROTOCOL:
		return c->penalty_protocol_ms;
	case OFFENCE_CRASH:
		return c->penalty_crash_ms;
	}
	return 0;
}

int64_t
source_penalise(const struct frontend_limits *c, struct source *s,
    enum offence offence, int64_t now)
{
	int64_t before, max = now + c->penalty_max_ms;
	int64_t threshold = c->penalty_threshold_ms;

	if (s == NULL || c->penalty_max_ms == 0)
		return 0;
	before = s->until > now ? s->until - now : 0;
	s->until = now + before + cost_of(c, offence);
	if (s->until > max)
		s->until = max;
	return before <= threshold && s->until - now > threshold
		   ? s->until - now
		   : 0;
}

size_t
source_count(void)
{
	return sources.count;
}
