/* SPDX-License-Identifier: ISC */
#include "spawn_client.h"

#include <assert.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "broker_state.h"
#include "exit_code.h"
#include "place.h"
#include "programs.h"
#include "secret.h"
#include "seqpacket.h"
#include "spawn_user.h"
#include "task.h"
#include "trusted.h"

/* Root's execd waits two seconds for a program, and never longer for
 * anything. */
#define ANSWER_MS 10000

/* For the child that works on a disk for root's execd. */
#define DISK_MS 4000

/* Root's PING comes two seconds after the answer to the last. */
#define SILENT_MS 8000

static int channel = -1;
static const char *sessions; /* the path that we connected to */
static int events_fd = -1;   /* -1 after spawn_watch() */
static struct event events;
static struct control_spawn_ready ready;
static int helpers[SPAWN_HELPERS] = { -1, -1, -ENOENT };
static struct cgroup all_sessions = CGROUP_NONE;
static bool past;
static uint32_t paths;
static int64_t pinged_ms; /* 0: root's events are not watched */

static void __attribute__((noreturn)) give_up(int err, const char *what)
{
	log_fatal_errno(err, "root's execd: %s: this broker ends", what);
}

static int userns_receive(int channel, const char **step);

bool
spawn_find(void)
{
	const char *text = getenv(SPAWN_CHANNEL_VARIABLE);

	channel = text != NULL ? atoi(text) : -1;
	unsetenv(SPAWN_CHANNEL_VARIABLE);
	if (channel < CONTROL_FD || fcntl(channel, F_SETFD, FD_CLOEXEC) < 0)
		channel = -1;
	return channel >= 0;
}

int
spawn_connect(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd =
	    socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	set_nonblock(fd);
	channel = steal_fd(&fd);
	sessions = path;
	return 0;
}

pid_t
spawn_root_pid(void)
{
	return (pid_t)ready.pid;
}

/* The connection ended before root's execd took it, and nobody takes another:
 * systemd has tried, and does no more. One that died meanwhile is started
 * again, because its socket goes on. */
static bool
is_never_started(int err)
{
	return err == -ECONNRESET && ready.pid == 0 && sessions != NULL &&
	       spawn_connect(sessions) < 0;
}

static void __attribute__((noreturn)) give_up_on(int err, enum spawn_type type)
{
	if (is_never_started(err)) {
		fputs("execd: execd-sessions.service does not start: "
		      "`systemctl status execd-sessions' says why\n",
		    stderr);
		exit(EXIT_UNENFORCEABLE);
	}
	log_fatal_errno(
	    err, "root's execd: message %d: this broker ends", (int)type);
}

static void
tell(enum spawn_type type, const void *payload, size_t len)
{
	struct pollfd room = { .fd = channel, .events = POLLOUT };
	struct spawn_packet message;
	int err;

	if (channel < 0)
		return; /* a test of one part has no root's execd */
	assert(len <= sizeof(message.payload));
	message.head = (struct spawn_head){ type, SPAWN_VERSION };
	if (len > 0)
		memcpy(message.payload, payload, len);
	while ((err = seqpacket_send(channel, &message,
		    sizeof(message.head) + len, NULL, 0)) == -EAGAIN &&
	       poll(&room, 1, ANSWER_MS) > 0)
		continue;
	if (err < 0)
		give_up_on(err, type);
}

static void
tell_number(enum spawn_type type, uint32_t number)
{
	tell(type, &number, sizeof(number));
}

/* fds[SEQPACKET_FDS_MAX] are the caller's. */
static void
hear(enum spawn_type type, void *answer, size_t len, int *fds, size_t *nfds)
{
	struct pollfd heard = { .fd = channel, .events = POLLIN };
	struct spawn_packet packet;
	ssize_t n;

	if (poll(&heard, 1, ANSWER_MS) <= 0)
		give_up_on(-ETIMEDOUT, type);
	n = seqpacket_recv(channel, &packet, sizeof(packet), fds, nfds);
	if (n <= 0)
		give_up_on(n < 0 ? (int)n : -EPIPE, type);
	if ((size_t)n != sizeof(packet.head) + len ||
	    packet.head.type != type || packet.head.version != SPAWN_VERSION)
		give_up_on(-EBADMSG, type);
	if (len > 0)
		memcpy(answer, packet.payload, len);
}

/* Receives an answer with at most one descriptor. Returns the descriptor, or
 * -1. */
static int
hear_one(enum spawn_type type, void *answer, size_t len)
{
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;

	hear(type, answer, len, fds, &nfds);
	if (nfds > 1)
		give_up_on(-EBADMSG, type);
	return nfds == 1 ? fds[0] : -1;
}

/* --- begin -------------------------------------------------------------- */

/*
 * Opens execd-netproxy. It has the version of root's other programs, because
 * root's execd opens those anew before it answers. Without it a command has all
 * of the network or none.
 */
static void
open_netproxy(void)
{
	char missing[PATH_MAX];

	helpers[2] = programs_open_one(INSTALLED_NETPROXY, missing);
	if (helpers[2] < 0)
		log_warn(helpers[2],
		    "%s: a command with a list of hosts is "
		    "refused",
		    missing);
}

static struct spawn_kept nowhere, *left = &nowhere;

struct spawn_kept *
spawn_keeps(void)
{
	return left;
}

static void
take_kept(int fd)
{
	void *p = mmap(
	    NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		give_up(-errno, "what an earlier broker left");
	close(fd);
	left = p;
}

int
spawn_begin(uint32_t flags)
{
	const struct control_begin begin = { flags };
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;

	tell(SPAWN_BEGIN, &begin, sizeof(begin));
	hear(SPAWN_READY, &ready, sizeof(ready), fds, &nfds);
	if (nfds < 4 ||
	    cgroup_get(&all_sessions, ready.cgroups, fds + 4, nfds - 4) < 0)
		give_up(-EBADMSG, "the beginning");
	events_fd = fds[0];
	helpers[0] = fds[1];
	helpers[1] = fds[2];
	take_kept(fds[3]);
	if (!(flags & BEGIN_CHECK))
		open_netproxy();
	group_limits_learn(ready.controllers);
	if (ready.error == 0)
		return 0;
	fprintf(stderr, "execd: this host does not give a session %s: %s\n",
	    ready.step, strerror((int)ready.error));
	return EXIT_UNENFORCEABLE;
}

bool
spawn_is_root(void)
{
	return channel < 0 ? geteuid() == 0 : ready.is_root;
}

bool
spawn_has_served(void)
{
	return ready.served;
}

bool
spawn_is_reload(void)
{
	return ready.reload;
}

const int *
spawn_helpers(void)
{
	return helpers;
}

const struct cgroup *
spawn_sessions_group(void)
{
	return &all_sessions;
}

/* --- what root's execd says --------------------------------------------- */

static void
take_exited(const struct control_runner_status *s)
{
	broker.on->reaped(&broker, (pid_t)s->pid, (int)s->status);
	tell_number(SPAWN_END, s->pid);
}

static void
take_ping(void)
{
	pinged_ms = now_ms();
	tell(SPAWN_ALIVE, NULL, 0);
}

static void
take_event(const struct spawn_packet *p, size_t len)
{
	const struct control_runner_status *status = (const void *)p->payload;
	const struct control_reloaded *r = (const void *)p->payload;

	if (len < sizeof(p->head))
		give_up(-EBADMSG, "an event");
	else if (p->head.type == SPAWN_PING)
		take_ping();
	else if (p->head.type == SPAWN_LEAVE)
		broker.on->leave(&broker);
	else if (p->head.type == SPAWN_EXITED &&
		 len == sizeof(p->head) + sizeof(*status))
		take_exited(status);
	else if (p->head.type == SPAWN_RELOADED &&
		 len == sizeof(p->head) + sizeof(*r) && SPAWN_IS_TEXT(r->text))
		broker.on->reloaded(&broker, (int)r->code, r->text);
	else
		give_up(-EBADMSG, "an event");
}

static void
events_ready(evutil_socket_t fd, short what, void *arg)
{
	struct spawn_packet packet;
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	while (
	    (n = seqpacket_recv(fd, &packet, sizeof(packet), fds, &nfds)) > 0) {
		while (nfds > 0)
			close(fds[--nfds]);
		take_event(&packet, (size_t)n);
	}
	if (n != -EAGAIN)
		give_up(n < 0 ? (int)n : -EPIPE, "its events");
}

int64_t
spawn_silent_at(void)
{
	return pinged_ms > 0 ? pinged_ms + SILENT_MS : INT64_MAX;
}

/* This program may have been stopped itself. Then a PING waits to be read. */
bool
spawn_is_silent(int64_t now)
{
	struct pollfd heard = { .fd = watch_fd(&events), .events = POLLIN };

	return now >= spawn_silent_at() && poll(&heard, 1, 0) == 0;
}

int
spawn_watch(void)
{
	pinged_ms = now_ms();
	return watch_add(
	    &events, steal_fd(&events_fd), EV_READ, events_ready, NULL);
}

/* --- the list ----------------------------------------------------------- */

void
spawn_past(bool yes)
{
	past = yes;
}

bool
spawn_is_past(void)
{
	return past;
}

/* Root's execd may have another current directory than the broker, so it is
 * told absolute paths only. */
static int
make_absolute(const char *path, char text[CONTROL_PATH_MAX])
{
	_cleanup_free_ char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
	int n;

	if (path[0] != '/' && here == NULL)
		return -errno;
	n = snprintf(text, CONTROL_PATH_MAX, "%s%s%s", here ? here : "",
	    here ? "/" : "", path);
	return n < CONTROL_PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* A test of one part has no root's execd, and opens the file itself. */
static int
open_alone(const char *path, mode_t *mode, struct control_found *found)
{
	struct stat st;
	int fd = trusted_open(path, &st, found->why, sizeof(found->why));

	if (fd >= 0)
		*mode = (st.st_mode & 0777) | (st.st_uid ? 0 : COPY_OF_ROOTS);
	return fd;
}

/* The answer of the child that works on the disk. */
static int
hear_later(int from, struct control_found *found)
{
	struct pollfd heard = { .fd = from, .events = POLLIN };
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds = 0;
	ssize_t n;

	poll(&heard, 1, DISK_MS);
	n = seqpacket_recv(from, found, sizeof(*found), fds, &nfds);
	close(from);
	if (n == (ssize_t)sizeof(*found) && nfds <= 1)
		return nfds == 1 ? fds[0] : -1;
	*found =
	    (struct control_found){ .error = n == -EAGAIN ? ETIMEDOUT : EIO };
	return -1;
}

/* Returns what was found, the caller's, -1 if it has no descriptor, or -errno
 * with found->error. */
static int
hear_found(const char *path, struct control_found *found)
{
	int fd = hear_one(SPAWN_FOUND, found, sizeof(*found));

	if (found->later)
		fd = hear_later(fd, found);
	if (found->error != ETIMEDOUT)
		return found->error != 0 ? -(int)found->error : fd;
	log_error(0, "%s: its disk does not answer", path);
	snprintf(found->why, sizeof(found->why), "its disk does not answer");
	return -ETIMEDOUT;
}

int
spawn_file(const char *path, mode_t *mode, struct control_found *found)
{
	struct control_trusted file = { .past = past };
	struct stat st;
	int fd, err;

	*found = (struct control_found){ 0 };
	if (channel < 0)
		return open_alone(path, mode, found);
	err = make_absolute(path, file.path);
	if (err < 0) {
		snprintf(found->why, sizeof(found->why), "%s", strerror(-err));
		return err;
	}
	tell(SPAWN_FILE, &file, sizeof(file));
	fd = hear_found(file.path, found);
	if (found->error != 0)
		return fd;
	/* The copy is one open file, which the next broker gets too. */
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || fstat(fd, &st) < 0)
		give_up(-EBADMSG, "a file");
	*mode = st.st_mode & 07777;
	return fd;
}

int
spawn_place(struct control_place *place, int *fd, struct control_found *found)
{
	*found = (struct control_found){ 0 };
	*fd = -1;
	if (past)
		return 0;
	place->number = paths;
	if (channel < 0) {
		*fd = place_open(place, true, found->why, sizeof(found->why));
		return *fd >= 0 || *fd == PLACE_NONE ? 0 : *fd;
	}
	paths++;
	tell(SPAWN_PLACE, place, sizeof(*place));
	*fd = hear_found(place->path, found);
	if (found->error == 0 || place->kind != PLACE_LISTENER ||
	    place->path[0] == '\0' || place->file == PLACE_LOST)
		return -(int)found->error;
	/* Whoever may write there keeps no reload away. */
	place->file++;
	return spawn_place(place, fd, found);
}

static void
put_list(const struct identity *id, struct buf *b)
{
	uint32_t n = (uint32_t)id->ngids;

	buf_init(b, SPAWN_USER_LIST_MAX);
	buf_put(b, &n, sizeof(n));
	for (size_t i = 0; i < id->ngids; i++)
		buf_put(b, &id->gids[i], sizeof(n));
	for (char *const *e = id->env; *e != NULL; e++)
		buf_put(b, *e, strlen(*e) + 1);
}

int
spawn_user_list(const struct identity *id)
{
	struct buf b;
	int fd;

	put_list(id, &b);
	fd = b.failed ? -E2BIG : secret_memfd("identity", b.data, b.len);
	buf_clear(&b);
	return fd;
}

/* Piece by piece. */
static void
tell_list(const struct identity *id)
{
	struct control_user_list l;
	struct buf b;

	put_list(id, &b);
	if (b.failed)
		give_up(-E2BIG, id->name);
	for (size_t at = 0; at < b.len; at += l.len) {
		memset(&l, 0, sizeof(l));
		l.len =
		    (uint32_t)(b.len - at < sizeof(l.bytes) ? b.len - at
							    : sizeof(l.bytes));
		memcpy(l.bytes, b.data + at, l.len);
		tell(SPAWN_LIST, &l, sizeof(l));
	}
	buf_clear(&b);
}

static void
tell_user(const struct identity *id)
{
	const struct identity_limits *l = &id->limits;
	const struct group_limits *g = &l->together;
	struct control_user u = {
		.number = id->number,
		.uid = id->uid,
		.gid = id->gid,
		.umask = id->umask,
		.tasks_max = g->tasks,
		.memory_max_bytes = g->memory_bytes,
		.cpu_quota_percent = g->cpu_percent,
		.cpu_weight = g->cpu_weight,
		.io_weight = g->io_weight,
		.limits_command_cpu =
		    l->command.cpu_percent > 0 || l->command.cpu_weight > 0,
		.max_open_files = l->max_open_files,
		.max_address_bytes = l->max_address_bytes,
		.max_file_bytes = l->max_file_bytes,
	};

	snprintf(u.name, sizeof(u.name), "%s", id->name);
	tell_list(id);
	tell(SPAWN_USER, &u, sizeof(u));
}

void
spawn_seal(
    struct identity *const *users, size_t n, const struct control_seal *seal)
{
	uint32_t number = 0;

	for (size_t i = 0; i < n; i++) {
		users[i]->number = number;
		if (users[i]->uid == IDENTITY_GONE)
			continue; /* nothing is asked for it */
		tell_user(users[i]);
		number++;
	}
	tell(SPAWN_SEAL, seal, sizeof(*seal));
	hear_one(SPAWN_SEALED, NULL, 0);
}

void
spawn_narrow(const struct identity *id)
{
	tell_user(id);
}

/* --- events ------------------------------------------------------------- */

pid_t
spawn_run(const struct control_start *start, int *own, struct cgroup *cgroup,
    struct spawn_groups *groups, char *step)
{
	struct control_runner_started answer;
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;

	/* This broker would end while it waits. */
	if (spawn_is_silent(now_ms())) {
		snprintf(step, sizeof(answer.step), "asking root's execd");
		return -ETIMEDOUT;
	}
	tell(SPAWN_START, start, sizeof(*start));
	hear(SPAWN_STARTED, &answer, sizeof(answer), fds, &nfds);
	memcpy(step, answer.step, sizeof(answer.step));
	if (answer.error != 0)
		return -(pid_t)answer.error;
	if (nfds == 0 ||
	    cgroup_get(cgroup, answer.cgroups, fds + 1, nfds - 1) < 0)
		give_up(-EBADMSG, "the descriptors of a session");
	*own = fds[0];
	groups->session = answer.group;
	groups->identity = answer.identity_group;
	return (pid_t)answer.pid;
}

bool
spawn_kept(uint32_t index, struct control_kept *kept, int *own)
{
	tell_number(SPAWN_NEXT, index);
	*own = hear_one(SPAWN_KEPT, kept, sizeof(*kept));
	return kept->pid > 0;
}

pid_t
spawn_program(
    enum control_program_kind kind, const struct identity *id, int *own)
{
	const struct control_program p = { kind, id != NULL ? id->number : 0 };
	struct control_runner_started answer;

	*own = -1;
	if (spawn_is_silent(now_ms()))
		return -ETIMEDOUT;
	tell(SPAWN_PROGRAM, &p, sizeof(p));
	*own = hear_one(SPAWN_STARTED, &answer, sizeof(answer));
	if (answer.error == 0 && *own < 0)
		give_up(-EBADMSG, "the channel of a program");
	return answer.error != 0 ? -(pid_t)answer.error : (pid_t)answer.pid;
}

int
spawn_userns(const struct identity *id, const char **step)
{
	int own, fd;
	pid_t pid;

	*step = "starting execd-child";
	pid = spawn_program(PROGRAM_OF_NAMESPACE, id, &own);
	if (pid < 0)
		return (int)pid;
	fd = userns_receive(own, step);
	close(own);
	spawn_kill(pid);
	return fd;
}

int
spawn_open(const struct control_place *place)
{
	struct control_found found;
	int fd;

	if (channel < 0)
		return place_open(place, false, found.why, sizeof(found.why));
	tell_number(SPAWN_OPEN, place->number);
	fd = hear_found(place->path, &found);
	return fd == -1 && found.error == 0 ? -EBADMSG : fd;
}

int
spawn_record(uint32_t number, const char *directory, const char *name)
{
	struct control_record r = { .number = number };
	struct control_found found;

	snprintf(r.name, sizeof(r.name), "%s", name);
	tell(SPAWN_RECORD, &r, sizeof(r));
	return hear_found(directory, &found);
}

void
spawn_close(uint32_t number)
{
	tell_number(SPAWN_CLOSE, number);
}

void
spawn_reload(void)
{
	tell(SPAWN_RELOAD, NULL, 0);
}

void
spawn_tell_reloaded(int code, const char *text)
{
	struct control_reloaded r = { .code = (uint32_t)code };

	snprintf(r.text, sizeof(r.text), "%s", text);
	tell(SPAWN_RELOADED, &r, sizeof(r));
}

void
spawn_kill(pid_t pid)
{
	tell_number(SPAWN_KILL, (uint32_t)pid);
}

void
spawn_ending(void)
{
	tell(SPAWN_ENDING, NULL, 0);
}

void
spawn_serving(bool replaceable)
{
	tell_number(SPAWN_SERVING, replaceable);
}

void
spawn_stop(int exit_code)
{
	tell_number(SPAWN_STOP, (uint32_t)exit_code);
}

/*
 * The user namespace of a user's sandboxes. A program of its own makes it,
 * which root executes: whoever has the namespace may signal everybody in it,
 * and this must never be a copy of root's execd.
 */

/* It takes two milliseconds. Only root can stop or kill the program. */
#define CHILD_MS 2000

/* Receives what the program sends: the descriptor, close-on-exec and the
 * caller's, or -errno with the step that failed in *step. Waits for two seconds
 * at most. */
static int
userns_receive(int made, const char **step)
{
	static struct spawn_opened answer;
	struct pollfd pfd = { .fd = made, .events = POLLIN };
	int fds[SEQPACKET_FDS_MAX] = { -1 };
	size_t nfds = 0;
	ssize_t n;

	if (poll(&pfd, 1, CHILD_MS) <= 0)
		return -ETIMEDOUT;
	n = seqpacket_recv(made, &answer, sizeof(answer), fds, &nfds);
	if (n != sizeof(answer) || !SPAWN_IS_TEXT(answer.result.step) ||
	    nfds != (answer.result.error == 0))
		return -EIO;
	*step = answer.result.step;
	return answer.result.error == 0 ? fds[0] : -(int)answer.result.error;
}

int
userns_open(uid_t uid, gid_t gid, const char **step)
{
	const struct task t = {
		.kind = TASK_NAMESPACE, .uid = uid, .gid = gid
	};
	int made, fd;
	pid_t pid = task_start(&t, NULL, 0, &made);

	*step = "starting execd-child";
	if (pid < 0)
		return pid;
	fd = userns_receive(made, step);
	close(made);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return fd;
}
