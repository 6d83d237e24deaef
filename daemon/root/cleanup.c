/* SPDX-License-Identifier: ISC */
/*
 * The cleanup after a killed runner.
 */
#include "cleanup.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "drop.h"
#include "log.h"
#include "saved.h"
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
cleanup_has(pid_t pid)
{
	return find(pid) != NULL;
}

void
cleanup_reap_all(void)
{
	for (size_t i = 0; i < nitems(running); i++)
		if (running[i].pid > 0 &&
		    waitpid(running[i].pid, NULL, WNOHANG) > 0)
			running[i].pid = 0;
}

void
cleanup_save(struct saved *s)
{
	for (size_t i = 0; i < nitems(running); i++) {
		SAVE(s, running[i].pid);
		SAVE(s, running[i].uid);
		SAVE(s, running[i].started_ms);
	}
}

/* A user can stop them. A killed one frees its slot when it is reaped. */
static void
kill_stuck(int64_t now)
{
	for (size_t i = 0; i < nitems(running); i++)
		if (running[i].pid > 0 &&
		    running[i].started_ms + PATIENCE_MS <= now)
			kill(running[i].pid, SIGKILL);
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

static void __attribute__((noreturn))
child(int program, const struct spawn_user *o, int list)
{
	char *argv[] = { (char *)(uintptr_t) "execd-runner",
		(char *)(uintptr_t) "--cleanup", NULL };
	char *none[] = { NULL };

	child_reset_signals();
	child_place(program, list);
	if (geteuid() == 0) {
		drop_to_user(
		    o->who.uid, o->who.gid, spawn_user_groups(o), o->list[0]);
		drop_visibility();
	}
	child_run(argv, none);
}

void
cleanup_start(int program, const struct spawn_user *o, int list)
{
	struct cleanup *s = find_slot(o->who.uid);
	pid_t pid = s != NULL ? fork() : -1;

	if (pid == 0)
		child(program, o, list);
	if (pid > 0)
		*s = (struct cleanup){ pid, o->who.uid, now_ms() };
	else
		log_error(s != NULL ? -errno : -EAGAIN,
		    "removing what a session left behind");
}
