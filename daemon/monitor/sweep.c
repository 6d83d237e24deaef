/*
 * After a runner that was killed.
 */
#include "sweep.h"

#include <errno.h>
#include <unistd.h>

#include "child.h"
#include "drop.h"
#include "log.h"
#include "monitor.h"

static void __attribute__((noreturn))
child(const struct monitor *m, const struct identity *id, int list)
{
	char *argv[] = { (char *)(uintptr_t) "execd-runner",
		(char *)(uintptr_t) "--sweep", NULL };
	char *none[] = { NULL };

	child_reset_signals();
	if (m->root)
		drop_to_user(id->uid, id->gid, id->gids, id->ngids);
	child_exec(m->programs.runner, list, argv, none);
}

void
sweep_start(const struct monitor *m, const struct identity *id, int list)
{
	pid_t pid = fork();

	if (pid == 0)
		child(m, id, list);
	if (pid < 0)
		log_error(-errno, "sweeping what a session left behind");
}
