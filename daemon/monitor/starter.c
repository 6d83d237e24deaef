/*
 * The monitor's side of the starter.
 */
#include "starter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "door.h"
#include "log.h"
#include "monitor.h"
#include "quota.h"
#include "seqpacket.h"
#include "starter_identity.h"
#include "sweep.h"
#include "util.h"

/* It waits two seconds for a template, and for nobody else. */
#define ANSWER_MS 5000

static int channel = -1;
static int events_fd = -1; /* until starter_watch() */
static struct source events = { .fd = -1 };
static bool hangs; /* it was asked, and did not answer in time */

bool
starter_is_used(void)
{
	return channel >= 0;
}

static int
tell(enum control_type type, const void *payload, const int *fds, size_t nfds)
{
	struct pollfd room = { .fd = channel, .events = POLLOUT };
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	while ((err = seqpacket_send(channel, b.data, b.len, fds, nfds)) ==
		   -EAGAIN &&
	       !hangs && poll(&room, 1, ANSWER_MS) > 0)
		continue;
	hangs |= err == -EAGAIN;
	buf_clear(&b);
	return err;
}

/* Answers that are due. One that was given up, or could not be read, is not
 * the answer to what was asked since. */
static unsigned due;

/* The bytes of the last answer that is due, or -errno. */
static ssize_t
hear_last(uint8_t packet[CONTROL_MESSAGE_MAX], int *fds, size_t *nfds)
{
	struct pollfd ready = { .fd = channel, .events = POLLIN };
	ssize_t n;

	*nfds = 0;
	due++;
	do {
		if (poll(&ready, 1, hangs ? 0 : ANSWER_MS) <= 0) {
			hangs = true;
			return -ETIMEDOUT;
		}
		n = seqpacket_recv(
		    channel, packet, CONTROL_MESSAGE_MAX, fds, nfds);
		if (n == 0)
			return -EPIPE;
		/* One that was too large is here as well. */
		if (n < 0 && n != -EMSGSIZE)
			return n;
		if (--due > 0)
			while (*nfds > 0)
				close(fds[--*nfds]);
	} while (due > 0);
	return n;
}

/* fds[SEQPACKET_FDS_MAX]: the caller's. 0 or -errno. */
static int
hear(enum control_type type, void *answer, int *fds, size_t *nfds)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	ssize_t n = hear_last(packet, fds, nfds);
	int err = n < 0 ? (int)n : 0;

	if (err == 0 && control_get(packet, (size_t)n, type, answer) < 0)
		err = -EBADMSG;
	while (err < 0 && *nfds > 0)
		close(fds[--*nfds]);
	return err;
}

/* --- the beginning ------------------------------------------------------ */

static int
open_channel(const char *path)
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
	return steal_fd(&fd);
}

static int
begin(struct control_starter_ready *answer)
{
	int fds[SEQPACKET_FDS_MAX], pair[2], err = seqpacket_pair(pair);
	size_t nfds;

	if (err < 0)
		return err;
	err = tell(STARTER_BEGIN, NULL, &pair[1], 1);
	close(pair[1]);
	if (err == 0)
		err = hear(STARTER_READY, answer, fds, &nfds);
	while (err == 0 && nfds > 0)
		close(fds[--nfds]);
	if (err < 0)
		close(pair[0]);
	else
		events_fd = pair[0];
	return err;
}

int
starter_connect(const char *path)
{
	struct control_starter_ready answer = { 0 };
	int err;

	channel = open_channel(path);
	err = channel < 0 ? channel : begin(&answer);
	if (err < 0) {
		fprintf(
		    stderr, "execd: --starter %s: %s\n", path, strerror(-err));
		return EXIT_FAILED;
	}
	quota_learn(answer.controllers);
	if (answer.error == 0)
		return 0;
	fprintf(stderr, "execd: this host does not give a session %s: %s\n",
	    answer.step, strerror((int)answer.error));
	return EXIT_UNENFORCEABLE;
}

/* --- what it tells ------------------------------------------------------ */

struct pids {
	pid_t *all;
	size_t n;
};

static void
collect(struct table_node *node, void *arg)
{
	struct pids *p = arg;

	p->all[p->n++] = TABLE_OBJECT(node, struct session, by_pid)->pid;
}

/* The kernel kills the runners of a starter that is gone; those of one that
 * hangs end with their control channels. */
static void
give_up(struct monitor *m, const char *why)
{
	struct pids p = { xcalloc(m->sessions.by_pid.count + 1, sizeof(pid_t)),
		0 };

	log_error(0, "the starter %s, and every session ends", why);
	source_remove(&events);
	table_each(&m->sessions.by_pid, collect, &p);
	monitor_stop(m, EXIT_FAILED);
	for (size_t i = 0; i < p.n; i++)
		session_reap(m, p.all[i], SIGKILL);
	free(p.all);
}

static void
events_ready(struct source *source, uint32_t what)
{
	struct control_runner_status s;
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	while ((n = seqpacket_recv(
		    events.fd, packet, sizeof(packet), fds, &nfds)) > 0) {
		while (nfds > 0)
			close(fds[--nfds]);
		if (control_get(packet, (size_t)n, STARTER_EXITED, &s) < 0)
			break;
		session_reap(&monitor, (pid_t)s.pid, (int)s.status);
		tell(STARTER_END, &(struct control_pid){ s.pid }, NULL, 0);
	}
	if (n != -EAGAIN)
		give_up(&monitor, "is gone");
}

void
starter_check(struct monitor *m)
{
	if (!hangs || m->stopping)
		return;
	give_up(m, "does not answer");
}

int
starter_watch(void)
{
	int fd = events_fd;

	events_fd = -1;
	return channel < 0 ? 0 : source_add(&events, fd, EPOLLIN, events_ready);
}

/* --- what it is told ---------------------------------------------------- */

static int
send_start(enum control_type type, const struct control_start *s,
    const struct identity *id, int fd)
{
	_cleanup_close_ int list = starter_identity_list(id);
	const int fds[] = { fd, list };

	return list < 0 ? list : tell(type, s, fds, nitems(fds));
}

pid_t
starter_run(const char *group, const struct identity *id, int control_fd,
    struct cgroup *cgroup)
{
	struct control_runner_started answer = { 0 };
	int fds[SEQPACKET_FDS_MAX], err;
	struct control_start s;
	size_t nfds = 0;

	starter_identity_fill(&s, id);
	snprintf(s.group, sizeof(s.group), "%s", group);
	err = send_start(STARTER_START, &s, id, control_fd);
	if (err == 0)
		err = hear(STARTER_STARTED, &answer, fds, &nfds);
	if (err < 0)
		return err;
	err = cgroup_get(cgroup, answer.cgroups, fds, nfds);
	while (err < 0 && nfds > 0)
		close(fds[--nfds]);
	if (err < 0)
		return err;
	return answer.error != 0 ? -(pid_t)answer.error : (pid_t)answer.pid;
}

int
starter_door(uid_t uid, gid_t gid, const char **step)
{
	static struct control_starter_error answer;
	int fds[SEQPACKET_FDS_MAX], err;
	size_t nfds;

	if (channel < 0)
		return door_open(monitor.programs.runner, uid, gid, step);
	*step = "asking the starter";
	err = tell(STARTER_DOOR, &(struct control_door){ uid, gid }, NULL, 0);
	if (err == 0)
		err = hear(STARTER_OPENED, &answer, fds, &nfds);
	if (err < 0)
		return err;
	*step = answer.step;
	if (answer.error == 0 && nfds == 1)
		return fds[0];
	while (nfds > 0)
		close(fds[--nfds]);
	return answer.error != 0 ? -(int)answer.error : -EBADMSG;
}

void
starter_sweep(const struct monitor *m, const struct identity *id, int list)
{
	struct control_start s;
	int err;

	if (channel < 0) {
		sweep_start(m, id, list);
		return;
	}
	starter_identity_fill(&s, id);
	err = send_start(STARTER_SWEEP, &s, id, list);
	if (err < 0)
		log_error(err, "sweeping what a session left behind");
}

void
starter_kill(pid_t runner)
{
	if (channel < 0)
		kill(runner, SIGKILL);
	else
		tell(STARTER_KILL, &(struct control_pid){ (uint32_t)runner },
		    NULL, 0);
}
