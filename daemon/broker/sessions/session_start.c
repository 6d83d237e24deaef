/* SPDX-License-Identifier: ISC */
/*
 * Starts a session's runner: makes its control group and its process, and tells
 * it everything before anybody is attached. A spare runner is started before
 * its session is asked for.
 */
#include "base.h"
#include "session_registry.h"

#include <sys/random.h>

#include "broker_state.h"
#include "conf.h"
#include "rights.h"
#include "spawn_client.h"

/*
 * Spare runners, one for each identity that is in use.
 */

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
discard(struct registry *r, struct session *s)
{
	if (s->runner.pid > 0 && !s->runner.killed) {
		s->runner.killed = true;
		s->identity->killed_spares++;
	}
	session_discard(r, s);
}

static void
drop(struct registry *r, struct spare *slot)
{
	if (slot->session != NULL)
		discard(r, slot->session);
	watch_end(&slot->timer);
	*slot = (struct spare){ 0 };
}

void
session_spare_drop(struct broker *m, const struct identity *identity)
{
	struct spare *slot = find_slot(m->sessions, identity);

	if (slot != NULL)
		drop(m->sessions, slot);
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
	struct pollfd end = { .fd = watch_fd(&s->runner.control),
		.events = POLLIN };

	return poll(&end, 1, 0) == 0;
}

/* A mount namespace is a copy. A spare may not see what is mounted later. */
static void
mounts_changed(evutil_socket_t fd, short what, void *arg)
{
	session_spare_drop_all(&broker);
}

/* The file can always be read. The kernel tells a change as an error, which
 * libevent tells to whoever waits to write (proc(5)). */
static void
watch_mounts(void)
{
	static struct event mounts;
	int fd;

	if (watch_fd(&mounts) >= 0)
		return;
	fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 &&
	    watch_add(&mounts, fd, EV_WRITE, mounts_changed, NULL) < 0)
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
	discard(m->sessions, s);
}

/* A spare that is killed may be about to remove what a session left, and hold
 * the lock of its list. The next one would pass the list over, so it is started
 * when that one is reaped. */
static void
make_wanted(evutil_socket_t fd, short what, void *arg)
{
	struct registry *r = broker.sessions;

	for (size_t i = 0, n = 0; i < nitems(r->spares); i++) {
		if (!r->spares[i].wanted ||
		    r->spares[i].identity->killed_spares > 0)
			continue;
		if (n++ == 0)
			make(&broker, &r->spares[i]);
		else
			watch_idle(make_wanted); /* others come first */
	}
}

static void
too_late(evutil_socket_t fd, short what, void *arg)
{
	drop(broker.sessions, arg);
}

/* Over stdio there is only one session. */
void
session_spare_want(struct broker *m, struct identity *identity)
{
	struct spare *slot;

	if (m->stdio || m->leaving || drain_reason(m) != NULL ||
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
	watch_time(&slot->timer, SPARE_MS, too_late, slot);
	watch_idle(make_wanted);
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
	discard(m->sessions, s);
}

void
session_spare_reaped(struct broker *m, struct session *s)
{
	if (forget(m->sessions, s) || !s->runner.killed)
		return;
	s->identity->killed_spares--;
	watch_idle(make_wanted);
}

/* RFC 9562 version 4, from the kernel's random bytes. */
static void
make_id(char id[CONTROL_SESSION_ID_MAX])
{
	uint8_t r[16];

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		log_fatal("getrandom: no random bytes");
	r[6] = (r[6] & 0x0f) | 0x40;
	r[8] = (r[8] & 0x3f) | 0x80;
	snprintf(id, CONTROL_SESSION_ID_MAX,
	    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
	    "%02x%02x%02x%02x%02x%02x",
	    r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10],
	    r[11], r[12], r[13], r[14], r[15]);
}

void
session_name_group(struct session *s, const struct spawn_groups *groups)
{
	snprintf(s->group, sizeof(s->group), SESSION_GROUP_PREFIX "%llu",
	    (unsigned long long)groups->session);
	s->identity_group = groups->identity;
}

struct session *
session_new(struct identity *identity)
{
	struct session *s = xcalloc(1, sizeof(*s));

	s->identity = identity_ref(identity);
	s->runner.version = RUNNER_VERSION;
	s->state = SESSION_STATE_SPARE;
	TAILQ_INIT(&s->watchers.all);
	TAILQ_INIT(&s->commands.processes);
	make_id(s->id);
	return s;
}

/* All sessions of an identity have the same user and share one user namespace.
 * Without it the runner tries to make one itself. */
static int
find_userns(const struct broker *m, struct identity *id)
{
	const char *step;

	if (!m->root)
		return -1;
	if (id->userns_tried)
		return id->userns;
	id->userns_tried = true;
	id->userns = spawn_userns(id, &step);
	if (id->userns < 0)
		log_warn(
		    id->userns, "no user namespace for %s: %s", id->name, step);
	return id->userns;
}

/* A layout adds a length to each string, and nothing else. */
_Static_assert(sizeof(struct control_session_config) +
		       sizeof(struct control_audit) +
		       sizeof(struct control_audit_state) +
		       sizeof(struct sandbox_limits) + 1024 <=
		   CONTROL_MESSAGE_MAX,
    "a runner's first commands could be more than a packet");

_Static_assert(CONTROL_PATH_MAP_MAX >= PATH_MAP_TEXT_MAX,
    "every path map fits into the message");

static void
write_path_map(const struct path_map *map, char text[CONTROL_PATH_MAP_MAX])
{
	struct buf b;

	buf_init(&b, CONTROL_PATH_MAP_MAX);
	path_map_write(map, &b);
	buf_put_u8(&b, '\0');
	memcpy(text, b.data, b.len);
	buf_clear(&b);
}

static void
configure(struct broker *m, struct session *s, const struct cgroup *cgroup)
{
	const struct limits *l = &m->conf->limits;
	int fds[SPAWN_HELPERS + 1 + CGROUP_HIERARCHIES];
	struct sandbox_limits limits;
	size_t nfds = SPAWN_HELPERS;
	int userns = find_userns(m, s->identity);
	struct control_session_config c = {
		.pid_namespace = m->root,
		.command_deadline_ms = s->identity->limits.command_deadline_ms,
		.command_cpu_s = s->identity->limits.max_cpu_ms / 1000,
		.output_rate = s->identity->limits.output_rate,
		.record_tty = s->identity->record.directory != NULL,
		.record_input = s->identity->record.input,
		.record_required = s->identity->record.required,
		.record_max_bytes = s->identity->record.max_bytes,
		.detached_ttl_ms = l->detached_ttl_ms,
		.closed_ttl_ms = l->closed_ttl_ms,
		.kill_grace_ms = l->kill_grace_ms,
		.retention_bytes = l->retention_bytes,
		.max_message_bytes = l->frontend.max_message_bytes,
		.ping_interval_ms = l->frontend.ping_interval_ms,
		.pong_deadline_ms = l->frontend.pong_deadline_ms,
	};

	snprintf(c.session_id, sizeof(c.session_id), "%s", s->id);
	snprintf(c.provider_id, sizeof(c.provider_id), "%s", m->provider_id);
	snprintf(c.shell, sizeof(c.shell), "%s", s->identity->shell);
	snprintf(c.home, sizeof(c.home), "%s", s->identity->home);
	write_path_map(&s->identity->path_map, c.path_map);
	c.redirects = s->identity->redirects;
	memcpy(fds, spawn_helpers(), SPAWN_HELPERS * sizeof(*fds));
	c.netproxy = fds[SPAWN_HELPERS - 1] >= 0;
	if (!c.netproxy)
		nfds--;
	c.userns = userns >= 0;
	if (c.userns)
		fds[nfds++] = userns;
	nfds += cgroup_put(cgroup, &c.cgroups, fds + nfds);
	session_send_command(s, RUNNER_COMMAND_CONFIGURE, &c, fds, nfds);
	session_audit_configure(m, s);
	conf_sandbox_limits(m->conf, s->identity, &limits);
	session_send_command(s, RUNNER_COMMAND_SANDBOX, &limits, NULL, 0);
}

/* Returns 0, or -errno with the reason. */
static int
start_runner(struct session *s, struct cgroup *cgroup, char *reason)
{
	struct control_start start = { .user = s->identity->number };
	char step[64];
	int own = -1, err;
	struct spawn_groups groups = { 0, 0 };
	pid_t pid;

	memcpy(start.session_id, s->id, sizeof(start.session_id));
	pid = spawn_run(&start, &own, cgroup, &groups, step);
	if (pid > 0)
		session_name_group(s, &groups);
	s->runner.pid = pid > 0 ? pid : 0;
	err = pid > 0 ? session_control_watch(s, own) : (int)pid;
	if (err == 0)
		/* the runner has no descriptor to send */
		rights_refuse(own);
	else if (own >= 0)
		close(own);
	if (err == -EOPNOTSUPP)
		group_limits_reason(s->identity->name, reason);
	else if (err < 0)
		snprintf(reason, 256, "%s: %s", step, strerror(-err));
	return err;
}

int
session_start(struct broker *m, struct session *s, char *reason)
{
	struct cgroup cgroup = CGROUP_NONE;
	int err = start_runner(s, &cgroup, reason);

	if (s->runner.pid > 0)
		table_insert(
		    &m->sessions->by_pid, &s->by_pid, (uint64_t)s->runner.pid);
	if (err == 0)
		configure(m, s, &cgroup);
	else if (s->runner.pid > 0)
		spawn_kill(s->runner.pid);
	cgroup_close(&cgroup);
	return err;
}
