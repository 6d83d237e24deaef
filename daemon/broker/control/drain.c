/* SPDX-License-Identifier: ISC */
/*
 * The operator's drain.
 */
#include "drain.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "broker_state.h"
#include "frontend_child.h"
#include "log.h"
#include "secret.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "systemd.h"
#include "util.h"

static uint64_t
wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void
drain_init(struct drain *d)
{
	_cleanup_close_ int fd = spawn_take(STORED_DRAINED);
	unsigned long long since_ms;
	char text[64] = "";

	*d = (struct drain){ .drained = false };
	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0 ||
	    sscanf(text, "%u %llu", &d->by, &since_ms) != 2)
		return;
	d->drained = true;
	d->since_ms = since_ms;
	log_info("no new sessions: execd was drained by uid %u", d->by);
}

static void
keep(const struct drain *d)
{
	_cleanup_close_ int fd = -1;
	char text[64];
	int n = snprintf(text, sizeof(text), "%u %llu", d->by,
	    (unsigned long long)d->since_ms);

	fd = secret_memfd("drained", text, (size_t)n);
	if (fd >= 0)
		spawn_store(STORED_DRAINED, fd);
	else
		log_error(fd, "drain: the next broker will not know of it");
}

bool
drain_begin(struct broker *m, uint32_t uid)
{
	if (m->drain.drained)
		return false;
	m->drain = (struct drain){ true, uid, wall_ms() };
	log_info("drained by uid %u: no new sessions; %zu go on", uid,
	    m->sessions->by_id.count);
	keep(&m->drain);
	session_spare_drop_all(m);
	frontend_drain(m);
	notify("STATUS=drained by uid %u", uid);
	return true;
}

bool
drain_end(struct broker *m, uint32_t uid)
{
	if (!m->drain.drained)
		return false;
	m->drain = (struct drain){ .drained = false };
	log_info("undrained by uid %u: new sessions are opened again", uid);
	spawn_store(STORED_DRAINED, -1);
	frontend_drain(m);
	notify("STATUS=serving");
	return true;
}
