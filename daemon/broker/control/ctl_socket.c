/* SPDX-License-Identifier: ISC */
/*
 * The operator's socket: who may ask, how requests arrive and how answers
 * leave. A client that is let in means no harm but may be broken. Therefore
 * requests have a limit and a deadline, and answers are written only as fast as
 * they are read.
 */
#include "ctl_socket.h"

#include <dirent.h>
#include <sys/un.h>

#include "broker_state.h"
#include "children.h"
#include "conf.h"
#include "log_limit.h"
#include "session_registry.h"
#include "spawn_client.h"

/*
 * Where control sockets lie by default.
 */

/* the most entries of the directory that are checked */
#define ENTRIES_MAX 4096

static void ctl_send(struct ctl_client *c);

int
ctl_directory(char directory[CTL_DIRECTORY_MAX], bool root)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	const char *home = getenv("HOME");
	int n;

	if (root)
		n = snprintf(
		    directory, CTL_DIRECTORY_MAX, "%s", CTL_ROOT_DIRECTORY);
	else if (runtime != NULL && runtime[0] == '/' && runtime[1] != '/')
		n = snprintf(directory, CTL_DIRECTORY_MAX, "%s/execd", runtime);
	else if (home != NULL && home[0] == '/' && home[1] != '/')
		n = snprintf(
		    directory, CTL_DIRECTORY_MAX, "%s" CTL_BELOW_HOME, home);
	else
		return -ENOENT;
	return n >= CTL_DIRECTORY_MAX ? -ENAMETOOLONG : 0;
}

int
ctl_directory_check(const char *directory)
{
	struct stat st;

	if (lstat(directory, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if ((st.st_uid != 0 && st.st_uid != geteuid()) ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return 0;
}

/* Tells whether nobody listens on the socket and the process in its name is
 * gone. Both are checked: an execd that has bound and does not listen yet is
 * alive, and the number of an execd in another pid namespace means nothing
 * here. */
static bool
is_stale(const char *path, const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;
	char *end;
	long pid;

	errno = 0;
	pid = strtol(name + strlen(CTL_NAME_PREFIX), &end, 10);
	if (*end != '\0' || errno != 0 || pid <= 0 ||
	    kill((pid_t)pid, 0) == 0 || errno != ESRCH)
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	return fd >= 0 &&
	       connect(fd, (const struct sockaddr *)&un, sizeof(un)) < 0 &&
	       errno == ECONNREFUSED;
}

void
ctl_directory_walk(const char *directory,
    void (*found)(void *arg, const char *path), void *arg)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;

	for (int i = 0; dir != NULL && i < ENTRIES_MAX; i++) {
		_cleanup_free_ char *path = NULL;

		entry = readdir(dir);
		if (entry == NULL)
			break;
		if (strncmp(entry->d_name, CTL_NAME_PREFIX,
			strlen(CTL_NAME_PREFIX)) != 0)
			continue;
		path = xasprintf("%s/%s", directory, entry->d_name);
		if (strlen(path) < CTL_PATH_MAX &&
		    is_stale(path, entry->d_name))
			unlink(path);
		else if (found != NULL)
			found(arg, path);
	}
	if (dir != NULL)
		closedir(dir);
}

/* Makes what may be missing of CTL_BELOW_HOME, except its last name. */
static void
make_parents(const char *directory)
{
	static const char *const names[] = { "/.local", "/.local/state" };
	size_t len = strlen(directory), below = strlen(CTL_BELOW_HOME);

	if (len < below || strcmp(directory + len - below, CTL_BELOW_HOME) != 0)
		return;
	for (size_t i = 0; i < nitems(names); i++) {
		_cleanup_free_ char *path = xasprintf(
		    "%.*s%s", (int)(len - below), directory, names[i]);

		mkdir(path, 0755); /* others keep their things there, too */
	}
}

/* Makes an ordinary user's directory if it is missing. Root's execd makes its
 * own. Returns 0 or -errno. */
static int
ctl_directory_make(const char *directory)
{
	int err;

	make_parents(directory);
	/* Another execd may make it at the same moment. */
	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return -errno;
	err = ctl_directory_check(directory);
	/* The user, or the umask, left it open to others. */
	if (err == 0)
		chmod(directory, 0700);
	return err;
}

#define ACCEPTS_PER_WAKE 16
#define GROUPS_MAX	 65536 /* NGROUPS_MAX of the kernel */
#define OUT_MAX		 (1u << 20)
/* to wait when there is no descriptor for a client */
#define REST_MS 1000

static TAILQ_HEAD(, ctl_client) clients = TAILQ_HEAD_INITIALIZER(clients);
static unsigned nclients;
static struct event listening;
static struct event rest_timer;

/* --- the socket ---------------------------------------------------------- */

/* Returns 0 and a path, or "" if there is to be no socket. */
static int
choose_path(const struct conf *c, char path[CTL_PATH_MAX])
{
	char directory[CTL_DIRECTORY_MAX];
	int err;

	path[0] = '\0';
	directory[0] = '\0';
	if (c->control.socket != NULL) {
		if (strcmp(c->control.socket, "none") != 0)
			snprintf(path, CTL_PATH_MAX, "%s", c->control.socket);
		return 0;
	}
	err = ctl_directory(directory, spawn_is_root());
	if (err == 0)
		err = spawn_is_root() ? ctl_directory_check(directory)
				      : ctl_directory_make(directory);
	if (err == 0)
		ctl_directory_walk(directory, NULL, NULL);
	if (err == 0)
		snprintf(path, CTL_PATH_MAX, "%s/" CTL_NAME_PREFIX "%d",
		    directory, (int)spawn_root_pid());
	else
		log_warn(err, "there is no `execd ctl`, and sessions open: %s",
		    directory[0] != '\0' ? directory
					 : "XDG_RUNTIME_DIR or HOME is needed");
	return err;
}

/* stdio has one client, and execd ends with it, so nobody operates it. */
static bool
is_service(const struct conf *c)
{
	for (size_t i = 0; i < c->nlisteners; i++)
		if (c->listeners[i]->scheme == ADDRESS_STDIO)
			return false;
	return true;
}

int
ctl_open(struct conf *c)
{
	struct control_rules *r = &c->control;
	char path[CTL_PATH_MAX];
	int code;

	if ((r->socket == NULL && !is_service(c)) || choose_path(c, path) < 0 ||
	    path[0] == '\0')
		return 0;
	r->listener = listener_new("ctl");
	r->listener->address = xasprintf("unix:%s", path);
	r->listener->scheme = ADDRESS_UNIX;
	r->listener->mode = r->group ? 0660 : 0600;
	r->listener->group = r->group ? xstrdup(r->group) : NULL;
	code = listener_open(r->listener);
	if (code == 0)
		return 0;
	listener_free(r->listener);
	r->listener = NULL;
	if (r->socket != NULL)
		return code;
	log_warn(0,
	    "there is no `execd ctl`, and sessions open: see the line before");
	return 0;
}

/* --- who may ask --------------------------------------------------------- */

/* Reads the kernel's list of the groups that the peer had when it connected. */
static bool
is_member(int fd, const struct ucred *who, gid_t gid)
{
	socklen_t len = GROUPS_MAX * sizeof(gid_t);
	_cleanup_free_ gid_t *groups = xmalloc(len);

	if (who->gid == gid)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(gid_t); i++)
		if (groups[i] == gid)
			return true;
	return false;
}

#define ANCESTORS_MAX 256

/*
 * In single-user mode a command of a session has the same user as execd. It may
 * also be in a sandbox, which must not end other sessions. A process that left
 * its parents is a child of root's execd, which is a subreaper. If it can no
 * longer be found out, the process counts as a command.
 */
static bool
is_of_a_session(pid_t pid)
{
	pid_t root = spawn_root_pid();

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (pid == root)
			return true;
		pid = children_parent_of(pid);
		if (pid < 0)
			return true;
	}
	return pid > 1;
}

/* The file's mode says the same, as long as nobody changes it. */
static bool
may_ask(const struct conf *c, int fd, const struct ucred *who)
{
	if (who->uid == 0)
		return true;
	if (!spawn_is_root() && who->uid == geteuid())
		return !is_of_a_session(who->pid);
	return c->control.group != NULL && is_member(fd, who, c->control.gid);
}

static void
audit_refused(struct broker *m, const struct ucred *who)
{
	struct audit_event e;

	log_warn(0,
	    "ctl: uid %u, pid %d: refused: neither root nor in ctl-group, or "
	    "a command of a session",
	    (unsigned)who->uid, (int)who->pid);
	audit_begin(&e, "ctl-refused");
	audit_number(&e, "uid", who->uid);
	audit_number(&e, "pid", (uint64_t)who->pid);
	audit_end(&e, &m->conf->audit);
}

/* --- a client ------------------------------------------------------------ */

static void
client_free(struct ctl_client *c)
{
	session_forget_commands(broker.sessions, c->shown);
	TAILQ_REMOVE(&clients, c, link);
	nclients--;
	watch_close(&c->source);
	watch_end(&c->step_timer);
	watch_end(&c->client_timer);
	buf_clear(&c->in);
	buf_clear(&c->out);
	free(c->ids);
	free(c);
}

static void
answer_error(struct ctl_client *c, const char *code, const char *message)
{
	ctl_write_error(&c->out, code, message);
	c->state = CTL_ANSWERING;
	ctl_send(c);
}

/* Fetches more to send. Returns false when everything was sent. */
static bool
refill(struct ctl_client *c)
{
	c->out.len = c->sent = 0;
	if (c->state != CTL_LISTING)
		return false;
	if (!ctl_list_more(&broker, c))
		c->state = CTL_ANSWERING;
	return true;
}

/* Sends a ready answer, and adds further sessions to it. */
static void
ctl_send(struct ctl_client *c)
{
	ssize_t n;

	if (c->state == CTL_ASKING || c->state == CTL_HANDED) {
		watch_change(&c->source, 0);
		return;
	}
	if (c->sent == c->out.len && !refill(c)) {
		client_free(c);
		return;
	}
	/* Only one piece is sent at a time, so that a long list delays
	 * nobody. */
	n = send(watch_fd(&c->source), c->out.data + c->sent,
	    c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		client_free(c);
		return;
	}
	if (n > 0) {
		c->sent += (size_t)n;
		ctl_step(c, CTL_ANSWER_MS);
	}
	if (c->sent == c->out.len && c->state == CTL_ANSWERING)
		client_free(c);
	else
		watch_change(&c->source, EV_WRITE);
}

static void
read_request(struct ctl_client *c)
{
	char piece[CTL_REQUEST_MAX];
	ssize_t n =
	    recv(watch_fd(&c->source), piece, sizeof(piece), MSG_DONTWAIT);
	const char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_free(c);
		return;
	}
	buf_put(&c->in, piece, (size_t)n);
	end = c->in.failed ? NULL : memchr(c->in.data, '\n', c->in.len);
	if (end != NULL) {
		c->state = CTL_ANSWERING;
		ctl_carry_out(&broker, c, (const char *)c->in.data,
		    (size_t)(end - (const char *)c->in.data));
		ctl_send(c);
	} else if (c->in.failed || c->in.len == CTL_REQUEST_MAX) {
		answer_error(c, "tooLarge",
		    "a request is one line of at most 4096 bytes");
	}
}
_Static_assert(CTL_REQUEST_MAX == 4096, "the sentence above");

static void
client_ready(evutil_socket_t fd, short what, void *arg)
{
	struct ctl_client *c = arg;

	if (c->state == CTL_READING)
		read_request(c);
	else
		ctl_send(c);
}

/* Goes on without the runners that have not answered in time. */
static void
go_on(struct ctl_client *c)
{
	if (c->shown[0] != '\0') {
		ctl_show_end(&broker, c);
		c->state = CTL_ANSWERING;
	} else {
		ctl_list_begin(&broker, c);
		c->state = CTL_LISTING;
	}
	ctl_step(c, CTL_ANSWER_MS);
	watch_change(&c->source, EV_WRITE);
}

static void
step_over(evutil_socket_t fd, short what, void *arg)
{
	struct ctl_client *c = arg;

	if (c->state == CTL_ASKING)
		go_on(c);
	else
		client_free(c);
}

void
ctl_step(struct ctl_client *c, int64_t ms)
{
	watch_time(&c->step_timer, ms, step_over, c);
}

static void
client_over(evutil_socket_t fd, short what, void *arg)
{
	client_free(arg);
}

static bool
waits(const struct broker *m, const struct ctl_client *c)
{
	if (c->shown[0] != '\0')
		return ctl_show_waits(m, c);
	return m->sessions->owing > 0 || m->sessions->unknown > 0;
}

void
ctl_go_on(const struct broker *m)
{
	struct ctl_client *c;

	TAILQ_FOREACH (c, &clients, link)
		if (c->state == CTL_ASKING && !waits(m, c))
			go_on(c);
}

/* Who asked for the reload under way may be gone; root tells of it all the
 * same, unless it could not begin. */
static int64_t reload_asked_ms = -CTL_CLIENT_MS;

bool
ctl_begin_reload(void)
{
	if (now_ms() < reload_asked_ms + CTL_CLIENT_MS)
		return false;
	reload_asked_ms = now_ms();
	return true;
}

void
ctl_answer_reload(struct broker *m, int code, const char *told)
{
	struct ctl_client *c, *next;

	reload_asked_ms = -CTL_CLIENT_MS;
	for (c = TAILQ_FIRST(&clients); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->state != CTL_HANDED)
			continue;
		c->out.len = 0;
		ctl_write_reloaded(&c->out, code, told);
		if (code == 0)
			continue;
		c->state = CTL_ANSWERING;
		ctl_send(c);
	}
}

void
ctl_leave(void)
{
	struct ctl_client *c;

	TAILQ_FOREACH (c, &clients, link)
		if (c->state == CTL_HANDED && c->out.len > 0)
			send(watch_fd(&c->source), c->out.data, c->out.len,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* There is no place for this client. It is told so at once, if it reads. */
static void
tell_why(int fd, const char *code, const char *message)
{
	struct buf b;

	buf_init(&b, OUT_MAX);
	ctl_write_error(&b, code, message);
	send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_clear(&b);
}

static void
turn_away(int fd, const char *code, const char *message)
{
	tell_why(fd, code, message);
	close(fd);
}

static unsigned
places_of(uid_t uid)
{
	const struct ctl_client *c;
	unsigned n = 0;

	TAILQ_FOREACH (c, &clients, link)
		n += c->who.uid == uid;
	return n;
}

/* Nobody keeps others out by requests that do not end: the oldest of who has
 * the most places goes, unless the newcomer would then have as many. */
static bool
make_place(uid_t newcomer)
{
	unsigned most = places_of(newcomer) + 1;
	struct ctl_client *c, *goes = NULL;

	if (nclients < CTL_CLIENTS_MAX)
		return true;
	TAILQ_FOREACH (c, &clients, link)
		if (places_of(c->who.uid) > most) {
			most = places_of(c->who.uid);
			goes = c;
		}
	if (goes == NULL)
		return false;
	if (goes->state == CTL_READING)
		tell_why(watch_fd(&goes->source), "busy",
		    "another user came, and you have the most places");
	client_free(goes);
	return true;
}

static void
take_client(struct broker *m, int fd, const struct ucred *who)
{
	struct ctl_client *c = xcalloc(1, sizeof(*c));

	c->who = *who;
	buf_init(&c->in, CTL_REQUEST_MAX);
	buf_init(&c->out, OUT_MAX);
	if (watch_add(&c->source, fd, EV_READ, client_ready, c) < 0) {
		close(fd);
		free(c);
		return;
	}
	ctl_step(c, CTL_REQUEST_MS);
	watch_time(&c->client_timer, CTL_CLIENT_MS, client_over, c);
	TAILQ_INSERT_TAIL(&clients, c, link);
	nclients++;
}

static void
judge_client(struct broker *m, int fd)
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0) {
		close(fd);
	} else if (!may_ask(m->conf, fd, &who)) {
		if (log_permits(LOG_FAILURE, "ctl", "refused"))
			audit_refused(m, &who);
		turn_away(fd, "notPermitted",
		    "only root and members of ctl-group may ask, and no "
		    "command of a session");
	} else if (!make_place(who.uid)) {
		turn_away(fd, "busy", "8 others are being answered");
	} else {
		take_client(m, fd, &who);
	}
}
_Static_assert(CTL_CLIENTS_MAX == 8, "the sentence above");

static void
rested(evutil_socket_t fd, short what, void *arg)
{
	watch_change(&listening, EV_READ);
}

/* Without a free descriptor the waiting client would wake this program again
 * and again. */
static void
listening_ready(evutil_socket_t fd, short what, void *arg)
{
	for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
		int client =
		    accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client >= 0) {
			judge_client(&broker, client);
			continue;
		}
		if (errno != EMFILE && errno != ENFILE && errno != ENOMEM &&
		    errno != ENOBUFS)
			return;
		log_warn(-errno, "ctl");
		watch_change(&listening, 0);
		watch_time(&rest_timer, REST_MS, rested, NULL);
		return;
	}
}

void
ctl_serve(struct broker *m)
{
	const struct listener *l = m->conf->control.listener;
	int fd;

	watch_close(&listening);
	if (l == NULL)
		return;
	fd = fcntl(l->fd, F_DUPFD_CLOEXEC, CONTROL_FD + 1);
	if (fd < 0 ||
	    watch_add(&listening, fd, EV_READ, listening_ready, NULL) < 0) {
		log_error(-errno, "ctl");
		if (fd >= 0)
			close(fd);
		return;
	}
	log_debug("`execd ctl` asks at %s", l->address);
}
