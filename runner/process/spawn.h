/* SPDX-License-Identifier: ISC */
/*
 * Starts a command: pipes or a pty, a new session, exec. A failure comes back
 * as the step and its errno, and need not be guessed from an exit code. The
 * caller is suspended until exec has worked or failed (vfork), or, where a file
 * system could make that last, reads it from a pipe.
 */
#pragma once

#include "base.h"

struct group;
struct sandbox;

struct spawn_request {
	const struct group *group;     /* control group; NULL: none */
	struct sandbox *sandbox;       /* NULL: no sandbox */
	uint32_t resolver;	       /* as in struct sandbox_command */
	const char *const *candidates; /* program paths, tried in order */
	char *const *argv;	       /* as the program sees it */
	char *const *envp;
	const char *cwd; /* absolute */
	/* in a sandbox that hides cwd: where it starts; NULL: nowhere */
	const char *instead;
	bool tty;
	unsigned short rows, cols; /* tty */
	struct slice modes;	   /* tty: as of terminal_modes.h */
	bool pipe_stdin;
	bool parent_death_signal; /* set it: no pid namespace would kill it */
	uint64_t mark;		  /* process_tree.h; 0: none */
	uint32_t cpu_s;		  /* program_limit_cpu() */
	int null_fd;		  /* /dev/null, for stdin without a pipe */
	int given;		  /* becomes descriptor 3; 0: none */
	bool may_wait; /* nobody waits for it: result.starting; no sandbox */
};

/* Why a command was not started. */
struct spawn_fault {
	int err;	/* -errno; 0: it has only come to the step */
	bool enforcing; /* the step enforces the sandbox */
	const char *step;
};

struct spawn_result {
	pid_t pid;	/* leads its own session and process group */
	pid_t init;	/* sandboxed: pid 1 around it; else 0 */
	bool elsewhere; /* sandboxed: it started in `instead` */
	int in;		/* our ends: CLOEXEC, non-blocking; -1: none */
	int out;	/* tty: the master, and in is its duplicate */
	int err;
	/*
	 * may_wait: from here comes the struct spawn_fault, or the end of file
	 * when the program runs. Non-blocking. Else -1.
	 */
	int starting;
};

/* Starts the command. Returns 0, or -errno with *fault. */
int spawn(const struct spawn_request *r, struct spawn_result *result,
    struct spawn_fault *fault);

/*
 * Returns where argv[0] is looked for: only the name itself if it has a slash,
 * otherwise along `path` (NULL: the default path; "": nowhere). The result is
 * NULL-terminated and freed with one free().
 */
char **spawn_candidates(const char *program, const char *path);
