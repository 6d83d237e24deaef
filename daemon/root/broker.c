/* SPDX-License-Identifier: ISC */
/*
 * The broker's process: it is started, asked whether it is alive, and replaced.
 * Sessions do not end with it: their runners are children of this process, and
 * the next broker gets the channels to them.
 *
 * Each broker begins as root.next and makes a list of what it will use. When
 * the list is complete and valid, the serving broker is told to leave, and the
 * next one takes its place. This is the only way, at the start, after a crash
 * and for a reload.
 */
#include <sys/mman.h>
#include <sys/un.h>

#include "base.h"
#include "disk.h"
#include "exit_code.h"
#include "root.h"
#include "saved.h"
#include "seqpacket.h"
#include "session_cgroup.h"

#define RESTART_MS     200   /* doubled at each failure in a row; the first */
#define RESTART_MAX_MS 10000 /* restart is at once */
#define PING_MS	       2000  /* from its answer to the next PING */
#define ANSWER_MS      8000  /* then it is killed: 10 s after its last answer */
#define LIST_MS	       30000 /* the time to read its configuration */
#define LEAVE_MS       5000  /* the time to leave */
#define ALONE_MS       10000 /* so long clients wait for a broker */

static const struct broker_process none = BROKER_NONE;

static bool
is_there(const struct broker_process *b)
{
	return b->pid > 0 || b->channel >= 0;
}

pid_t
broker_any(void)
{
	return root.serving.pid > 0 ? root.serving.pid : root.next.pid;
}

/* A broker that has not come to serve is followed by the programs that served
 * before. A serving broker holds them until it is ready. */
static void
drop_programs(struct broker_process *b)
{
	if (b->programs.fds[INSTALLED_BROKER] < 0)
		return;
	root.previous |= !b->reload && root.listener < 0;
	if (b == &root.serving) {
		programs_close(&root.programs);
		root.programs = b->programs;
		b->programs = none.programs;
	}
	programs_close(&b->programs);
}

static void
hang_up(struct broker_process *b)
{
	const struct control_reloaded failed = { .code = EXIT_FAILED };

	if (b->asked) /* and has not answered */
		broker_commands_tell(root.serving.events, SPAWN_RELOADED,
		    &failed, sizeof(failed), NULL, 0);
	if (b->channel >= 0)
		disk_close(steal_fd(&b->channel));
	if (b->events >= 0)
		disk_close(steal_fd(&b->events));
	b->asked = false;
	spawn_user_clear(&b->user);
	drop_programs(b);
	list_free(b->list, root.list);
	b->list = NULL;
}

int
broker_program(const struct broker_process *b, enum installed_program which)
{
	return b->programs.fds[which] < 0 ? root.programs.fds[which]
					  : b->programs.fds[which];
}

static void
take_channel(struct broker_process *b, int fd)
{
	char missing[PATH_MAX] = "the installed broker did not come to serve";
	int err = 0;

	*b = none;
	if (!root.previous)
		err = programs_open(&b->programs, missing);
	if (root.previous || err < 0)
		log_warn(err, "%s: starting the previous programs", missing);
	root.previous = false;
	b->channel = fd;
	b->state = BROKER_NEW;
	b->list = xcalloc(1, sizeof(*b->list));
	b->started_ms = now_ms();
	b->reload = is_there(&root.serving);
	b->asked = b->reload && root.asked;
	root.asked = false;
}

int
broker_start(void)
{
	int pair[2], err = seqpacket_pair(pair);
	pid_t pid;

	if (err < 0)
		return err;
	take_channel(&root.next, pair[0]);
	pid = broker_child_start(
	    broker_program(&root.next, INSTALLED_BROKER), pair[1]);
	close(pair[1]);
	root.next.pid = pid < 0 ? 0 : pid;
	if (pid < 0)
		hang_up(&root.next);
	return pid < 0 ? (int)pid : 0;
}

void
broker_reload(void)
{
	int err;

	if (root.listener >= 0)
		return; /* its own unit starts another one */
	if (is_there(&root.next)) {
		root.reload = true;
		return;
	}
	if (!is_there(&root.serving))
		return; /* the next broker reads the configuration anyway */
	err = broker_start();
	if (err < 0)
		log_error(err, "starting another broker");
}

/* --- a broker of another unit ------------------------------------------- */

/* Only the owner of the socket's file may give commands. */
static bool
is_owner(int fd, struct ucred *peer)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(*peer), unlen = sizeof(un) - 1;
	struct stat st;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &len) == 0 &&
	       getsockname(root.listener, (struct sockaddr *)&un, &unlen) ==
		   0 &&
	       un.sun_path[0] == '/' && lstat(un.sun_path, &st) == 0 &&
	       st.st_uid == peer->uid;
}

/* Names the process, so that it can be killed. If it has ended since it
 * connected, its number may be another's by now: that one is left alone, unless
 * it is the broker's user's, who has nothing but brokers. Root is no broker. */
static int
open_peer(const struct ucred *peer)
{
	int fd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
	char path[64], line[128];
	unsigned uid = 0;
	FILE *f;

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)peer->pid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL &&
	       sscanf(line, "Uid: %u", &uid) != 1)
		continue;
	if (f != NULL)
		fclose(f);
	if (uid == 0 || uid != peer->uid)
		close(steal_fd(&fd));
	return fd;
}

/* Only one broker may be on its way. */
void
broker_accept(void)
{
	int fd =
	    accept4(root.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer = { .uid = (uid_t)-1 };

	if (fd < 0)
		return;
	if (!is_owner(fd, &peer) || is_there(&root.next)) {
		log_error(0,
		    "process %d of user %u: it is no broker, or not "
		    "the only one",
		    (int)peer.pid, (unsigned)peer.uid);
		close(fd);
		return;
	}
	take_channel(&root.next, fd);
	root.next.pidfd = open_peer(&peer);
}

/* --- replacement -------------------------------------------------------- */

static void
promote(void)
{
	struct list *old = root.list;
	struct programs before = root.programs;

	if (root.next.programs.fds[INSTALLED_BROKER] >= 0) {
		root.programs = root.next.programs;
		root.next.programs = before;
	}
	root.serving = root.next;
	root.serving.reload = false;
	root.next = none;
	root.leave_ms = 0;
	root.list = root.serving.list;
	root.serving.list = NULL;
	list_free(old, root.list);
	session_cgroup_limit_all(&root.list->seal);
	for (size_t i = 0; i < root.list->nusers; i++)
		session_cgroup_limit(&root.list->users[i].who);
	runners_change_hands();
	root.serving.ping_ms = now_ms() + PING_MS;
	broker_commands_serve(&root.serving);
}

void
broker_sealed(struct broker_process *b)
{
	b->state = BROKER_SEALED;
	if (!is_there(&root.serving)) {
		promote();
		return;
	}
	root.leave_ms = now_ms() + LEAVE_MS;
	if (broker_commands_tell(
		root.serving.events, SPAWN_LEAVE, NULL, 0, NULL, 0) < 0)
		broker_lose(&root.serving, "cannot be told to leave");
}

void
broker_lose(struct broker_process *b, const char *why)
{
	if (why != NULL && is_there(b))
		log_error(0, "broker %d %s: killing it", (int)b->pid, why);
	hang_up(b);
	if (b->pid > 0) {
		kill(b->pid, SIGKILL);
		return;
	}
	if (b->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
		close(b->pidfd);
	}
	*b = none; /* its own unit waits for it */
	if (b == &root.serving && root.next.state == BROKER_SEALED)
		promote();
}

static void
tell_end(const char *what, int status)
{
	bool killed = WIFSIGNALED(status);

	log_error(0, "broker: %s %d%s",
	    killed ? "killed by signal" : "exited with status",
	    killed ? WTERMSIG(status) : WEXITSTATUS(status), what);
}

/* A broker that never served has said why, or could not. Nothing is lost. */
static void
give_up(int status)
{
	root.stopping = true;
	if (WIFSIGNALED(status))
		tell_end(" before it served", status);
	if (root.exit_code < 0)
		root.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void
stop_for(int sig)
{
	log_info("signal %d: stopping", sig);
	root.stopping = true;
	root.exit_code = 0;
}

static void
plan_restart(void)
{
	int64_t wait = root.failures > 0 && !root.previous ? RESTART_MS : 0;

	for (uint32_t i = 0; i < root.failures && wait < RESTART_MAX_MS; i++)
		wait *= 2;
	if (root.failures++ > 1 && root.ending && !root.ending_kept)
		stop_for(SIGTERM); /* there is nobody who could drain */
	root.restart_ms = now_ms() + wait;
}

static void
reap_serving(int status)
{
	bool left = root.leave_ms > 0 && WIFEXITED(status);

	if (!left)
		tell_end("; sessions go on", status);
	if (root.next.state == BROKER_SEALED)
		promote();
	else if (!root.replaceable)
		give_up(status);
	else
		plan_restart();
}

/* The broker itself has said why it does not go on. */
static void
reap_next(bool reload, int status)
{
	if (reload) {
		if (WIFSIGNALED(status))
			tell_end(" before it served", status);
		log_error(0, "reload: refused, the configuration stays as it "
			     "was");
		return;
	}
	if (!root.served) {
		give_up(status);
		return;
	}
	tell_end("; sessions go on", status);
	plan_restart();
}

/* Its last messages may wait to be read after its end. They may lead to a
 * signal to it, so it is still a zombie then. */
static void
hear_last_words(struct broker_process *b)
{
	struct pollfd heard = { .fd = b->channel, .events = POLLIN };

	while (b->channel >= 0 && poll(&heard, 1, 0) > 0 &&
	       broker_commands_take(b))
		continue;
}

/* Nothing is begun any more when everything ends. */
static void
take_end(struct broker_process *b, pid_t pid)
{
	bool reload = b->reload && is_there(&root.serving);
	int status = 0;

	if (!root.stopping)
		hear_last_words(b);
	waitpid(pid, &status, 0);
	if (!is_there(b))
		b = &root.serving; /* the last word was its whole list */
	hang_up(b);
	*b = none;
	if (root.stopping)
		return;
	/* A process that has just begun dies of the signal itself. */
	if (root.stop_signal != 0 && !is_there(&root.serving))
		stop_for(root.stop_signal);
	else if (b == &root.serving)
		reap_serving(status);
	else
		reap_next(reload, status);
}

void
broker_reap(void)
{
	/* The next one may become the serving one meanwhile. */
	const pid_t brokers[] = { root.serving.pid, root.next.pid };
	siginfo_t info;

	for (size_t i = 0; i < nitems(brokers); i++)
		if (brokers[i] > 0 && child_has_ended(brokers[i], &info))
			take_end(brokers[i] == root.serving.pid ? &root.serving
								: &root.next,
			    brokers[i]);
}

/* --- liveness ----------------------------------------------------------- */

void
broker_is_alive(struct broker_process *b)
{
	b->answer_ms = 0;
	b->ping_ms = now_ms() + PING_MS;
}

static int64_t
ask(struct broker_process *b, int64_t now)
{
	if (b->answer_ms > 0 && now < b->answer_ms)
		return b->answer_ms;
	if (b->answer_ms > 0) {
		broker_lose(b, "does not answer");
		return -1;
	}
	if (now < b->ping_ms)
		return b->ping_ms;
	b->answer_ms = now + ANSWER_MS;
	broker_commands_tell(b->events, SPAWN_PING, NULL, 0, NULL, 0);
	return b->answer_ms;
}

/* Whoever started the first broker sees what it does. */
static int64_t
watch_next(int64_t now)
{
	struct broker_process *b = &root.next;

	if (b->channel < 0 || b->state == BROKER_SEALED || !root.served)
		return -1;
	if (now < b->started_ms + LIST_MS)
		return b->started_ms + LIST_MS;
	broker_lose(b, "does not begin");
	return -1;
}

static int64_t
watch_serving(int64_t now)
{
	if (root.leave_ms == 0)
		return ask(&root.serving, now);
	if (now < root.leave_ms)
		return root.leave_ms;
	root.leave_ms = 0;
	broker_lose(&root.serving, "does not leave");
	return -1;
}

static int64_t
start_when_due(int64_t now)
{
	int err;

	if (now < root.restart_ms)
		return root.restart_ms;
	err = broker_start();
	if (err == 0)
		return -1;
	log_error(err, "starting the broker");
	plan_restart();
	return root.restart_ms;
}

/* A broker of another unit is waited for. Whoever connects meanwhile waits with
 * root, but not for ever: a balancer is to see that nobody serves. */
static int64_t
close_when_due(int64_t now)
{
	if (root.alone_ms < 0 || root.list == NULL)
		return -1;
	if (root.alone_ms == 0)
		root.alone_ms = now;
	if (now < root.alone_ms + ALONE_MS)
		return root.alone_ms + ALONE_MS;
	root.alone_ms = -1;
	log_info("no broker for %d s: nobody listens until there is one",
	    ALONE_MS / 1000);
	list_hang_up(root.list);
	return -1;
}

int64_t
broker_watch(int64_t now)
{
	int64_t next;

	if (root.stopping)
		return -1;
	if (root.reload && !is_there(&root.next)) {
		root.reload = false;
		broker_reload();
	}
	if (!is_there(&root.serving) && !is_there(&root.next))
		return root.listener < 0 ? start_when_due(now)
					 : close_when_due(now);
	root.alone_ms = 0;
	next = root.serving.channel >= 0 ? watch_serving(now) : -1;
	return earlier_ms(next, watch_next(now));
}

void
broker_signal(int sig)
{
	bool ready =
	    root.serving.pid > 0 && (root.serving.state & BROKER_READY);
	/* Without a broker, who knows the drain, a second one ends all. */
	bool ending = sig == SIGTERM && root.served && root.listener < 0 &&
		      (ready || !root.ending);
	pid_t pid = broker_any();

	if (sig == SIGHUP) {
		broker_reload();
		return;
	}
	root.ending |= ending;
	if (sig == SIGUSR1 || ending) {
		if (ready)
			kill(pid, sig);
		else
			log_warn(0, "signal %d: no broker serves%s", sig,
			    ending ? "; the next one is told" : "");
		return;
	}
	if (pid > 0 && pid != root.next.pid && is_there(&root.next))
		broker_lose(&root.next, NULL);
	if (pid > 0) {
		root.stop_signal = sig;
		kill(pid, sig);
		return;
	}
	stop_for(sig);
}

/* --- what a broker leaves for the next one ------------------------------- */

/* Older versions had a file for each part. */
static int before[7] = { -1, -1, -1, -1, -1, -1, -1 };
enum { BEFORE_DRAINED = 0, BEFORE_ENDING = 6 };

void
kept_save(struct saved *s)
{
	if (s->version >= 8) {
		saved_fd(s, &root.kept);
		SAVE(s, root.ending_kept);
		return;
	}
	for (size_t i = 0; i < nitems(before) - (s->version < 6); i++)
		saved_fd(s, &before[i]);
	root.ending_kept = before[BEFORE_ENDING] >= 0;
}

static void
take_before(int fd, size_t at)
{
	char part[sizeof(((struct spawn_kept *)0)->drained) - 1];
	ssize_t n = fd < 0 ? 0 : pread(fd, part, sizeof(part), 0);

	if (n > 0 && pwrite(root.kept, part, (size_t)n, (off_t)at) != n)
		log_error(-errno, "what the last broker left");
}

/* It has this size for ever, and root does not look at it. */
void
kept_make(void)
{
	root.kept = memfd_create("kept", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (root.kept < 0 ||
	    ftruncate(root.kept, sizeof(struct spawn_kept)) < 0 ||
	    fcntl(root.kept, F_ADD_SEALS,
		F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		log_fatal_errno(-errno, "memory for the next broker");
	take_before(
	    before[BEFORE_DRAINED], offsetof(struct spawn_kept, drained));
	take_before(
	    before[BEFORE_ENDING], offsetof(struct spawn_kept, until_ms));
	for (size_t i = 0; i < nitems(before); i++)
		if (before[i] >= 0)
			close(steal_fd(&before[i]));
}
