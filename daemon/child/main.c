/* SPDX-License-Identifier: ISC */
/*
 * execd-child: does one task for root's execd, and ends. What it works on is
 * root's, the kernel's or the operator's; it hears nobody else.
 */
#include "base.h"
#include "child_tasks.h"
#include "control_limits.h"
#include "drop.h"
#include "seqpacket.h"

int
main(int argc, char **argv)
{
	int fds[SEQPACKET_FDS_MAX];
	struct task t;
	size_t nfds = 0;

	drop_visibility();
	/* It would have the number of its descriptor as its name. */
	prctl(PR_SET_NAME, "execd-child");
	log_init("execd-child", LOG_LEVEL_INFO);
	if (seqpacket_recv(CONTROL_FD, &t, sizeof(t), fds, &nfds) != sizeof(t))
		log_fatal("only root's execd starts this program");
	switch (t.kind) {
	case TASK_CLAIM:
		groups_claim();
		return 0;
	case TASK_RELEASE:
		return -groups_release(&t, fds, nfds);
	case TASK_NAMESPACE:
		user_namespace_make(t.uid, t.gid);
		return 0;
	default:
		disk_task(&t, fds, nfds);
		return 0;
	}
}
