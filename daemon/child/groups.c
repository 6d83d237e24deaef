/* SPDX-License-Identifier: ISC */
/*
 * Claims the control group of root's execd, and gives it back.
 */
#include "base.h"
#include "child_tasks.h"

#include "control_limits.h"
#include "seqpacket.h"

/* Root opens the group that was claimed by this path. */
static int
find_path(int dir, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, path, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return n == PATH_MAX - 1 ? -ENAMETOOLONG : 0;
}

/* Root says with a byte that it has the lock. */
static bool
is_taken(void)
{
	struct pollfd heard = { .fd = CONTROL_FD, .events = POLLIN };
	char byte;

	while (poll(&heard, 1, -1) < 0 && errno == EINTR)
		continue;
	return recv(CONTROL_FD, &byte, 1, 0) == 1;
}

void
groups_claim(void)
{
	static struct task_claimed found;
	struct cgroup_claim *c = &found.claim;

	found.err = cgroup_claim(c, getppid(), found.why);
	for (int i = 0; i < CGROUP_HIERARCHIES && found.err == 0; i++)
		if (c->own.dirs[i] >= 0)
			found.err = find_path(c->own.dirs[i], found.own[i]);
	seqpacket_send(CONTROL_FD, &found, sizeof(found), NULL, 0);
	if (!is_taken())
		cgroup_claim_end(c);
}

int
groups_release(struct task *t, const int *fds, size_t nfds)
{
	struct cgroup_claim *c = &t->claim;
	int err = cgroup_get(&c->own, t->hierarchies, fds, nfds / 2);

	if (err == 0)
		err = cgroup_get(
		    &c->base, t->hierarchies, fds + nfds / 2, nfds / 2);
	return err < 0 ? err : cgroup_claim_end(c);
}
