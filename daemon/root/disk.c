/* SPDX-License-Identifier: ISC */
/*
 * Work on paths of the configuration, in a child with a deadline.
 */
#include "disk.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base.h"
#include "dispose.h"
#include "seqpacket.h"

#define DISK_MS	  4000 /* all wait meanwhile; less than a broker waits */
#define OWING_MAX 8

/* Paths whose disk owes an answer. The child lives until it answers. */
static struct owing {
	int channel; /* 0: none */
	char path[CONTROL_PATH_MAX];
} owing[OWING_MAX];

struct answer {
	int result;
	struct control_found found;
};

/* Returns a free place, or NULL if the path, or too many, are waited for. */
static struct owing *
find_place(const char *path)
{
	struct owing *free_one = NULL;

	for (size_t i = 0; i < nitems(owing); i++) {
		struct owing *o = &owing[i];
		struct pollfd late = { .fd = o->channel, .events = POLLIN };

		if (o->channel > 0 && poll(&late, 1, 0) > 0)
			dispose((const int[]){ steal_fd(&o->channel) }, 1);
		if (o->channel <= 0)
			free_one = o;
		else if (strcmp(o->path, path) == 0)
			return NULL;
	}
	return free_one;
}

static void __attribute__((noreturn))
child(int channel, disk_work *work, const void *arg)
{
	struct answer a = { .result = 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(channel, 0) < 0)
		_exit(1);
	close_from(1);
	a.result = work(arg, &a.found);
	seqpacket_send(0, &a, sizeof(a), &a.result, a.result >= 0);
	_exit(0);
}

/* Returns its pid, with our end of its channel, or -errno. */
static pid_t
start(disk_work *work, const void *arg, int *own)
{
	int pair[2], err = seqpacket_pair(pair);
	pid_t pid = err < 0 ? err : dispose_fork(0);

	if (pid == 0)
		child(pair[1], work, arg);
	if (err < 0)
		return err;
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	*own = pair[0];
	return pid;
}

/* Returns -ETIMEDOUT if there is no answer yet. */
static int
hear(int channel, struct control_found *found)
{
	struct pollfd heard = { .fd = channel, .events = POLLIN };
	int fds[SEQPACKET_FDS_MAX];
	struct answer a;
	size_t nfds;
	ssize_t n;

	poll(&heard, 1, DISK_MS);
	n = seqpacket_recv(channel, &a, sizeof(a), fds, &nfds);
	if (n == -EAGAIN)
		return -ETIMEDOUT;
	if (n != sizeof(a))
		return -EIO; /* it died */
	*found = a.found;
	/* That means something else to who asked. */
	return nfds == 1 ? fds[0] : a.result == -EBADMSG ? -EIO : a.result;
}

static int
try(struct owing *o, const char *path, disk_work *work, const void *arg,
    struct control_found *found)
{
	int own, result;
	pid_t pid = start(work, arg, &own);

	if (pid < 0)
		return pid;
	result = hear(own, found);
	if (result != -ETIMEDOUT) {
		dispose_end(pid);
		close(own);
		return result;
	}
	o->channel = own;
	snprintf(o->path, sizeof(o->path), "%s", path);
	return result;
}

int
disk_do(const char *path, disk_work *work, const void *arg,
    struct control_found *found)
{
	struct owing *o = find_place(path);
	int result = o == NULL ? -ETIMEDOUT : try(o, path, work, arg, found);

	if (result == -ETIMEDOUT) {
		log_error(0, "%s: its disk does not answer", path);
		snprintf(
		    found->why, sizeof(found->why), "its disk does not answer");
	}
	return result;
}
