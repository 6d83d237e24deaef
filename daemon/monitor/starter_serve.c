/*
 * execd starter: forks runners on the monitor's order. It parses no byte of a
 * client and listens nowhere; systemd hands it the monitor's connection. The
 * monitor is believed in everything but one: no runner is ever root.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "door.h"
#include "log.h"
#include "monitor.h"
#include "quota.h"
#include "runner_start.h"
#include "seqpacket.h"
#include "starter.h"
#include "starter_identity.h"
#include "starter_kept.h"
#include "sweep.h"
#include "util.h"

enum starter_state { STARTER_NEW = 1 << 0, STARTER_SERVING = 1 << 1 };

/* A runner, until the monitor has heard of its end: then its pid may be
 * another's. */
struct started {
	TAILQ_ENTRY(started) link; /* runners */
	pid_t pid;
	bool told;
	char group[CONTROL_GROUP_MAX];
};

static TAILQ_HEAD(, started) runners = TAILQ_HEAD_INITIALIZER(runners);
static enum starter_state state = STARTER_NEW;
static int events_fd = -1;

static void
tell(int fd, enum control_type type, const void *payload, const int *fds,
    size_t nfds)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	while ((err = seqpacket_send(fd, b.data, b.len, fds, nfds)) == -EAGAIN)
		poll(&room, 1, -1);
	buf_clear(&b);
	if (err < 0 && err != -EPIPE && err != -ECONNRESET)
		log_fatal_errno(err, "%s", control_name(type));
}

/* --- orders ------------------------------------------------------------- */

static int
take_begin(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_starter_ready answer = { .controllers =
						    quota_controllers() };
	const char *step = "";

	if (nfds != 1 || control_get(packet, len, STARTER_BEGIN, NULL) < 0)
		return -EBADMSG;
	events_fd = fcntl(fds[0], F_DUPFD_CLOEXEC, CONTROL_FD + 1);
	answer.error = (uint32_t)-runner_probe(&step);
	snprintf(answer.step, sizeof(answer.step), "%s", step);
	state = STARTER_SERVING;
	tell(CONTROL_FD, STARTER_READY, &answer, NULL, 0);
	return 0;
}

/* The control group is made here: the groups of a unit are its own. */
static pid_t
run(struct identity *id, const char *group, int control_fd,
    struct cgroup *cgroup)
{
	int joins[CGROUP_HIERARCHIES], err;
	char reason[256];
	pid_t pid;

	if (id->uid == 0)
		return -EPERM;
	err = quota_for(group, id, cgroup, reason);
	if (err < 0) {
		log_error(0, "%s: %s", group, reason);
		return err;
	}
	err = quota_open_joins(cgroup, joins);
	pid = err < 0 ? err
		      : runner_start(monitor.programs.runner, id, true,
			    control_fd, joins);
	if (err == 0)
		cgroup_close_joins(joins);
	if (pid < 0)
		quota_close(group);
	return pid;
}

static void
remember(pid_t pid, const char *group)
{
	struct started *r = xcalloc(1, sizeof(*r));

	r->pid = pid;
	snprintf(r->group, sizeof(r->group), "%s", group);
	TAILQ_INSERT_TAIL(&runners, r, link);
}

/* It becomes the name of a directory. */
static bool
is_group(const char *name)
{
	size_t prefix = strlen(SESSION_GROUP_PREFIX);

	return strncmp(name, SESSION_GROUP_PREFIX, prefix) == 0 &&
	       name[prefix] != '\0' &&
	       strspn(name + prefix, "0123456789") == strlen(name + prefix);
}

static int
take_start(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_runner_started answer = { 0 };
	struct cgroup cgroup = CGROUP_NONE;
	int dirs[CGROUP_HIERARCHIES];
	struct control_start s;
	struct identity *id;
	size_t ndirs;
	pid_t pid;

	if (nfds != 2 || control_get(packet, len, STARTER_START, &s) < 0 ||
	    !is_group(s.group) || (id = starter_kept(&s, fds[1])) == NULL)
		return -EBADMSG;
	pid = run(id, s.group, fds[0], &cgroup);
	answer.error = pid < 0 ? (uint32_t)-pid : 0;
	answer.pid = pid < 0 ? 0 : (uint32_t)pid;
	if (pid > 0)
		remember(pid, s.group);
	ndirs = cgroup_put(&cgroup, &answer.cgroups, dirs);
	tell(CONTROL_FD, STARTER_STARTED, &answer, dirs, ndirs);
	cgroup_close(&cgroup);
	identity_unref(id);
	return 0;
}

static int
take_door(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_starter_error answer = { 0 };
	const char *step = "";
	struct control_door d;
	int fd = -EPERM;

	if (nfds != 0 || control_get(packet, len, STARTER_DOOR, &d) < 0)
		return -EBADMSG;
	if (d.uid != 0)
		fd = door_open(monitor.programs.runner, d.uid, d.gid, &step);
	answer.error = fd < 0 ? (uint32_t)-fd : 0;
	snprintf(answer.step, sizeof(answer.step), "%s", step);
	tell(CONTROL_FD, STARTER_OPENED, &answer, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	return 0;
}

static int
take_sweep(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_start s;
	struct identity *id;

	if (nfds != 2 || control_get(packet, len, STARTER_SWEEP, &s) < 0 ||
	    s.uid == 0 || (id = starter_identity(&s, fds[1])) == NULL)
		return -EBADMSG;
	sweep_start(&monitor, id, fds[0]);
	identity_unref(id);
	return 0;
}

static struct started *
find(pid_t pid)
{
	struct started *r;

	TAILQ_FOREACH (r, &runners, link)
		if (r->pid == pid)
			return r;
	return NULL;
}

static int
take_kill(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_pid p;

	if (nfds != 0 || control_get(packet, len, STARTER_KILL, &p) < 0)
		return -EBADMSG;
	if (find((pid_t)p.pid) != NULL)
		kill((pid_t)p.pid, SIGKILL);
	return 0;
}

static void
forget(struct started *r)
{
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	quota_close(r->group);
	TAILQ_REMOVE(&runners, r, link);
	free(r);
}

static int
take_end(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_pid p;
	struct started *r;

	if (nfds != 0 || control_get(packet, len, STARTER_END, &p) < 0)
		return -EBADMSG;
	r = find((pid_t)p.pid);
	if (r == NULL || !r->told)
		return -EBADMSG;
	forget(r);
	return 0;
}

static const struct order {
	enum control_type type;
	unsigned when;
	int (*take)(
	    const uint8_t *packet, size_t len, const int *fds, size_t nfds);
} orders[] = {
	{ STARTER_BEGIN, STARTER_NEW, take_begin },
	{ STARTER_START, STARTER_SERVING, take_start },
	{ STARTER_DOOR, STARTER_SERVING, take_door },
	{ STARTER_SWEEP, STARTER_SERVING, take_sweep },
	{ STARTER_KILL, STARTER_SERVING, take_kill },
	{ STARTER_END, STARTER_SERVING, take_end },
};

static void
take(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	enum control_type type = control_peek(packet, len);

	for (size_t i = 0; i < nitems(orders); i++)
		if (orders[i].type == type && orders[i].when & state &&
		    orders[i].take(packet, len, fds, nfds) == 0)
			return;
	log_fatal("impossible order: %s", control_name(type));
}

/* --- the loop ----------------------------------------------------------- */

/* False: the monitor is gone. */
static bool
take_orders(void)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	while ((n = seqpacket_recv(
		    CONTROL_FD, packet, sizeof(packet), fds, &nfds)) > 0) {
		take(packet, (size_t)n, fds, nfds);
		while (nfds > 0)
			close(fds[--nfds]);
	}
	if (n < 0 && n != -EAGAIN && n != -ECONNRESET)
		log_fatal_errno((int)n, "the monitor's channel");
	return n == -EAGAIN;
}

/* A runner stays a zombie until the monitor has heard of it. */
static void
tell_exits(void)
{
	struct started *r;

	TAILQ_FOREACH (r, &runners, link) {
		struct control_runner_status s = { .pid = (uint32_t)r->pid };
		siginfo_t info = { 0 };

		if (r->told ||
		    waitid(P_PID, (id_t)r->pid, &info,
			WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    info.si_pid == 0)
			continue;
		s.status =
		    (uint32_t)(info.si_code == CLD_EXITED ? info.si_status << 8
							  : info.si_status);
		r->told = true;
		tell(events_fd, STARTER_EXITED, &s, NULL, 0);
	}
	starter_kept_reap();
	sweep_reap_all();
}

static int
watch_children(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool
is_root_s_channel(void)
{
	socklen_t len = sizeof(int), ucred_len = sizeof(struct ucred);
	struct ucred peer;
	int type = 0;

	return getsockopt(CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_SEQPACKET &&
	       getsockopt(CONTROL_FD, SOL_SOCKET, SO_PEERCRED, &peer,
		   &ucred_len) == 0 &&
	       peer.uid == 0;
}

static void
serve(int signals)
{
	struct pollfd ready[] = { { .fd = CONTROL_FD, .events = POLLIN },
		{ .fd = signals, .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo info;
	bool goes_on = true;

	while (goes_on) {
		int wait_ms = log_flush() ? -1 : LOG_RETRY_MS;

		ready[2].fd = wait_ms < 0 ? log_relay_fd() : -1;
		if (poll(ready, nitems(ready), wait_ms) < 0 && errno != EINTR)
			log_fatal_errno(-errno, "poll");
		while (read(signals, &info, sizeof(info)) > 0)
			tell_exits();
		goes_on = take_orders();
	}
}

int
starter_serve(struct monitor *m)
{
	struct started *r;
	int signals;

	if (geteuid() != 0 || !is_root_s_channel()) {
		fputs("execd: `execd starter` is started by systemd, with the "
		      "connection of root's execd\n",
		    stderr);
		return EXIT_USAGE;
	}
	m->root = true;
	fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC);
	set_nonblock(CONTROL_FD);
	signals = watch_children();
	if (signals < 0)
		log_fatal_errno(-errno, "signals");
	quota_init();
	serve(signals);
	TAILQ_FOREACH (r, &runners, link)
		kill(r->pid, SIGKILL);
	while ((r = TAILQ_FIRST(&runners)) != NULL)
		forget(r);
	starter_kept_clear();
	quota_clear();
	return EXIT_STOPPED;
}
