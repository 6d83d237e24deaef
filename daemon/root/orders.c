/* SPDX-License-Identifier: ISC */
/*
 * What the broker may ask of root: one table. The broker is believed in
 * everything but one: nobody is ever root. What is not in the table, or not
 * permitted now, is the broker's end, and the next one goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_layout.h"
#include "dispose.h"
#include "door.h"
#include "log.h"
#include "quota.h"
#include "root.h"
#include "seqpacket.h"
#include "spawn.h"
#include "sweep.h"
#include "util.h"

/* Root speaks with the broker, and with nobody else. */
const struct control_layouts *const control_layouts_all[] = {
	&control_layouts_spawn, NULL
};

int
orders_tell(int fd, enum control_type type, const void *payload, const int *fds,
    size_t nfds)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(fd, b.data, b.len, fds, nfds);
	buf_clear(&b);
	return err;
}

/* The broker waits for each answer, so there is room for it. 0 or -EBADMSG. */
static int
answer(enum control_type type, const void *payload, const int *fds, size_t nfds)
{
	return orders_tell(root.channel, type, payload, fds, nfds) < 0
		   ? -EBADMSG
		   : 0;
}

/* --- the beginning ------------------------------------------------------- */

/* The first broker has read its configuration: there is something to do. */
static void
begin_serving(void)
{
	root.begun = true;
	log_never_block();
	quota_init(root.broker);
}

static int
take_begin(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_spawn_ready ready = {
		.groups_made = runners_groups_made(),
		.served = root.served,
	};
	const char *step = "";

	if (nfds != 1 || control_get(packet, len, SPAWN_BEGIN, NULL) < 0)
		return -EBADMSG;
	root.events = fcntl(fds[0], F_DUPFD_CLOEXEC, CONTROL_FD + 1);
	if (root.events < 0)
		return -EBADMSG;
	if (!root.begun)
		begin_serving();
	root_renew_runner();
	ready.controllers = quota_controllers();
	if (root.is_root)
		ready.error = (uint32_t)-spawn_probe(&step);
	snprintf(ready.step, sizeof(ready.step), "%s", step);
	root.state = ORDERS_SERVING;
	root.spoken = SPAWN_VERSION;
	store_begin();
	return answer(SPAWN_READY, &ready, NULL, 0);
}

static int
take_next(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_kept kept = { 0 };
	struct control_next next;
	int fd = -1;

	if (nfds != 0 || control_get(packet, len, SPAWN_NEXT, &next) < 0)
		return -EBADMSG;
	runners_at(next.index, &kept, &fd);
	return answer(SPAWN_KEPT, &kept, &fd, fd >= 0);
}

static int
take_store(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_store s;
	int err;

	if (nfds > 1 || control_get(packet, len, SPAWN_STORE, &s) < 0)
		return -EBADMSG;
	err = store_keep(s.name, nfds == 1 ? fds[0] : -1);
	if (err < 0)
		log_warn(err, "keeping %.100s for the next broker", s.name);
	return 0;
}

static int
take_take(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_stored stored;
	struct control_store s;
	int fd;

	if (nfds != 0 || control_get(packet, len, SPAWN_TAKE, &s) < 0)
		return -EBADMSG;
	fd = store_find(s.name);
	stored.there = fd >= 0;
	return answer(SPAWN_STORED, &stored, &fd, fd >= 0);
}

static int
take_serving(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_serving s;

	if (nfds != 0 || control_get(packet, len, SPAWN_SERVING, &s) < 0)
		return -EBADMSG;
	store_drop_unused();
	root.served = true;
	root.replaceable = s.replaceable;
	root.failures = 0;
	return 0;
}

static int
take_stop(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_stop s;

	if (nfds != 0 || control_get(packet, len, SPAWN_STOP, &s) < 0)
		return -EBADMSG;
	/* The end of a service is not that of the sessions in another unit. */
	if (root.listener >= 0)
		return -EBADMSG;
	root.stopping = true;
	root.exit_code = s.code;
	return 0;
}

static int
take_alive(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	if (nfds != 0 || control_get(packet, len, SPAWN_ALIVE, NULL) < 0 ||
	    root.answer_ms == 0)
		return -EBADMSG;
	broker_is_alive();
	return 0;
}

/* --- runners ------------------------------------------------------------- */

/* It becomes the name of a directory. */
static bool
is_group(const char *name)
{
	size_t prefix = strlen(SESSION_GROUP_PREFIX);

	return strncmp(name, SESSION_GROUP_PREFIX, prefix) == 0 &&
	       name[prefix] != '\0' && strlen(name) <= prefix + 19 &&
	       strspn(name + prefix, "0123456789") == strlen(name + prefix);
}

/* Whom nobody becomes: root; of an ordinary user's execd, anybody else. */
static bool
is_permitted(uint32_t uid)
{
	return uid != 0 && (root.is_root || uid == geteuid());
}

static int
take_start(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_runner_started started = { 0 };
	int dirs[CONTROL_FDS_MAX], err;
	struct control_start s;
	struct spawn_order o;
	size_t ndirs = 0;

	if (nfds != 3 || control_get(packet, len, SPAWN_START, &s) < 0 ||
	    !is_group(s.group) || order_read(&o, &s, fds[2]) < 0)
		return -EBADMSG;
	if (is_permitted(s.uid))
		runners_start(&o, fds[0], fds[1], &started, dirs, &ndirs);
	else
		started.error = EPERM;
	order_clear(&o);
	err = answer(SPAWN_STARTED, &started, dirs, ndirs);
	while (ndirs > 0)
		close(dirs[--ndirs]);
	return err;
}

static int
take_userns(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_spawn_error opened = { 0 };
	const char *step = "";
	struct control_userns d;
	int fd = -EPERM, err;

	if (nfds != 0 || control_get(packet, len, SPAWN_USERNS, &d) < 0)
		return -EBADMSG;
	if (is_permitted(d.uid))
		fd = userns_open(root.runner, d.uid, d.gid, &step);
	opened.error = fd < 0 ? (uint32_t)-fd : 0;
	snprintf(opened.step, sizeof(opened.step), "%s", step);
	err = answer(SPAWN_OPENED, &opened, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	return err;
}

static int
take_sweep(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_start s;
	struct spawn_order o;

	if (nfds != 2 || control_get(packet, len, SPAWN_SWEEP, &s) < 0 ||
	    !is_permitted(s.uid) || order_read(&o, &s, fds[1]) < 0)
		return -EBADMSG;
	sweep_start(root.runner, &o, fds[0]);
	order_clear(&o);
	return 0;
}

static int
take_kill(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_pid p;

	if (nfds != 0 || control_get(packet, len, SPAWN_KILL, &p) < 0)
		return -EBADMSG;
	runners_kill((pid_t)p.pid);
	return 0;
}

static int
take_end(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_pid p;

	if (nfds != 0 || control_get(packet, len, SPAWN_END, &p) < 0)
		return -EBADMSG;
	return runners_forget((pid_t)p.pid) < 0 ? -EBADMSG : 0;
}

static const struct order {
	enum control_type type;
	unsigned when; /* mask of enum order_state */
	int (*take)(
	    const uint8_t *packet, size_t len, const int *fds, size_t nfds);
} orders[] = {
	{ SPAWN_BEGIN, ORDERS_NEW, take_begin },
	{ SPAWN_NEXT, ORDERS_SERVING, take_next },
	{ SPAWN_STORE, ORDERS_SERVING, take_store },
	{ SPAWN_TAKE, ORDERS_SERVING, take_take },
	{ SPAWN_SERVING, ORDERS_SERVING, take_serving },
	{ SPAWN_START, ORDERS_SERVING, take_start },
	{ SPAWN_USERNS, ORDERS_SERVING, take_userns },
	{ SPAWN_SWEEP, ORDERS_SERVING, take_sweep },
	{ SPAWN_KILL, ORDERS_SERVING, take_kill },
	{ SPAWN_END, ORDERS_SERVING, take_end },
	{ SPAWN_ALIVE, ORDERS_SERVING, take_alive },
	{ SPAWN_STOP, ORDERS_SERVING, take_stop },
};

static bool
take(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	enum control_type type = control_peek(packet, len);

	for (size_t i = 0; i < nitems(orders); i++)
		if (orders[i].type == type && orders[i].when & root.state)
			return orders[i].take(packet, len, fds, nfds) == 0;
	return false;
}

/* What the broker gave: closing a file in memory or a local socket waits for
 * nobody, and everything else is closed beside this process. */
static void
give_back(const int *fds, size_t nfds)
{
	for (size_t i = 0; i < nfds; i++) {
		int domain = 0;
		socklen_t len = sizeof(domain);

		if (fcntl(fds[i], F_GET_SEALS) >= 0 ||
		    (getsockopt(fds[i], SOL_SOCKET, SO_DOMAIN, &domain, &len) ==
			    0 &&
			domain == AF_UNIX))
			close(fds[i]);
		else
			dispose(&fds[i], 1);
	}
}

/* In one go; then signals and others have their turn. */
#define ORDERS_PER_WAKE 64

bool
orders_take(void)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	char fault[CONTROL_FAULT_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n = -EAGAIN;

	for (int i = 0; i < ORDERS_PER_WAKE && root.channel >= 0; i++) {
		n = seqpacket_recv(
		    root.channel, packet, sizeof(packet), fds, &nfds);
		if (n <= 0)
			break;
		if (!take(packet, (size_t)n, fds, nfds)) {
			log_error(0, "impossible order from the broker: %s",
			    control_fault(packet, (size_t)n, fault));
			n = -EBADMSG;
		}
		give_back(fds, nfds);
		if (n < 0)
			break;
	}
	if (n < 0 && n != -EAGAIN && n != -EBADMSG && n != -ECONNRESET)
		log_error((int)n, "the broker's orders");
	return n > 0 || n == -EAGAIN;
}
