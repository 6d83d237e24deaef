/* SPDX-License-Identifier: ISC */
/*
 * Children for work that root's execd cannot wait for.
 */
#include "disk.h"

#include <sys/mman.h>

#include "base.h"
#include "place.h"
#include "seqpacket.h"

/* In memory that is shared with the children. */
#define WORKS_MAX 32
static struct work {
	pid_t pid; /* 0: none */
	bool done; /* the disk has answered; the child is about to end */
	char path[CONTROL_PATH_MAX];
} * works;

/* They send no SIGCHLD at their end, and no other child is one of __WCLONE. */
bool
disk_is_busy(void)
{
	bool busy = false;

	for (size_t i = 0; works != NULL && i < WORKS_MAX; i++) {
		struct work *w = &works[i];

		if (w->pid > 0 &&
		    waitpid(w->pid, NULL, __WCLONE | WNOHANG) == w->pid)
			w->pid = 0;
		busy |= w->pid > 0;
	}
	return busy;
}

/* Returns a free place, or NULL if the path, or too many, are waited for. */
static struct work *
find_place(const char *path)
{
	struct work *free_one = NULL;

	if (works == NULL) {
		works = mmap(NULL, WORKS_MAX * sizeof(*works),
		    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (works == MAP_FAILED)
			log_fatal_errno(-errno, "memory for children");
	}
	disk_is_busy();
	for (size_t i = 0; i < WORKS_MAX; i++) {
		struct work *w = &works[i];

		if (w->pid == 0)
			free_one = w;
		else if (!w->done && path[0] != '\0' &&
			 strcmp(w->path, path) == 0)
			return NULL;
	}
	return free_one;
}

static void __attribute__((noreturn))
child(struct work *w, int channel, int own, disk_work *work, const void *arg)
{
	struct control_found found = { 0 };
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(channel, 0) < 0)
		_exit(1);
	close_from(
	    own < 0 || dup2(own, DISK_OWN) < 0 ? DISK_OWN : DISK_OWN + 1);
	result = work(arg, &found);
	if (result < 0 && result != PLACE_NONE)
		found.error = (uint32_t)-result;
	w->done = true;
	seqpacket_send(0, &found, sizeof(found), &result, result >= 0);
	_exit(0);
}

int
disk_do(const char *path, disk_work *work, const void *arg, int own)
{
	struct work *w = find_place(path);
	int pair[2], err = w == NULL ? -ETIMEDOUT : seqpacket_pair(pair);
	pid_t pid;

	if (err < 0)
		return err;
	snprintf(w->path, sizeof(w->path), "%s", path);
	w->done = false;
	pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	err = -errno;
	if (pid == 0)
		child(w, pair[1], own, work, arg);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err;
	}
	w->pid = pid;
	return pair[0];
}

ssize_t
disk_receive(int fd, void *p, size_t cap)
{
	struct iovec iov = { p, cap };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);

	if (n >= 0 && m.msg_flags & MSG_CTRUNC)
		return -EBADMSG;
	if (n > 0)
		n = recv(fd, p, cap, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

/* The last who has the channel closes it, and that is this child. */
static int
hold(const void *arg, struct control_found *found)
{
	struct pollfd gone = { .fd = 0 };

	while (poll(&gone, 1, -1) < 0)
		continue;
	return PLACE_NONE;
}

void
disk_close(int channel)
{
	int fd = disk_do("", hold, NULL, channel);

	if (fd < 0) {
		log_error(fd, "a channel stays open: closing it could block");
		return;
	}
	shutdown(channel, SHUT_RDWR);
	close(channel);
	close(fd);
}
