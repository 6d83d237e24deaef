/* SPDX-License-Identifier: ISC */
/*
 * Starts a process inside a sandbox's namespaces. The process begins with
 * capabilities in a user namespace and ends with none, in one straight line
 * (doc/sandbox.md C2).
 *
 * The sandbox clones an intermediate process. It enters a new pid and mount
 * namespace and clones the init of the pid namespace and then the command. Both
 * are children of the runner (CLONE_PARENT): the runner reaps the command
 * itself, and killing the init kills everything that is left of the command.
 */
#pragma once

#include "command_filter.h"
#include "sandbox_message.h"

/* What a sandbox prepares once for all its processes. */
struct inside {
	struct sandbox_options options;
	struct command_filter filter, files_filter; /* the file helper's */
	bool landlock_only; /* no namespaces, so no capabilities in them */
	bool proc;	    /* mount a /proc for each process */
	bool terminals;	    /* the view has a /dev/pts to mount over */
	bool shares;	    /* later mounts in the view reach file helpers */
	bool network, restrict_files;
	bool loopback;	   /* a network namespace of its own (loopback.h) */
	bool own_unix;	   /* UNIX sockets have a proxy (socket_calls.h) */
	bool guards_ports; /* execd's own are out of reach (own_ports.h) */
	struct command_landlock_place
	    *writable; /* owned; places for Landlock, in the view, with room for
			  two more */
	size_t nwritable;
	unsigned landlock_abi; /* of the kernel; 0: it has none */
	bool landlock_empty;   /* and nothing to restrict in this policy */
	bool shows_group;      /* each command its own (view_mount_group()) */
	int channel;	       /* to the runner; it ends with the runner */
};

/* Tells whether nothing of its policy is for this ABI of Landlock. */
bool inside_needs_no_landlock(const struct inside *in);

/*
 * Makes the Landlock ruleset under which the proxy binds sockets to paths for
 * commands. Returns a descriptor that the caller owns, or -ENOMSG if Landlock
 * restricts no files here, or another -errno.
 */
int inside_sockets_ruleset(const struct inside *in);

/*
 * Prepares the sandbox once for every process that it will clone: resource
 * limits, an empty bounding set, locked securebits, no_new_privs and a keyring
 * of its own. Without namespaces the bounding set and securebits stay as they
 * are, because only a capability could change them; no_new_privs protects then.
 * Returns 0, or -errno with *step.
 */
int inside_prepare(const struct inside *in, const char **step);

/*
 * Starts a command whose view covers the placeholders. fds are descriptors that
 * came with SANDBOX_START; the caller keeps them. Fills *a.
 */
void inside_start(const struct inside *in, const struct sandbox_command *c,
    const struct plan *placeholders, const int *fds, struct sandbox_answer *a);

/*
 * Starts the file helper: `channel` becomes its CONTROL_FD, `lists` (-1: none)
 * its PLACEHOLDERS_FD, and `run` does not return. Fills *a.
 */
void inside_serve(const struct inside *in, int channel, int lists,
    void (*run)(void), struct sandbox_answer *a);

/*
 * The terminal of a sandboxed command.
 */

/*
 * Receives the master at the other end, without waiting. Returns a descriptor
 * that the caller owns, or -1 if none was sent.
 */
int inside_terminal_take(int from);

/*
 * Gives up every capability and proves it. Makes only system calls. Returns 0
 * or -errno.
 */
int inside_drop(void);

/* --- inside_init.c ------------------------------------------------------ */

/*
 * Runs as pid 1 of a command's namespace: it reaps orphans until it is killed,
 * and everything in the namespace dies with it. It has no capability, no
 * directory and almost no system call. It writes one byte to the pipe `ready`
 * when it is locked down.
 */
void inside_init(const struct inside *in, int ready) __attribute__((noreturn));
