/* SPDX-License-Identifier: ISC */
#include "admission.h"

#include <event2/event_struct.h>

#include "frontend.h"
#include "log_limit.h"
#include "loop.h"
#include "metrics.h"

#define RETRY_MS 1000

#define VISITOR(w)                                                             \
	((struct visitor *)((char *)(w)-offsetof(struct visitor, waiter)))

uint32_t admission_connections_max = UINT32_MAX;

static struct fairness fairness = FAIRNESS_INITIALIZER(fairness);
static TAILQ_HEAD(, visitor) ages = TAILQ_HEAD_INITIALIZER(ages);
static const struct admission_target *target;
/* runs until the oldest visitor has waited too long */
static struct event timer;

void
admission_init(const struct admission_target *behind)
{
	target = behind;
}

size_t
admission_waiting(void)
{
	return fairness.waiting;
}

/* --- refusals ----------------------------------------------------------- */

/* Floods come from many sources, so these lines are limited for all sources
 * together. */
static void
log_refusal(const char *peer, const char *why, uint32_t limit)
{
	if (log_permits(LOG_DECISION, "refused", why))
		log_warn(0, "%s: refused, limit of %u connections %sreached",
		    peer, limit, why);
}

/* Through TLS, an answer would need a handshake first. */
void
admission_refuse(int fd, bool tls, int64_t wait_ms)
{
	char reply[160];
	int n = snprintf(reply, sizeof(reply),
	    "HTTP/1.1 503 Service Unavailable\r\nretry-after: %lld\r\n"
	    "connection: close\r\ncontent-length: 0\r\n\r\n",
	    (long long)((wait_ms + 999) / 1000));

	/* A short answer fits into the socket buffer of a new connection. */
	if (!tls && send(fd, reply, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("a refused client did not hear of it");
	close(fd);
}

/* Tells a waiting visitor to come again. */
static void
send_away(struct visitor *v)
{
	metrics.refused_waiting++;
	log_refusal(
	    v->peer, "without a credential ", config.max_unauthenticated);
	fairness_forget(&fairness, &v->waiter);
	TAILQ_REMOVE(&ages, v, age);
	admission_refuse(v->fd, v->tls, RETRY_MS);
	source_leave(v->source, now_ms());
	free(v);
}

bool
admission_has_room(const struct visitor *v)
{
	uint32_t have = target->count() + (uint32_t)fairness.waiting;
	uint32_t max = config.max_connections < admission_connections_max
			   ? config.max_connections
			   : admission_connections_max;

	if (have < max)
		return true;
	log_refusal(v->peer, "", max);
	metrics.refused_limit++;
	admission_refuse(v->fd, v->tls, RETRY_MS);
	return false;
}

/* Returns false if the visitor was refused. Penalties are not logged here,
 * because they were logged when they were given. */
static bool
is_admitted(struct visitor *v, const struct sockaddr *from)
{
	int64_t wait_ms = RETRY_MS;

	if (!admission_has_room(v))
		return false;
	if (from == NULL) {
		metrics.accepted++;
		return true;
	}
	switch (
	    source_admit(&config, from, v->since_ms, &v->source, &wait_ms)) {
	case ADMITTED:
		metrics.accepted++;
		return true;
	case REFUSED_CONNECTIONS:
		log_refusal(v->peer, "of one source ", config.max_per_source);
		metrics.refused_source++;
		break;
	case REFUSED_PENALTY:
		metrics.refused_penalty++;
		log_debug(
		    "%s: refused for %lld ms", v->peer, (long long)wait_ms);
		break;
	}
	admission_refuse(v->fd, v->tls, wait_ms);
	return false;
}

/* --- waiting ------------------------------------------------------------ */

static void expire_cb(evutil_socket_t fd, short what, void *arg);

void
admission_arm(
    struct event *ev, const struct visitor *oldest, event_callback_fn expire)
{
	struct timeval tv;
	int64_t ms;

	if (!event_initialized(ev))
		event_assign(ev, base, -1, 0, expire, NULL);
	event_del(ev);
	if (oldest == NULL)
		return;
	ms = oldest->since_ms + config.pre_auth_deadline_ms - now_ms();
	tv = timeval_of_ms(ms > 0 ? (uint64_t)ms : 0);
	loop_add(ev, &tv);
}

static void
arm(void)
{
	admission_arm(&timer, TAILQ_FIRST(&ages), expire_cb);
}

static void
expire_cb(evutil_socket_t fd, short what, void *arg)
{
	int64_t now = now_ms();
	struct visitor *v;

	while ((v = TAILQ_FIRST(&ages)) != NULL &&
	       now - v->since_ms >= config.pre_auth_deadline_ms)
		send_away(v);
	arm();
}

/* Adds a visitor to the queue. The queue holds as many visitors as there are
 * slots. If it is too long, the oldest visitor of the source with the most is
 * sent away. */
static void
wait_for_slot(const struct visitor *newcomer)
{
	struct visitor *v = xcalloc(1, sizeof(*v));
	struct fair_waiter *w;

	*v = *newcomer;
	fairness_wait(&fairness, source_share(v->source), &v->waiter);
	TAILQ_INSERT_TAIL(&ages, v, age);
	if (fairness.waiting > config.max_unauthenticated) {
		w = fairness_fullest(&fairness);
		send_away(VISITOR(w));
	}
	arm();
}

/* Begins the connection, unless its listener has been closed meanwhile. */
static void
begin(const struct visitor *v, bool slot)
{
	if (target->begin(v, slot))
		return;
	admission_refuse(v->fd, v->tls, RETRY_MS);
	if (slot)
		fairness_leave(&fairness, source_share(v->source));
	source_leave(v->source, now_ms());
}

static void
let_in(void)
{
	struct fair_waiter *w;
	bool any = false;

	while ((w = fairness_next(&fairness, config.max_unauthenticated)) !=
	       NULL) {
		struct visitor *v = VISITOR(w);

		any = true;
		TAILQ_REMOVE(&ages, v, age);
		begin(v, true);
		free(v);
	}
	if (any)
		arm();
}

/* --- coming and leaving ------------------------------------------------- */

void
admission_take(const struct visitor *newcomer, const struct sockaddr *from)
{
	struct visitor v = *newcomer;

	v.since_ms = now_ms();
	if (!is_admitted(&v, from))
		return;
	if (v.source == NULL)
		begin(&v, false);
	else if (fairness_enter(&fairness, source_share(v.source),
		     config.max_unauthenticated))
		begin(&v, true);
	else
		wait_for_slot(&v);
}

void
admission_leave(struct source *source)
{
	fairness_leave(&fairness, source_share(source));
	let_in();
}

void
admission_reload(void)
{
	let_in();
	if (fairness.waiting > 0)
		arm();
}

void
admission_end(void)
{
	struct visitor *v;

	while ((v = TAILQ_FIRST(&ages)) != NULL)
		send_away(v);
	arm();
}
