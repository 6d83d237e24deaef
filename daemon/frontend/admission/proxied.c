/* SPDX-License-Identifier: ISC */
/*
 * Connections from trusted proxies, until their header has come, and the
 * header itself: the PROXY protocol, version 2.
 */
#include "admission.h"

#include <event2/event_struct.h>

#include "frontend.h"
#include "log_limit.h"
#include "metrics.h"

/*
 * The header of the PROXY protocol, version 2.
 */

#define FIXED_BYTES	16 /* signature, version and command, family, length */
#define SIGNATURE_BYTES 12
#define INET_BYTES	12 /* two addresses, two ports */
#define INET6_BYTES	36

enum command { COMMAND_LOCAL, COMMAND_PROXY };

/* Family and transport. */
enum carries { CARRIES_TCP4 = 0x11, CARRIES_TCP6 = 0x21 };

static const uint8_t signature[SIGNATURE_BYTES] = { '\r', '\n', '\r', '\n',
	'\0', '\r', '\n', 'Q', 'U', 'I', 'T', '\n' };

static const char *
check_command(uint8_t version_and_command)
{
	if (version_and_command >> 4 != 2)
		return "its version is not 2";
	if ((version_and_command & 15) > COMMAND_PROXY)
		return "its command is neither LOCAL nor PROXY";
	return NULL;
}

/* LOCAL says nothing about addresses, whatever its family is. */
static const char *
check_family(const uint8_t *p, size_t length)
{
	if ((p[12] & 15) == COMMAND_LOCAL)
		return NULL;
	if (p[13] != CARRIES_TCP4 && p[13] != CARRIES_TCP6)
		return "its client has no address of TCP over IPv4 or IPv6";
	if (length < (p[13] == CARRIES_TCP4 ? INET_BYTES : INET6_BYTES))
		return "it is too short for its addresses";
	return NULL;
}

/* Returns what is wrong with the part that has come, as early as possible. */
static const char *
check(const uint8_t *p, size_t n)
{
	size_t length = n >= FIXED_BYTES ? (size_t)p[14] << 8 | p[15] : 0;
	const char *why = NULL;

	if (memcmp(p, signature, n < SIGNATURE_BYTES ? n : SIGNATURE_BYTES) !=
	    0)
		return "not a PROXY v2 header";
	if (n > SIGNATURE_BYTES)
		why = check_command(p[12]);
	if (why == NULL && length > PROXY_HEADER_MAX - FIXED_BYTES)
		why = "it is longer than 536 bytes";
	if (why == NULL && n >= FIXED_BYTES)
		why = check_family(p, length);
	return why;
}

static void
take_address(const uint8_t *p, struct proxy_header *h)
{
	const uint8_t *at = p + FIXED_BYTES;

	if (p[13] == CARRIES_TCP4) {
		h->from.in.sin_family = AF_INET;
		memcpy(&h->from.in.sin_addr, at, 4);
		memcpy(&h->from.in.sin_port, at + 8, 2);
	} else {
		h->from.in6.sin6_family = AF_INET6;
		memcpy(&h->from.in6.sin6_addr, at, 16);
		memcpy(&h->from.in6.sin6_port, at + 32, 2);
	}
}

int
proxy_header_parse(
    const uint8_t *p, size_t n, struct proxy_header *h, const char **why)
{
	size_t whole;

	*why = check(p, n);
	if (*why != NULL)
		return -EBADMSG;
	if (n < FIXED_BYTES)
		return (int)(FIXED_BYTES - n);
	whole = FIXED_BYTES + ((size_t)p[14] << 8 | p[15]);
	if (n < whole)
		return (int)(whole - n);
	memset(h, 0, sizeof(*h));
	h->local = (p[12] & 15) == COMMAND_LOCAL;
	if (!h->local)
		take_address(p, h);
	return 0;
}

/*
 * Connections from trusted proxies, until their header has come.
 */

struct proxied {
	TAILQ_ENTRY(proxied) link; /* all */
	struct event event;
	struct visitor visitor;
	size_t len;
	uint8_t bytes[PROXY_HEADER_MAX];
};

/* Oldest first, and so in the order of their deadlines. */
static TAILQ_HEAD(, proxied) all = TAILQ_HEAD_INITIALIZER(all);
static size_t count;
static struct event timer; /* runs until the oldest one's deadline */

static void expire_cb(evutil_socket_t fd, short what, void *arg);

static void
arm(void)
{
	const struct proxied *p = TAILQ_FIRST(&all);

	admission_arm(&timer, p != NULL ? &p->visitor : NULL, expire_cb);
}

/* Its descriptor goes to the caller. */
static struct visitor
forget(struct proxied *p)
{
	struct visitor v = p->visitor;

	TAILQ_REMOVE(&all, p, link);
	count--;
	event_del(&p->event);
	free(p);
	arm();
	return v;
}

/* A proxy gets no penalty, because all of its clients would share it. */
static void
give_up(struct proxied *p, const char *why)
{
	struct visitor v = forget(p);

	metrics.proxy_failed++;
	if (log_permits(LOG_FAILURE, v.peer, "PROXY"))
		log_info("%s: a trusted proxy, closed: %s", v.peer, why);
	close(v.fd);
}

static void
expire_cb(evutil_socket_t fd, short what, void *arg)
{
	int64_t now = now_ms();
	struct proxied *p;

	while ((p = TAILQ_FIRST(&all)) != NULL &&
	       now - p->visitor.since_ms >= config.pre_auth_deadline_ms)
		give_up(p, "no PROXY header within the pre-auth deadline");
	arm();
}

/* The proxy ended the connection. Without a byte of a header this is how some
 * look whether the port is open. */
static void
on_end(struct proxied *p)
{
	if (p->len > 0)
		give_up(p, "it ended within its PROXY header");
	else
		close(forget(p).fd);
}

static void
on_header(struct proxied *p, const struct proxy_header *h)
{
	struct visitor v = forget(p);

	if (h->local) {
		admission_take(&v, NULL);
		return;
	}
	snprintf(v.proxy, sizeof(v.proxy), "%s", v.peer);
	source_text(&h->from.any, v.peer);
	admission_take(&v, &h->from.any);
}

/* Reads as far as the header goes and no further: what is behind it, TLS or
 * HTTP, belongs to the connection. */
static void
read_header(struct proxied *p)
{
	struct proxy_header h;
	const char *why;
	int want;

	while ((want = proxy_header_parse(p->bytes, p->len, &h, &why)) > 0) {
		ssize_t n = recv(p->visitor.fd, p->bytes + p->len, (size_t)want,
		    MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			on_end(p);
			return;
		}
		p->len += (size_t)n;
	}
	if (want < 0)
		give_up(p, why);
	else
		on_header(p, &h);
}

static void
read_cb(evutil_socket_t fd, short what, void *arg)
{
	read_header(arg);
}

void
proxied_take(const struct visitor *v)
{
	struct proxied *p;

	if (!admission_has_room(v))
		return;
	p = xcalloc(1, sizeof(*p));
	p->visitor = *v;
	p->visitor.since_ms = now_ms();
	TAILQ_INSERT_TAIL(&all, p, link);
	event_assign(&p->event, base, v->fd, EV_READ | EV_PERSIST, read_cb, p);
	if (count++ == 0)
		arm();
	if (event_add(&p->event, NULL) < 0)
		give_up(p, "it cannot be watched");
	else
		read_header(p); /* a proxy sends it at once */
	if (count > config.max_unauthenticated)
		give_up(TAILQ_FIRST(&all),
		    "more than max-unauthenticated connections owe a header");
}

void
proxied_reload(void)
{
	if (count > 0)
		arm();
}

void
proxied_end(void)
{
	struct proxied *p;

	while ((p = TAILQ_FIRST(&all)) != NULL)
		close(forget(p).fd);
}

size_t
proxied_count(void)
{
	return count;
}
