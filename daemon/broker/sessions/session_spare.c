/* SPDX-License-Identifier: ISC */
/*
 * Spare runners, one for each identity that is in use.
 */
#include "session_spare.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "broker_state.h"
#include "conf.h"
#include "identity.h"
#include "log.h"
#include "session_limit.h"
#include "session_registry.h"
#include "util.h"

/* How long a spare is kept after the identity's last session. */
#define SPARE_MS 120000

static struct spare *
find_slot(struct registry *r, const struct identity *identity)
{
	for (size_t i = 0; i < nitems(r->spares); i++)
		if (r->spares[i].identity == identity)
			return &r->spares[i];
	return NULL;
}

static uint32_t
count(const struct registry *r)
{
	uint32_t n = 0;

	for (size_t i = 0; i < nitems(r->spares); i++)
		n += r->spares[i].session != NULL;
	return n;
}

static void
drop(struct registry *r, struct spare *slot)
{
	if (slot->session != NULL)
		session_discard(r, slot->session);
	*slot = (struct spare){ 0 };
}

void
session_spare_drop_all(struct broker *m)
{
	struct registry *r = m->sessions;

	for (size_t i = 0; i < nitems(r->spares); i++)
		drop(r, &r->spares[i]);
}

/* Sessions come before spares if descriptors are scarce. */
static bool
is_crowded(const struct broker *m, uint32_t more)
{
	return m->sessions->by_id.count + count(m->sessions) + more >=
	       session_limit_descriptors();
}

/* A spare has nothing to report, and hangs up only when it dies. */
static bool
is_alive(const struct session *s)
{
	struct pollfd end = { .fd = s->runner.control.fd, .events = POLLIN };

	return poll(&end, 1, 0) == 0;
}

/* A mount namespace is a copy. A spare may not see what is mounted later. */
static void
mounts_changed(struct event_source *source, uint32_t events)
{
	session_spare_drop_all(&broker);
}

static void
watch_mounts(void)
{
	static struct event_source mounts = { .fd = -1 };
	int fd;

	if (mounts.fd >= 0)
		return;
	fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 &&
	    event_source_add(&mounts, fd, EPOLLPRI, mounts_changed) < 0)
		close(fd);
}

struct session *
session_spare_take(struct broker *m, const struct identity *identity)
{
	struct registry *r = m->sessions;
	struct spare *slot;
	struct session *s;

	if (is_crowded(m, 0))
		session_spare_drop_all(m);
	slot = find_slot(r, identity);
	if (slot == NULL || slot->session == NULL)
		return NULL;
	if (!is_alive(slot->session)) {
		session_spare_lost(m, slot->session);
		return NULL;
	}
	s = slot->session;
	slot->session = NULL;
	return s;
}

/* Spares are for the identities that were used last. */
static struct spare *
take_slot(struct registry *r)
{
	struct spare *oldest = &r->spares[0];

	for (size_t i = 1; i < nitems(r->spares); i++)
		if (r->spares[i].until_ms < oldest->until_ms)
			oldest = &r->spares[i];
	drop(r, oldest);
	return oldest;
}

/* A spare counts among the user's processes, and would take one of their
 * places. Over stdio there is only one session. */
void
session_spare_want(struct broker *m, struct identity *identity)
{
	struct spare *slot;

	if (m->stdio || drain_reason(m) != NULL ||
	    identity->limits.max_processes > 0 ||
	    !conf_has_identity(m->conf, identity))
		return;
	if (m->root)
		watch_mounts();
	slot = find_slot(m->sessions, identity);
	if (slot == NULL)
		slot = take_slot(m->sessions);
	slot->identity = identity;
	slot->wanted = slot->session == NULL;
	slot->until_ms = now_ms() + SPARE_MS;
}

static void
make(struct broker *m, struct spare *slot)
{
	struct session *s;
	char reason[256];

	slot->wanted = false;
	if (is_crowded(m, 1) || !session_limit_room(m, slot->identity, reason))
		return;
	s = session_new(slot->identity);
	if (session_start(m, s, reason) == 0) {
		slot->session = s;
		return;
	}
	log_warn(0, "no spare runner for %s: %s", slot->identity->name, reason);
	session_discard(m->sessions, s);
}

void
session_spare_make(struct broker *m)
{
	struct registry *r = m->sessions;

	for (size_t i = 0; i < nitems(r->spares); i++)
		if (r->spares[i].wanted) {
			make(m, &r->spares[i]);
			return;
		}
}

int64_t
session_spare_expire(struct broker *m, int64_t now)
{
	struct registry *r = m->sessions;
	int64_t next = -1;

	for (size_t i = 0; i < nitems(r->spares); i++) {
		struct spare *slot = &r->spares[i];

		if (slot->wanted)
			return now;
		if (slot->identity != NULL && slot->until_ms <= now)
			drop(r, slot);
		if (slot->identity != NULL &&
		    (next < 0 || slot->until_ms < next))
			next = slot->until_ms;
	}
	return next;
}

static bool
forget(struct registry *r, const struct session *s)
{
	struct spare *slot = find_slot(r, s->identity);

	if (slot == NULL || slot->session != s)
		return false;
	slot->session = NULL;
	log_warn(0, "a spare runner for %s ended", s->identity->name);
	return true;
}

void
session_spare_lost(struct broker *m, struct session *s)
{
	forget(m->sessions, s);
	session_discard(m->sessions, s);
}

void
session_spare_reaped(struct broker *m, struct session *s)
{
	forget(m->sessions, s);
}
