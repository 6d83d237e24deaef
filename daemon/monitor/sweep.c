/*
 * After a runner that was killed.
 */
#include "sweep.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "drop.h"
#include "log.h"
#include "monitor.h"
#include "util.h"

/* At once; each lives for milliseconds. */
#define SWEEPS_MAX 64

static pid_t running[SWEEPS_MAX];

static pid_t *
find(pid_t pid)
{
	for (size_t i = 0; i < nitems(running); i++)
		if (running[i] == pid)
			return &running[i];
	return NULL;
}

bool
sweep_has(pid_t pid)
{
	return find(pid) != NULL;
}

bool
sweep_reap(pid_t pid)
{
	pid_t *slot = find(pid);

	if (slot != NULL)
		*slot = 0;
	return slot != NULL;
}

void
sweep_reap_all(void)
{
	for (size_t i = 0; i < nitems(running); i++)
		if (running[i] > 0 && waitpid(running[i], NULL, WNOHANG) > 0)
			running[i] = 0;
}

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
	pid_t *slot = find(0);
	pid_t pid = slot != NULL ? fork() : -1;

	if (pid == 0)
		child(m, id, list);
	if (pid > 0)
		*slot = pid;
	else
		log_error(slot != NULL ? -errno : -EAGAIN,
		    "sweeping what a session left behind");
}
