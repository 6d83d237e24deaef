/* SPDX-License-Identifier: ISC */
/*
 * What the broker may ask of root: one table. A broker that has met no client
 * makes the list. A serving broker names numbers of the list. A broker is
 * killed if its command is not in the table, or not permitted now. The next
 * broker takes over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cleanup.h"
#include "control_layout.h"
#include "ctl_path.h"
#include "dispose.h"
#include "log.h"
#include "root.h"
#include "runner_start.h"
#include "seqpacket.h"
#include "session_cgroup.h"
#include "spawn_userns.h"
#include "util.h"

/* Root's execd speaks only with the broker. */
const struct control_layouts *const control_layouts_all[] = {
	&control_layouts_spawn, NULL
};

int
broker_commands_tell(int fd, enum control_type type, const void *payload,
    const int *fds, size_t nfds)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	err = seqpacket_send(fd, b.data, b.len, fds, nfds);
	buf_clear(&b);
	return err;
}

/* The broker waits for answers, so there is room. Returns 0 or -EBADMSG. */
static int
answer(const struct broker_process *b, enum control_type type,
    const void *payload, const int *fds, size_t nfds)
{
	return broker_commands_tell(b->channel, type, payload, fds, nfds) < 0
		   ? -EBADMSG
		   : 0;
}

/* Answers with at most one descriptor. */
static int
answer_one(const struct broker_process *b, enum control_type type,
    const void *payload, int fd)
{
	return answer(b, type, payload, &fd, fd >= 0);
}

/* --- the list ------------------------------------------------------------- */

/* For the sockets of `execd ctl`. The broker could not make it. */
static void
make_directory(void)
{
	char path[CTL_DIRECTORY_MAX];

	if (ctl_directory(path, root.is_root) == 0)
		ctl_directory_prepare(path, root.is_root);
}

/* The first broker serves. */
static void
begin_serving(void)
{
	root.begun = true;
	log_never_block();
	make_directory();
	session_cgroup_init(broker_any());
}

static int
take_begin(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	struct control_spawn_ready ready = {
		.groups_made = runners_groups_made(),
		.is_root = root.is_root,
		.served = root.served,
		.reload = b->reload,
	};
	struct control_begin begin;
	const char *step = "";
	int given[2];

	if (nfds != 1 || control_get(packet, len, SPAWN_BEGIN, &begin) < 0)
		return -EBADMSG;
	b->events = steal_fd(&fds[0]);
	b->check = begin.check;
	if (!root.begun && !b->check)
		begin_serving();
	root_renew_programs();
	ready.controllers = session_cgroup_controllers();
	if (root.is_root && !b->check && !root.served)
		ready.error = (uint32_t)-spawn_probe(&step);
	snprintf(ready.step, sizeof(ready.step), "%s", step);
	b->state = BROKER_LISTING;
	b->spoken = SPAWN_VERSION;
	given[0] = root.programs.http;
	given[1] = b->text;
	return answer(b, SPAWN_READY, &ready, given, b->text < 0 ? 1 : 2);
}

/* A broker that replaces a dead one reads the files as the dead one read them,
 * whatever happened to them meanwhile. */
static const struct list *
files_to_read(const struct broker_process *b)
{
	return b->reload || b->check || root.listener >= 0 ? NULL : root.list;
}

static int
take_file(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_found found = { 0 };
	const struct listed_file *f;
	struct control_trusted file;
	int fd = -1;

	if (nfds != 0 || control_get(packet, len, SPAWN_FILE, &file) < 0)
		return -EBADMSG;
	if (file.past) {
		f = list_find_file(root.list, file.path);
		found.error = ENOENT;
		if (f != NULL) {
			found = f->found;
			fd = f->fd;
		}
	} else {
		fd =
		    list_add_file(b->list, file.path, files_to_read(b), &found);
	}
	return fd == -EBADMSG ? fd : answer_one(b, SPAWN_FOUND, &found, fd);
}

static int
take_place(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	struct control_found found = { 0 };
	struct control_place place;
	int fd, err;

	if (nfds != 0 || control_get(packet, len, SPAWN_PLACE, &place) < 0)
		return -EBADMSG;
	fd = list_add_place(b->list, &place, root.list, b->check, &found);
	if (fd == -EBADMSG)
		return fd;
	err = answer_one(b, SPAWN_FOUND, &found, fd);
	if (fd >= 0 && !list_is_kept(&place))
		close(fd);
	return err;
}

static int
take_user(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_user user;

	if (nfds != 1 || control_get(packet, len, SPAWN_USER, &user) < 0)
		return -EBADMSG;
	return list_add_user(b->list, &user, fds[0]) < 0 ? -EBADMSG : 0;
}

static int
take_seal(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_spawn_error sealed = { 0 };
	struct control_seal *seal = &b->list->seal;

	if (nfds != 0 || control_get(packet, len, SPAWN_SEAL, seal) < 0 ||
	    (root.is_root && (seal->uid == 0 || seal->uid == UINT32_MAX)))
		return -EBADMSG;
	if (!b->check) {
		broker_sealed(b);
		return 0;
	}
	b->state = BROKER_SEALED;
	return answer(b, SPAWN_SEALED, &sealed, NULL, 0);
}

void
broker_commands_serve(struct broker_process *b)
{
	struct control_spawn_error sealed = { 0 };

	b->state = BROKER_SERVING;
	broker_commands_tell(b->channel, SPAWN_SEALED, &sealed, NULL, 0);
}

/* --- service ------------------------------------------------------------ */

static int
take_next(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_kept kept = { 0 };
	struct control_next next;
	int fd = -1;

	if (nfds != 0 || control_get(packet, len, SPAWN_NEXT, &next) < 0)
		return -EBADMSG;
	runners_at(next.index, &kept, &fd);
	return answer_one(b, SPAWN_KEPT, &kept, fd);
}

static int
take_serving(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
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
take_store(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
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
take_take(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_stored stored;
	struct control_store s;
	int fd;

	if (nfds != 0 || control_get(packet, len, SPAWN_TAKE, &s) < 0)
		return -EBADMSG;
	fd = store_find(s.name);
	stored.there = fd >= 0;
	return answer_one(b, SPAWN_STORED, &stored, fd);
}

/* A broker over stdio cannot be replaced, because its client would be lost. */
static int
take_reload(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	if (nfds > 1 || control_get(packet, len, SPAWN_RELOAD, NULL) < 0)
		return -EBADMSG;
	broker_reload(nfds == 1 ? fds[0] : -1);
	return 0;
}

static int
take_stop(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_stop s;

	if (nfds != 0 || control_get(packet, len, SPAWN_STOP, &s) < 0)
		return -EBADMSG;
	/* Sessions in another unit go on when the service ends. */
	if (root.listener >= 0)
		return -EBADMSG;
	root.stopping = true;
	root.exit_code = s.code;
	return 0;
}

static int
take_alive(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	if (nfds != 0 || control_get(packet, len, SPAWN_ALIVE, NULL) < 0 ||
	    b->answer_ms == 0)
		return -EBADMSG;
	broker_is_alive(b);
	return 0;
}

/* --- places of the list ------------------------------------------------- */

static int
answer_found(const struct broker_process *b, int fd)
{
	struct control_found found = { .error = fd < 0 ? (uint32_t)-fd : 0 };
	int err;

	if (fd == -EBADMSG)
		return fd;
	err = answer_one(b, SPAWN_FOUND, &found, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

static int
take_open(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_number n;

	if (nfds != 0 || control_get(packet, len, SPAWN_OPEN, &n) < 0)
		return -EBADMSG;
	return answer_found(b, list_open(root.list, n.number));
}

static int
take_record(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	struct control_record r;

	if (nfds != 0 || control_get(packet, len, SPAWN_RECORD, &r) < 0)
		return -EBADMSG;
	return answer_found(b, list_record(root.list, r.number, r.name));
}

static int
take_close(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	struct control_number n;

	if (nfds != 0 || control_get(packet, len, SPAWN_CLOSE, &n) < 0)
		return -EBADMSG;
	return list_close(root.list, n.number);
}

/* --- programs ------------------------------------------------------------- */

/* The name becomes the name of a directory. */
static bool
is_group(const char *name)
{
	size_t prefix = strlen(SESSION_GROUP_PREFIX);

	return strncmp(name, SESSION_GROUP_PREFIX, prefix) == 0 &&
	       name[prefix] != '\0' && strlen(name) <= prefix + 19 &&
	       strspn(name + prefix, "0123456789") == strlen(name + prefix);
}

/* A broker that asks for more is faulty or taken over. Further starts are
 * refused and counted. */
#define STARTS_PER_SECOND 1000u

static bool
is_too_fast(void)
{
	static int64_t second;
	static uint32_t starts, refused;
	int64_t now = now_ms() / 1000;

	if (now != second) {
		if (refused > 0)
			log_warn(0,
			    "%u runners more than %u in a second were refused",
			    refused, STARTS_PER_SECOND);
		second = now;
		starts = refused = 0;
	}
	if (starts++ < STARTS_PER_SECOND)
		return false;
	refused++;
	return true;
}

static int
take_start(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	struct control_runner_started started = { 0 };
	const struct spawn_user *o;
	int dirs[CONTROL_FDS_MAX], err;
	struct control_start s;
	size_t ndirs = 0;

	if (nfds != 2 || control_get(packet, len, SPAWN_START, &s) < 0 ||
	    !is_group(s.group) || runners_have_group(s.group) ||
	    (o = list_user(root.list, s.user)) == NULL)
		return -EBADMSG;
	if (is_too_fast()) {
		started.error = EAGAIN;
		snprintf(started.step, sizeof(started.step),
		    "more than %u runners in a second", STARTS_PER_SECOND);
	} else {
		runners_start(o, &s, fds[0], fds[1], &started, dirs, &ndirs);
	}
	err = answer(b, SPAWN_STARTED, &started, dirs, ndirs);
	while (ndirs > 0)
		close(dirs[--ndirs]);
	return err;
}

static int
take_program(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	struct control_runner_started started = { 0 };
	struct control_program p;
	pid_t pid;

	if (nfds != 1 || control_get(packet, len, SPAWN_PROGRAM, &p) < 0 ||
	    p.kind > PROGRAM_OF_KEYS)
		return -EBADMSG;
	pid = spawn_program(p.kind == PROGRAM_OF_KEYS ? root.programs.keys
						      : root.programs.frontend,
	    p.kind, &root.list->seal, fds[0]);
	if (pid > 0)
		runners_keep_program(pid);
	started.pid = pid > 0 ? (uint32_t)pid : 0;
	started.error = pid > 0 ? 0 : (uint32_t)-pid;
	return answer(b, SPAWN_STARTED, &started, NULL, 0);
}

static int
take_userns(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	struct control_spawn_error opened = { 0 };
	const struct spawn_user *o;
	struct control_number n;
	const char *step = "";
	int fd, err;

	if (nfds != 0 || control_get(packet, len, SPAWN_USERNS, &n) < 0 ||
	    (o = list_user(root.list, n.number)) == NULL)
		return -EBADMSG;
	fd = userns_open(root.programs.runner, o->who.uid, o->who.gid, &step);
	opened.error = fd < 0 ? (uint32_t)-fd : 0;
	snprintf(opened.step, sizeof(opened.step), "%s", step);
	err = answer_one(b, SPAWN_OPENED, &opened, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

static int
take_cleanup(struct broker_process *b, const uint8_t *packet, size_t len,
    int *fds, size_t nfds)
{
	const struct spawn_user *o;
	struct control_number n;

	if (nfds != 1 || control_get(packet, len, SPAWN_CLEANUP, &n) < 0 ||
	    (o = list_user(root.list, n.number)) == NULL)
		return -EBADMSG;
	cleanup_start(root.programs.runner, o, fds[0]);
	return 0;
}

static int
take_kill(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_pid p;

	if (nfds != 0 || control_get(packet, len, SPAWN_KILL, &p) < 0)
		return -EBADMSG;
	runners_kill((pid_t)p.pid);
	return 0;
}

static int
take_end(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	struct control_pid p;

	if (nfds != 0 || control_get(packet, len, SPAWN_END, &p) < 0)
		return -EBADMSG;
	return runners_forget((pid_t)p.pid) < 0 ? -EBADMSG : 0;
}

/* A function that keeps a descriptor sets it to -1. */
static const struct spawn_command {
	enum control_type type;
	unsigned when; /* mask of enum broker_stage */
	int (*take)(struct broker_process *b, const uint8_t *packet, size_t len,
	    int *fds, size_t nfds);
} spawn_commands[] = {
	{ SPAWN_BEGIN, BROKER_NEW, take_begin },
	{ SPAWN_FILE, BROKER_LISTING, take_file },
	{ SPAWN_PLACE, BROKER_LISTING, take_place },
	{ SPAWN_USER, BROKER_LISTING, take_user },
	{ SPAWN_SEAL, BROKER_LISTING, take_seal },
	{ SPAWN_NEXT, BROKER_SERVING, take_next },
	{ SPAWN_STORE, BROKER_SERVING, take_store },
	{ SPAWN_TAKE, BROKER_SERVING, take_take },
	{ SPAWN_SERVING, BROKER_SERVING, take_serving },
	{ SPAWN_START, BROKER_SERVING, take_start },
	{ SPAWN_PROGRAM, BROKER_SERVING, take_program },
	{ SPAWN_OPEN, BROKER_SERVING, take_open },
	{ SPAWN_RECORD, BROKER_SERVING, take_record },
	{ SPAWN_CLOSE, BROKER_SERVING, take_close },
	{ SPAWN_USERNS, BROKER_SERVING, take_userns },
	{ SPAWN_CLEANUP, BROKER_SERVING, take_cleanup },
	{ SPAWN_KILL, BROKER_SERVING, take_kill },
	{ SPAWN_END, BROKER_SERVING, take_end },
	{ SPAWN_ALIVE, BROKER_SERVING, take_alive },
	{ SPAWN_RELOAD, BROKER_SERVING, take_reload },
	{ SPAWN_STOP, BROKER_SERVING, take_stop },
};

static bool
take(struct broker_process *b, const uint8_t *packet, size_t len, int *fds,
    size_t nfds)
{
	enum control_type type = control_peek(packet, len);

	for (size_t i = 0; i < nitems(spawn_commands); i++)
		if (spawn_commands[i].type == type &&
		    spawn_commands[i].when & b->state)
			return spawn_commands[i].take(
				   b, packet, len, fds, nfds) == 0;
	return false;
}

/* Closes the descriptors that came from the broker. Closing a file in memory or
 * a local socket never waits. Anything else is closed beside this process. */
static void
give_back(const int *fds, size_t nfds)
{
	for (size_t i = 0; i < nfds; i++) {
		int domain = 0;
		socklen_t len = sizeof(domain);

		if (fds[i] < 0)
			continue;
		if (fcntl(fds[i], F_GET_SEALS) >= 0 ||
		    (getsockopt(fds[i], SOL_SOCKET, SO_DOMAIN, &domain, &len) ==
			    0 &&
			domain == AF_UNIX))
			close(fds[i]);
		else
			dispose(&fds[i], 1);
	}
}

/* The most commands at once; then signals and others have their turn. */
#define COMMANDS_PER_WAKE 64

bool
broker_commands_take(struct broker_process *b)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	char fault[CONTROL_FAULT_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n = -EAGAIN;

	for (int i = 0; i < COMMANDS_PER_WAKE && b->channel >= 0; i++) {
		n = seqpacket_recv(
		    b->channel, packet, sizeof(packet), fds, &nfds);
		if (n <= 0)
			break;
		if (!take(b, packet, (size_t)n, fds, nfds)) {
			log_error(0, "impossible command from the broker: %s",
			    control_fault(packet, (size_t)n, fault));
			n = -EBADMSG;
		}
		give_back(fds, nfds);
		if (n < 0)
			break;
	}
	if (n < 0 && n != -EAGAIN && n != -EBADMSG && n != -ECONNRESET)
		log_error((int)n, "the broker's commands");
	return n > 0 || n == -EAGAIN;
}
