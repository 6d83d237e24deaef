/* SPDX-License-Identifier: ISC */
/*
 * Start of a command: pipes or a pty, session keeping, exec. The caller is
 * suspended until exec has worked or failed (vfork), so a failure comes back
 * as the step and its errno, never as an exit code to guess from.
 */
#ifndef SPAWN_H
#define SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct group;
struct sandbox;

struct spawn_request {
	const struct group *group;     /* control group; NULL: none */
	struct sandbox *sandbox;       /* NULL: no sandbox */
	const char *const *candidates; /* program paths to try, in order */
	char *const *argv;	       /* as the program sees it */
	char *const *envp;
	const char *cwd; /* absolute */
	bool tty;
	unsigned short rows, cols; /* tty */
	bool pipe_stdin;
	bool parent_death_signal; /* no pid namespace would kill it */
	uint64_t mark;		  /* process_tree.h; 0: none */
	int null_fd;		  /* /dev/null, for stdin without a pipe */
};

struct spawn_result {
	pid_t pid;	/* leads its own session and process group */
	pid_t init;	/* sandboxed: pid 1 around it; else 0 */
	bool enforcing; /* what failed enforces the sandbox */
	int in;		/* our ends: CLOEXEC, non-blocking; -1: none */
	int out;	/* tty: in is a duplicate of out, the master */
	int err;
};

/* 0, or -errno of the step that failed; *step names it for the log. */
int spawn(const struct spawn_request *r, struct spawn_result *result,
    const char **step);

/*
 * Where argv[0] is looked for: itself when it has a slash, else along `path`
 * (NULL: the default path; "": nowhere). A NULL-terminated vector that is
 * freed with one free().
 */
char **spawn_candidates(const char *program, const char *path);

#endif
