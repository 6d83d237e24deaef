/* SPDX-License-Identifier: ISC */
/*
 * The cleanup after a killed runner.
 */
#include "placeholder_cleanup.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "identity.h"
#include "log.h"
#include "spawn_client.h"
#include "util.h"

/* At once. Each process lives for milliseconds, unless its user stops it. */
#define CLEANUPS_MAX	      64
#define CLEANUPS_PER_USER_MAX 32
#define PATIENCE_MS	      10000

static struct cleanup {
	pid_t pid; /* 0: the slot is free */
	uid_t uid;
	int64_t started_ms;
} running[CLEANUPS_MAX];

static struct cleanup *
find(pid_t pid)
{
	for (size_t i = 0; i < nitems(running); i++)
		if (running[i].pid == pid)
			return &running[i];
	return NULL;
}

bool
placeholder_cleanup_reap(pid_t pid)
{
	struct cleanup *c = find(pid);

	if (c != NULL)
		c->pid = 0;
	return c != NULL;
}

/* A user can stop them. A killed one frees its slot when it is reaped. */
static void
kill_stuck(int64_t now)
{
	for (size_t i = 0; i < nitems(running); i++)
		if (running[i].pid > 0 &&
		    running[i].started_ms + PATIENCE_MS <= now)
			spawn_kill(running[i].pid);
}

/* Half of the places are always left to other users. */
static struct cleanup *
find_slot(uid_t uid)
{
	size_t n = 0;

	kill_stuck(now_ms());
	for (size_t i = 0; i < nitems(running); i++)
		n += running[i].pid > 0 && running[i].uid == uid;
	return n < CLEANUPS_PER_USER_MAX ? find(0) : NULL;
}

void
placeholder_cleanup(const struct identity *id, int list)
{
	struct cleanup *c = find_slot(id->uid);
	pid_t pid =
	    c != NULL ? spawn_program(PROGRAM_OF_CLEANUP, id, list) : -EAGAIN;

	if (pid > 0)
		*c = (struct cleanup){ pid, id->uid, now_ms() };
	else
		log_error((int)pid, "removing what a session left behind");
}
