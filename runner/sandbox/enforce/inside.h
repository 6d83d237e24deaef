/* SPDX-License-Identifier: ISC */
/*
 * Start of a process inside a sandbox's namespaces, from capabilities in a user
 * namespace to none at all, in one straight line (doc/sandbox.md C2).
 *
 * The sandbox clones a relay, which enters a new pid and mount namespace and
 * clones, as children of the runner (CLONE_PARENT), the init of the pid
 * namespace and then the command: so the runner reaps the command itself, and
 * killing the init kills all that is left of it.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "command_filter.h"
#include "command_landlock.h"
#include "sandbox_message.h"

/* What one sandbox has ready for all its processes. */
struct inside {
	struct sandbox_options options;
	struct command_filter filter, files_filter; /* the file helper's */
	bool landlock_only; /* no namespaces, and no capabilities in them */
	bool proc;	    /* mount one */
	bool terminals;	    /* there is a /dev/pts to mount over */
	bool network, restrict_files;
	struct command_landlock_place
	    *writable; /* for Landlock: in the view, and room for two
			* more; owned */
	size_t nwritable;
	unsigned landlock_abi; /* 0: none in force */
	int channel;	       /* to the runner: its end is the runner's */
};

/* Once, in the sandbox, for everything it will clone: limits, no_new_privs, an
 * empty bounding set, locked securebits, a keyring of its own. What can be
 * done once is not done per command. Without namespaces the bounding set and
 * securebits stay, which takes a capability to change: no_new_privs counts.
 * 0, or -errno with *step. */
int inside_prepare(const struct inside *in, const char **step);

/* What only commands are limited to, where no control group does it. */
int inside_limit_command(const struct sandbox_options *o);

/* fds are what came with the order SANDBOX_START. Fills *a. */
void inside_start(const struct inside *in, const struct sandbox_command *c,
    const int *fds, struct sandbox_answer *a);

/* The file helper: `channel` becomes its CONTROL_FD, and `run` does not
 * return. */
void inside_serve(const struct inside *in, int channel, void (*run)(void),
    struct sandbox_answer *a);

/* Gives every capability up and proves it. Only system calls. 0 or -errno. */
int inside_drop(void);

/* Pid 1 of a command's namespace: reaps orphans until it is killed, and takes
 * everything in the namespace along. Has no capability, no descriptor, and
 * hardly a system call. Says through the pipe `ready`, with one byte, that it
 * has come so far. */
void inside_init(bool parent_death_signal, int ready) __attribute__((noreturn));

#endif
