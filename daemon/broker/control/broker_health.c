/* SPDX-License-Identifier: ISC */
#include "broker_health.h"

#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "systemd.h"

const char *
broker_health_of_parts(const struct broker *m, int64_t now)
{
	const struct frontend *f = m->frontend;

	if (f->state == FRONTEND_DOWN)
		return "there is no front-end";
	if (f->state == FRONTEND_CONFINING)
		return "the front-end is starting";
	if (f->answer_ms > 0 && now >= f->answer_ms)
		return "the front-end does not answer";
	if (m->helpers->restart_ms > 0 || helpers_are_ending(m->helpers))
		return "a key or certificate process does not answer";
	return NULL;
}

const char *
broker_health_reason(const struct broker *m, int64_t now)
{
	const char *ill = broker_health_of_parts(m, now);

	if (ill == NULL && m->audit_stopped)
		return "the audit log cannot be written";
	return ill == NULL && spawn_is_silent(now)
		   ? "root's execd does not answer"
		   : ill;
}

/*
 * How much this host can take.
 */

/* The kernel computes its averages every 2 s. */
#define PRESSURE_MS 2000

unsigned
load_pressure(const char *text)
{
	unsigned whole, hundredths;

	if (sscanf(text, "some avg10=%3u.%2u", &whole, &hundredths) != 2)
		return 0;
	whole += hundredths > 0;
	return whole < 100 ? whole : 100;
}

uint8_t
load_room(size_t places, size_t used, unsigned pressure)
{
	size_t free_places = used < places ? places - used : 0;
	unsigned room;

	if (free_places == 0)
		return 0;
	room = (unsigned)(free_places * 100 / places);
	if (room > 100 - pressure)
		room = 100 - pressure;
	return (uint8_t)(room > 0 ? room : 1);
}

/* A kernel without /proc/pressure has none. */
static unsigned
read_pressure(const char *path)
{
	char text[256];

	return read_whole(AT_FDCWD, path, text, sizeof(text)) <= 0
		   ? 0
		   : load_pressure(text);
}

static unsigned
pressure_at(int64_t now)
{
	static int64_t next_ms;
	static unsigned pressure;
	unsigned memory;

	if (now < next_ms)
		return pressure;
	next_ms = now + PRESSURE_MS;
	pressure = read_pressure("/proc/pressure/cpu");
	memory = read_pressure("/proc/pressure/memory");
	if (memory > pressure)
		pressure = memory;
	return pressure;
}

static bool
is_wanted(const struct conf *c)
{
	for (size_t i = 0; i < c->nlisteners; i++)
		if (c->listeners[i]->keys.agent)
			return true;
	return false;
}

int64_t
load_watch(struct broker *m, int64_t now)
{
	struct frontend *f = m->frontend;
	struct control_load load;

	if (f->state != FRONTEND_SERVING || !is_wanted(m->conf))
		return -1;
	load.room_percent = load_room(session_limit_places(m),
	    m->sessions->by_id.count, pressure_at(now));
	if (load.room_percent != f->room_percent) {
		f->room_percent = load.room_percent;
		frontend_send(f, BROKER_EV_LOAD, &load, -1);
	}
	return now + PRESSURE_MS;
}

/* --- the drain ----------------------------------------------------------- */

static uint64_t
wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
read_times(struct broker *m)
{
	const int64_t *until_ms = spawn_keeps()->until_ms;

	if (until_ms[0] == 0 && until_ms[1] == 0)
		return;
	m->notice_until_ms = until_ms[0];
	m->drain_until_ms = until_ms[1];
	m->draining = m->drain_until_ms > 0;
	log_info("signal %d came to an earlier broker, and the drain goes on",
	    drain_signal(m));
}

void
drain_keep_times(const struct broker *m)
{
	int64_t *until_ms = spawn_keeps()->until_ms;

	until_ms[0] = m->notice_until_ms;
	until_ms[1] = m->drain_until_ms;
	spawn_ending();
}

void
drain_forget_times(void)
{
	int64_t *until_ms = spawn_keeps()->until_ms;

	until_ms[0] = until_ms[1] = 0;
}

static void
read_drained(struct drain *d)
{
	unsigned long long since_ms;
	long long notice_until_ms = 0; /* of an earlier version: none */
	char text[sizeof(spawn_keeps()->drained)];

	*d = (struct drain){ .drained = false };
	memcpy(text, spawn_keeps()->drained, sizeof(text));
	text[sizeof(text) - 1] = '\0'; /* whoever wrote it */
	if (sscanf(text, "%u %llu %lld", &d->by, &since_ms, &notice_until_ms) <
	    2)
		return;
	d->drained = true;
	d->since_ms = since_ms;
	d->notice_until_ms = notice_until_ms;
	log_info("no new sessions: execd was drained by uid %u", d->by);
}

int
drain_signal(const struct broker *m)
{
	return m->options->sessions != NULL ? SIGINT : SIGTERM;
}

void
drain_init(struct broker *m)
{
	read_drained(&m->drain);
	read_times(m);
}

static void
keep_drained(const struct drain *d)
{
	snprintf(spawn_keeps()->drained, sizeof(spawn_keeps()->drained),
	    "%u %llu %lld", d->by, (unsigned long long)d->since_ms,
	    (long long)d->notice_until_ms);
}

static void
refuse_new(struct broker *m)
{
	m->drain.notice_until_ms = 0;
	log_info("drained by uid %u: no new sessions; %zu go on", m->drain.by,
	    m->sessions->by_id.count);
	session_spare_drop_all(m);
}

/* A balancer reads /readyz and stops; what it sends meanwhile is served. */
bool
drain_begin(struct broker *m, uint32_t uid)
{
	uint32_t ms = m->conf->limits.drain_notice_ms;

	if (m->drain.drained)
		return false;
	m->drain =
	    (struct drain){ true, uid, wall_ms(), ms > 0 ? now_ms() + ms : 0 };
	keep_drained(&m->drain);
	if (ms > 0)
		log_info("drained by uid %u: new sessions are opened for "
			 "another %u ms",
		    uid, ms);
	else
		refuse_new(m);
	frontend_drain(m);
	notify("STATUS=drained by uid %u", uid);
	return true;
}

int64_t
drain_watch(struct broker *m, int64_t now)
{
	if (now < m->drain.notice_until_ms)
		return m->drain.notice_until_ms;
	if (m->drain.notice_until_ms > 0)
		refuse_new(m);
	return -1;
}

uint64_t
drain_notice_ms(const struct broker *m)
{
	int64_t now = now_ms(), until = m->drain.notice_until_ms;

	if (m->notice_until_ms > 0)
		until = m->notice_until_ms;
	return m->stopping || m->draining || until < now
		   ? 0
		   : (uint64_t)(until - now);
}

bool
drain_end(struct broker *m, uint32_t uid)
{
	if (!m->drain.drained)
		return false;
	m->drain = (struct drain){ .drained = false };
	log_info("undrained by uid %u: new sessions are opened again", uid);
	spawn_keeps()->drained[0] = '\0';
	frontend_drain(m);
	notify("STATUS=serving");
	return true;
}
