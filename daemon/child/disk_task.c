/* SPDX-License-Identifier: ISC */
/*
 * Works on a path that the configuration names. Its disk may be a server's or
 * FUSE, and need not answer.
 */
#include "base.h"
#include "child_tasks.h"

#include "control_limits.h"
#include "place.h"
#include "seqpacket.h"
#include "trusted.h"

/* Until root has closed the descriptor, which may wait when it is closed. */
static int
hold(void)
{
	struct pollfd gone = { .fd = CONTROL_FD };

	while (poll(&gone, 1, -1) < 0)
		continue;
	return PLACE_NONE;
}

/* Only the socket that has made the file listens. */
static int
unbind(const char *path, int own)
{
	int listens = 0;
	socklen_t len = sizeof(listens);

	if (getsockopt(own, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 &&
	    listens)
		unlink(path);
	return PLACE_NONE;
}

static int
make_record(const struct control_place *p, struct control_found *found)
{
	_cleanup_close_ int dir =
	    trusted_directory(p->path, found->why, sizeof(found->why));
	int fd;

	if (dir < 0)
		return dir;
	fd = openat(dir, p->name,
	    O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	return fd < 0 ? -errno : fd;
}

/* A copy that is not sealed is not whole. */
static int
copy_file(const char *path, int copy, struct control_found *found)
{
	struct stat st;
	int fd = trusted_open(path, &st, found->why, sizeof(found->why));
	int err = fd;

	if (fd >= 0 && fchmod(copy, (st.st_mode & 0777) |
					(st.st_uid ? 0 : COPY_OF_ROOTS)) < 0)
		err = -errno;
	else if (fd >= 0)
		err = trusted_copy(fd, copy, TASK_FILE_BYTES);
	if (fd >= 0 && err < 0)
		snprintf(found->why, sizeof(found->why), "%s", strerror(-err));
	return err;
}

/* Carries out the task. Returns a descriptor, PLACE_NONE, or -errno. */
static int
work(const struct task *t, int own, struct control_found *found)
{
	const struct control_place *p = &t->place;
	int err = -EINVAL;

	switch (t->kind) {
	case TASK_HOLD:
		return hold();
	case TASK_UNBIND:
		return unbind(p->path, own);
	case TASK_OPEN:
	case TASK_TRY_OPEN:
		return place_open(p, t->kind == TASK_TRY_OPEN, found->why,
		    sizeof(found->why));
	case TASK_RECORD:
		return make_record(p, found);
	case TASK_PERMIT:
		err = p->path[0] == '\0' || p->file == PLACE_LOST
			  ? 0
			  : place_permit(p);
		break;
	case TASK_BIND:
		err = place_bind(own, p);
		break;
	case TASK_COPY:
		err = copy_file(p->path, own, found);
		break;
	default:
		break;
	}
	return err < 0 ? err : own;
}

void
disk_task(const struct task *t, const int *fds, size_t nfds)
{
	struct control_found found = { 0 };
	int result;

	/* Whoever waits for the end of the log does not wait for the disk. */
	dup2(STDIN_FILENO, STDERR_FILENO);
	result = work(t, nfds > 1 ? fds[1] : -1, &found);
	if (result < 0 && result != PLACE_NONE)
		found.error = (uint32_t)-result;
	close(fds[0]);
	seqpacket_send(CONTROL_FD, &found, sizeof(found), &result, result >= 0);
}
