/* SPDX-License-Identifier: ISC */
/*
 * Children for work that root's execd cannot wait for.
 */
#include "disk.h"

#include "root.h"

#define WORKS_MAX 32
static struct work {
	pid_t pid; /* 0: none */
	int owes;  /* a pipe that ends when the disk has answered */
	char path[CONTROL_PATH_MAX];
} works[WORKS_MAX];

static void
reap(struct work *w)
{
	if (w->pid == 0 || waitpid(w->pid, NULL, WNOHANG) == 0)
		return;
	w->pid = 0;
	close(w->owes);
}

bool
disk_reap(void)
{
	bool busy = false;

	for (size_t i = 0; i < WORKS_MAX; i++) {
		reap(&works[i]);
		busy |= works[i].pid > 0;
	}
	return busy;
}

bool
disk_has(pid_t pid)
{
	for (size_t i = 0; i < WORKS_MAX; i++)
		if (works[i].pid == pid)
			return true;
	return false;
}

static bool
has_answered(const struct work *w)
{
	struct pollfd end = { .fd = w->owes };

	return poll(&end, 1, 0) > 0;
}

/* Returns a free place, or NULL if the path, or too many, are waited for. */
static struct work *
find_place(const char *path)
{
	struct work *free_one = NULL;

	disk_reap();
	for (size_t i = 0; i < WORKS_MAX; i++) {
		struct work *w = &works[i];

		if (w->pid == 0)
			free_one = w;
		else if (path[0] != '\0' && strcmp(w->path, path) == 0 &&
			 !has_answered(w))
			return NULL;
	}
	return free_one;
}

int
disk_do(enum task_kind kind, const struct control_place *place, int own)
{
	const struct task t = { .kind = kind, .place = *place };
	struct work *w = find_place(place->path);
	int channel, owes[2], err = w == NULL ? -ETIMEDOUT : 0;
	pid_t pid;

	if (err == 0 && pipe2(owes, O_CLOEXEC) < 0)
		err = -errno;
	if (err < 0)
		return err;
	pid =
	    task_start(&t, (int[]){ owes[1], own }, own >= 0 ? 2 : 1, &channel);
	close(owes[1]);
	if (pid < 0) {
		close(owes[0]);
		return pid;
	}
	w->pid = pid;
	w->owes = owes[0];
	snprintf(w->path, sizeof(w->path), "%s", place->path);
	return channel;
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

void
disk_close(int channel)
{
	static const struct control_place none;
	int fd = disk_do(TASK_HOLD, &none, channel);

	if (fd < 0) {
		log_error(fd, "a channel stays open: closing it could block");
		return;
	}
	shutdown(channel, SHUT_RDWR);
	close(channel);
	close(fd);
}
