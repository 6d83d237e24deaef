/* SPDX-License-Identifier: ISC */
/*
 * What the broker may ask of root: one table. A broker that has met no client
 * makes the list. A serving broker names numbers of the list. A broker is
 * killed if its command is not in the table, or not permitted now. The next
 * broker takes over.
 */
#include <assert.h>

#include "base.h"
#include "disk.h"
#include "root.h"
#include "seqpacket.h"
#include "session_cgroup.h"

int
broker_commands_tell(int fd, enum spawn_type type, const void *payload,
    size_t len, const int *fds, size_t nfds)
{
	struct spawn_packet m;

	m.head = (struct spawn_head){ type, SPAWN_VERSION };
	assert(len <= sizeof(m.payload));
	if (len > 0)
		memcpy(m.payload, payload, len);
	return seqpacket_send(fd, &m, sizeof(m.head) + len, fds, nfds);
}

/* Answers with at most one descriptor. The broker waits for answers, so there
 * is room. Returns 0 or -errno. */
static int
answer(const struct broker_process *b, enum spawn_type type,
    const void *payload, size_t len, int fd)
{
	return broker_commands_tell(
	    b->channel, type, payload, len, &fd, fd >= 0);
}

/* --- the list ------------------------------------------------------------- */

/* For the sockets of `execd ctl`. The broker checks whose it is. */
static void
make_directory(void)
{
	if (root.is_root && mkdir(CTL_ROOT_DIRECTORY, 0755) == 0)
		chmod(CTL_ROOT_DIRECTORY, 0755); /* whatever the umask is */
	else if (root.is_root && errno != EEXIST)
		log_warn(-errno, CTL_ROOT_DIRECTORY);
}

/* The first broker serves. */
static void
begin_serving(void)
{
	root.begun = true;
	log_never_block();
	make_directory();
	session_cgroup_init();
}

static bool
is_check(const struct broker_process *b)
{
	return b->flags & BEGIN_CHECK;
}

static int
take_begin(struct broker_process *b, const void *payload)
{
	struct control_spawn_ready ready = {
		.is_root = root.is_root,
		.served = root.served,
		.reload = b->reload,
		.pid = (uint32_t)getpid(),
	};
	const struct control_begin *begin = payload;
	const char *step = "";
	int given[4 + CGROUP_HIERARCHIES], pair[2], err = seqpacket_pair(pair);

	if (err < 0)
		return err;
	b->events = pair[0];
	b->flags = begin->flags;
	if (begin->flags & BEGIN_PREVIOUS)
		programs_close(&b->programs);
	if (!root.begun && !is_check(b))
		begin_serving();
	ready.controllers = session_cgroup_controllers();
	if (root.is_root && !is_check(b) && !root.served)
		ready.error = (uint32_t)-spawn_probe(&step);
	snprintf(ready.step, sizeof(ready.step), "%s", step);
	b->state = BROKER_LISTING;
	b->spoken = SPAWN_VERSION;
	given[0] = pair[1];
	given[1] = broker_program(b, INSTALLED_HTTP);
	given[2] = broker_program(b, INSTALLED_FILES);
	given[3] = root.kept;
	err =
	    broker_commands_tell(b->channel, SPAWN_READY, &ready, sizeof(ready),
		given, 4 + session_cgroup_put(&ready.cgroups, given + 4));
	close(pair[1]);
	return err;
}

/* The descriptor is the list's, but for a channel of a child. */
static int
answer_found(
    const struct broker_process *b, const struct control_found *found, int fd)
{
	int err = fd == -EBADMSG
		      ? fd
		      : answer(b, SPAWN_FOUND, found, sizeof(*found), fd);

	if (fd >= 0 && found->later)
		close(fd);
	return err;
}

/* A broker that replaces a dead one reads the files as the dead one read them,
 * whatever happened to them meanwhile. */
static const struct list *
files_to_read(const struct broker_process *b)
{
	bool anew = root.listener >= 0 && !(b->flags & BEGIN_AGAIN);

	return b->reload || is_check(b) || anew ? NULL : root.list;
}

static int
take_file(struct broker_process *b, const void *payload)
{
	struct control_found found = { 0 };
	const struct listed_file *f;
	const struct control_trusted *file = payload;
	int fd = -1;

	if (!SPAWN_IS_TEXT(file->path))
		return -EBADMSG;
	if (file->past) {
		f = list_find_file(root.list, file->path);
		fd = f != NULL ? f->fd : -1;
		found.error = f != NULL ? 0 : ENOENT;
	} else {
		fd = list_add_file(
		    b->list, file->path, files_to_read(b), &found);
	}
	return answer_found(b, &found, fd);
}

static int
take_place(struct broker_process *b, const void *payload)
{
	struct control_found found = { 0 };
	const struct control_place *place = payload;

	if (!SPAWN_IS_TEXT(place->name) || !SPAWN_IS_TEXT(place->path))
		return -EBADMSG;
	return answer_found(b, &found,
	    list_add_place(b->list, place, root.list, is_check(b), &found));
}

static int
take_list(struct broker_process *b, const void *payload)
{
	const struct control_user_list *l = payload;
	struct spawn_user *u = &b->user;

	if (l->len > sizeof(l->bytes) || u->size + l->len > SPAWN_USER_LIST_MAX)
		return -EBADMSG;
	u->list = xreallocarray(u->list, u->size + l->len, 1);
	memcpy((uint8_t *)u->list + u->size, l->bytes, l->len);
	u->size += l->len;
	return 0;
}

static int
take_user(struct broker_process *b, const void *payload)
{
	const struct control_user *user = payload;
	struct spawn_user *u = &b->user;
	int err = -EBADMSG;

	u->who = *user;
	if (SPAWN_IS_TEXT(user->name) && spawn_user_is_list(u->list, u->size))
		err = b->state & BROKER_SERVING ? list_narrow_user(root.list, u)
						: list_add_user(b->list, u);
	if (err == 0)
		*u = (struct spawn_user){ .list = NULL };
	return err < 0 ? -EBADMSG : 0;
}

/* Whoever asked for the reload hears what it came to, before it leaves. */
static int
take_reloaded(struct broker_process *b, const void *payload)
{
	const struct control_reloaded *r = payload;

	if (!SPAWN_IS_TEXT(r->text))
		return -EBADMSG;
	if (b->asked)
		broker_commands_tell(root.serving.events, SPAWN_RELOADED, r,
		    sizeof(*r), NULL, 0);
	b->asked = false;
	return 0;
}

static int
take_seal(struct broker_process *b, const void *payload)
{
	const struct control_seal *seal = payload;

	if (root.is_root && (seal->uid == 0 || seal->uid == UINT32_MAX))
		return -EBADMSG;
	b->list->seal = *seal;
	if (!is_check(b)) {
		broker_sealed(b);
		return 0;
	}
	b->state = BROKER_SEALED;
	return answer(b, SPAWN_SEALED, NULL, 0, -1);
}

void
broker_commands_serve(struct broker_process *b)
{
	b->state = BROKER_SERVING;
	broker_commands_tell(b->channel, SPAWN_SEALED, NULL, 0, NULL, 0);
}

/* --- service ------------------------------------------------------------ */

static int
take_next(struct broker_process *b, const void *payload)
{
	const struct control_next *next = payload;
	struct control_kept kept = { 0 };
	int fd = -1;

	runners_at(next->index, &kept, &fd);
	return answer(b, SPAWN_KEPT, &kept, sizeof(kept), fd);
}

static int
take_serving(struct broker_process *b, const void *payload)
{
	const struct control_serving *s = payload;

	root.served = true;
	root.replaceable = s->replaceable == 1;
	root.failures = 0;
	b->state |= BROKER_READY;
	programs_close(&b->programs);
	if (root.ending && !root.ending_kept)
		kill(b->pid, SIGTERM);
	return 0;
}

static int
take_ending(struct broker_process *b, const void *payload)
{
	root.ending_kept = true;
	return 0;
}

/* A broker over stdio cannot be replaced, because its client would be lost. */
static int
take_reload(struct broker_process *b, const void *payload)
{
	root.asked = true;
	broker_reload();
	return 0;
}

static int
take_stop(struct broker_process *b, const void *payload)
{
	const struct control_stop *s = payload;

	/* Sessions in another unit go on when the service ends. */
	if (root.listener >= 0)
		return -EBADMSG;
	root.stopping = true;
	root.exit_code = (int)(s->code & 0xff);
	return 0;
}

static int
take_alive(struct broker_process *b, const void *payload)
{
	if (b->answer_ms == 0)
		return -EBADMSG;
	broker_is_alive(b);
	return 0;
}

/* --- places of the list ------------------------------------------------- */

static int
take_open(struct broker_process *b, const void *payload)
{
	const struct control_number *n = payload;
	struct control_found found = { 0 };

	return answer_found(b, &found, list_open(root.list, n->number, &found));
}

static int
take_record(struct broker_process *b, const void *payload)
{
	const struct control_record *r = payload;
	struct control_found found = { 0 };

	if (!SPAWN_IS_TEXT(r->name))
		return -EBADMSG;
	return answer_found(
	    b, &found, list_record(root.list, r->number, r->name, &found));
}

static int
take_close(struct broker_process *b, const void *payload)
{
	const struct control_number *n = payload;

	return list_close(root.list, n->number);
}

/* --- programs ------------------------------------------------------------- */

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
answer_started(const struct broker_process *b, pid_t pid,
    struct control_runner_started *started, const int *fds, size_t nfds)
{
	started->pid = pid > 0 ? (uint32_t)pid : 0;
	started->error = pid < 0 ? (uint32_t)-pid : 0;
	return broker_commands_tell(
	    b->channel, SPAWN_STARTED, started, sizeof(*started), fds, nfds);
}

static int
take_start(struct broker_process *b, const void *payload)
{
	struct control_runner_started started = { 0 };
	const struct control_start *s = payload;
	const struct spawn_user *o = list_user(root.list, s->user);
	int given[RUNNERS_FDS_MAX], err;
	size_t ngiven = 0;
	pid_t pid = -EAGAIN;

	if (o == NULL || !SPAWN_IS_TEXT(s->session_id))
		return -EBADMSG;
	if (is_too_fast())
		snprintf(started.step, sizeof(started.step),
		    "more than %u runners in a second", STARTS_PER_SECOND);
	else
		pid = runners_start(o, s, &started, given, &ngiven);
	err = answer_started(b, pid, &started, given, ngiven);
	while (ngiven > 1)
		close(given[--ngiven]);
	return err;
}

static int
take_program(struct broker_process *b, const void *payload)
{
	const struct control_program *p = payload;
	bool listed = p->kind >= PROGRAM_OF_NAMESPACE;
	const struct spawn_user *o =
	    listed ? list_user(root.list, p->user) : NULL;
	struct control_runner_started started = { 0 };
	int own = -1, err;
	pid_t pid;

	if (p->kind >= PROGRAM_KINDS || (listed && o == NULL))
		return -EBADMSG;
	pid = is_too_fast() ? -EAGAIN : spawn_program(p->kind, o, &own);
	if (pid > 0)
		runners_keep_program(pid);
	err = answer_started(b, pid, &started, &own, own >= 0);
	if (own >= 0)
		close(own);
	return err;
}

static int
take_kill(struct broker_process *b, const void *payload)
{
	const struct control_pid *p = payload;

	runners_kill((pid_t)p->pid);
	return 0;
}

static int
take_end(struct broker_process *b, const void *payload)
{
	const struct control_pid *p = payload;

	return runners_forget((pid_t)p->pid) < 0 ? -EBADMSG : 0;
}

#define SIZE(name) sizeof(struct control_##name)

/* A message has exactly `size` bytes after its head. */
static const struct spawn_command {
	enum spawn_type type;
	unsigned when; /* mask of enum broker_stage */
	size_t size;
	int (*take)(struct broker_process *b, const void *payload);
} spawn_commands[] = {
	{ SPAWN_BEGIN, BROKER_NEW, SIZE(begin), take_begin },
	{ SPAWN_FILE, BROKER_LISTING, SIZE(trusted), take_file },
	{ SPAWN_PLACE, BROKER_LISTING, SIZE(place), take_place },
	{ SPAWN_LIST, BROKER_LISTING | BROKER_SERVING, SIZE(user_list),
	    take_list },
	{ SPAWN_USER, BROKER_LISTING | BROKER_SERVING, SIZE(user), take_user },
	{ SPAWN_RELOADED, BROKER_LISTING, SIZE(reloaded), take_reloaded },
	{ SPAWN_SEAL, BROKER_LISTING, SIZE(seal), take_seal },
	{ SPAWN_NEXT, BROKER_SERVING, SIZE(next), take_next },
	{ SPAWN_ENDING, BROKER_SERVING, 0, take_ending },
	{ SPAWN_SERVING, BROKER_SERVING, SIZE(serving), take_serving },
	{ SPAWN_START, BROKER_SERVING, SIZE(start), take_start },
	{ SPAWN_PROGRAM, BROKER_SERVING, SIZE(program), take_program },
	{ SPAWN_OPEN, BROKER_SERVING, SIZE(number), take_open },
	{ SPAWN_RECORD, BROKER_SERVING, SIZE(record), take_record },
	{ SPAWN_CLOSE, BROKER_SERVING, SIZE(number), take_close },
	{ SPAWN_KILL, BROKER_SERVING, SIZE(pid), take_kill },
	{ SPAWN_END, BROKER_SERVING, SIZE(pid), take_end },
	{ SPAWN_ALIVE, BROKER_SERVING, 0, take_alive },
	{ SPAWN_RELOAD, BROKER_SERVING, 0, take_reload },
	{ SPAWN_STOP, BROKER_SERVING, SIZE(stop), take_stop },
};

static int
take(struct broker_process *b, const struct spawn_packet *p, size_t len)
{
	const struct spawn_command *c = spawn_commands;

	if (len < sizeof(p->head) || p->head.version != SPAWN_VERSION)
		return -EBADMSG;
	while (c->type != p->head.type)
		if (++c == spawn_commands + nitems(spawn_commands))
			return -EBADMSG;
	if (!(c->when & b->state) || len != sizeof(p->head) + c->size)
		return -EBADMSG;
	return c->take(b, p->payload);
}

static void
tell_failed(const struct spawn_head *head, ssize_t n, int err)
{
	if (err == -EPIPE || err == -ECONNRESET)
		log_error(0,
		    "the broker ended: its command %u was cut off before the "
		    "answer",
		    head->type);
	else if (n < 0)
		log_error(0,
		    "impossible command from the broker: %u, with a descriptor",
		    head->type);
	else
		log_error(0,
		    "impossible command from the broker: %u of version "
		    "%u in %zd bytes; this program speaks version %d",
		    head->type, head->version, n, SPAWN_VERSION);
}

/* The most commands at once; then signals and others have their turn. */
#define COMMANDS_PER_WAKE 64

bool
broker_commands_take(struct broker_process *b)
{
	struct spawn_packet packet;
	ssize_t n = -EAGAIN;
	int err;

	for (int i = 0; i < COMMANDS_PER_WAKE && b->channel >= 0; i++) {
		packet.head = (struct spawn_head){ 0 };
		n = disk_receive(b->channel, &packet, sizeof(packet));
		if (n == 0 || (n < 0 && n != -EBADMSG))
			break;
		err = n < 0 ? -EBADMSG : take(b, &packet, (size_t)n);
		if (err < 0) {
			tell_failed(&packet.head, n, err);
			return false;
		}
	}
	if (n < 0 && n != -EAGAIN && n != -ECONNRESET)
		log_error((int)n, "the broker's commands");
	return n > 0 || n == -EAGAIN;
}
