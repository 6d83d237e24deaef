/* SPDX-License-Identifier: ISC */
/*
 * The runner's side of its sandboxes. There is one per policy in use, found
 * again by its plan. A sandbox may end at any time; what runs in its namespaces
 * continues.
 */
#pragma once

#include <sys/types.h>

#include "process_tree.h"
#include "queue.h"
#include "sandbox_message.h"

struct event_base;
struct group;

/*
 * The most sandboxes of one session. Of those that nobody uses, so many are
 * kept that they are not more than SANDBOXES_KEPT with the others.
 */
#define SANDBOXES_MAX  256
#define SANDBOXES_KEPT 16

/* The most directories of protected names that one session watches
 * (replaced.c). */
#define SANDBOX_WATCHES_MAX 4096

struct sandbox {
	struct sandbox_pool *pool;
	TAILQ_ENTRY(sandbox) link; /* sandbox_pool.sandboxes, last used first */
	struct reaper_watch watch;
	struct plan plan; /* owned */
	struct placeholders placeholders;
	int fd;
	/* owned: for each mount of the plan that of its directory, or not above
	 * 0; NULL: none is watched */
	int *watches;
	size_t nwatches;
	bool replaced;	/* the pool's on_replaced() was called */
	bool outdated;	/* the host has other mounts now (mounted.c) */
	unsigned users; /* processes, and file helpers with a request */
	unsigned helpers;
	unsigned landlock_abi; /* the kernel's; 0: it has none */
	bool landlock_empty;   /* it restricts nothing in this policy */
	bool landlock_only;    /* no view and no namespaces */
	bool no_proc;	       /* because none could have a /proc */
	bool loopback;	       /* a network namespace of its own */
	bool own_unix;	       /* UNIX sockets in it (socket_calls.h) */
	bool names;	       /* commands may have a resolver of their own */
	const char *tmpdir;    /* a directory of its own; NULL: none */
	/*
	 * The sandbox got a request and did not answer, so it is unknown
	 * whether the request was carried out.
	 */
	bool lost;
	int64_t wait_until_ms; /* while a request is not answered */
};

TAILQ_HEAD(sandbox_list, sandbox);

/* The host's mounts (mounted.c). */
struct sandbox_mounts {
	struct fs_mount *all; /* owned; NULL: not read yet */
	size_t count;
	unsigned changes; /* slow_paths_changes() by then */
	int watched;	  /* the table, for the loop; or -1 */
	struct event *changed, *tidy;
};

struct sandbox_pool {
	struct event_base *base;
	struct sandbox_list sandboxes;
	unsigned count;
	/* Asks to end the file helper in a sandbox; false: still needed. */
	bool (*give_up)(void *owner, const struct sandbox *n);
	/*
	 * Called when a protected path has another file, which whoever is in
	 * this sandbox can see. NULL: nothing is watched.
	 */
	void (*on_replaced)(
	    void *owner, const struct sandbox *n, const char *path);
	int changes_fd; /* inotify; -1: not yet */
	struct event *changed;
	bool told_unwatched; /* the log mentions what is not watched */
	struct sandbox_mounts mounts;
	void *owner;
	int userns;	    /* -1: each makes its own */
	int program;	    /* of the sandboxes; open until the end */
	char *const *homes; /* their environment, for file helpers */
	int own_ports;	    /* for own_ports_take(), the session's; -1: none */
	bool open_port;	    /* who reaches one of them starts commands */
	struct sandbox_options options;
	char step[SANDBOX_STEP_MAX]; /* the failed step of the latest failure */
	bool no_namespaces; /* none could be made for the latest sandbox */
};

void sandbox_pool_init(struct sandbox_pool *pool, struct event_base *base,
    int userns, int program, const struct sandbox_options *options,
    bool (*give_up)(void *owner, const struct sandbox *n), void *owner);
void sandbox_pool_clear(struct sandbox_pool *pool);

/* Opens the program `name`, such as "/execd-files", that lies beside the
 * runner's. Returns a descriptor, or -1. */
int sandbox_program(const char *name);

/* Later commands have these options. What runs goes on. */
void sandbox_pool_change(
    struct sandbox_pool *pool, const struct sandbox_options *options);

/*
 * Finds the sandbox of a plan or builds one. A new sandbox takes the content of
 * *plan. check: a sandbox that is found is asked whether its view is intact;
 * without it only sandbox_start() asks. landlock_only: a new one may do without
 * user namespaces if there are none. Returns 0 with *sandbox, which the pool
 * owns, or -errno, which is logged.
 */
int sandbox_get(struct sandbox_pool *pool, struct plan *plan, bool check,
    bool landlock_only, struct sandbox **sandbox);

/*
 * Starts a command in the sandbox and in a control group (NULL: none), with
 * `given` as its descriptor 3 if c->given, and waits until exec has worked or
 * failed. Returns 0 with *terminal, or -errno
 * with the answer's step. *terminal is the master of a terminal that the
 * sandbox made, which is the caller's, or -1. If the view was no longer intact,
 * the sandbox is stale afterwards, and another sandbox of the same plan may
 * work.
 */
int sandbox_start(struct sandbox *n, const struct sandbox_command *c,
    const int stdio[3], const struct group *group, int given, int *terminal,
    struct sandbox_answer *a);

/* Logs the step of an answer. With -ESTALE the step itself says what changed.
 */
void sandbox_log_error(int err, const char *step);

/*
 * Tells whether the sandbox ended without carrying out the latest request, so
 * the request may go to another sandbox.
 */
bool sandbox_is_stale(const struct sandbox *n);

/*
 * Starts a file helper in the sandbox, at the other end of the channel `fd`.
 * Returns 0, or -errno with the answer's step.
 */
int sandbox_start_files(struct sandbox *n, int fd, struct sandbox_answer *a);

/*
 * Makes a socket in the sandbox's network namespace (loopback.h) and hands it
 * out. It listens or connects there, whoever holds it: a helper outside serves
 * a port of the sandbox with a listening one; one that is not bound connects to
 * a port of a command. The namespace stays as long as a command, the sandbox or
 * such a socket is there. Commands of one policy share it (doc/sandbox.md C1).
 * With NULL instead of a sandbox the socket is the caller's own. Returns 0 with
 * *fd, which the caller owns; -EOPNOTSUPP if the sandbox has no network
 * namespace of its own (n->loopback); -ESTALE if its process has ended; or
 * another -errno, as loopback_socket() does. The call waits for the sandbox,
 * which answers within milliseconds.
 */
int sandbox_socket(struct sandbox *n, const struct loopback_socket *s, int *fd);

/* Makes several in a sandbox, at most LOOPBACK_SOCKETS_MAX, or none. */
int sandbox_sockets(
    struct sandbox *n, const struct loopback_socket *s, size_t count, int *fds);

enum sandbox_use {
	SANDBOX_USE_READS,  /* a request that makes no file */
	SANDBOX_USE_MAKES,  /* one that may */
	SANDBOX_USE_STARTS, /* a command: sandbox_start() covers */
};

/*
 * sandbox_use() is called before a process or a request of a helper runs in the
 * sandbox. The placeholders are made and covered, if needed. Returns 0, or
 * -errno with the failed step in the pool, and then nothing may run.
 * sandbox_release() is called when everything of that user has ended; with the
 * last user the placeholders go.
 */
int sandbox_use(struct sandbox *n, enum sandbox_use use);
void sandbox_release(struct sandbox *n);

/* --- shared by sandbox.c, mounted.c and replaced.c ---------------------- */

void sandbox_mounts_init(struct sandbox_mounts *t);
void sandbox_mounts_clear(struct sandbox_mounts *t);

/* Compares the host's mounts, if they have changed by the latest call of
 * slow_paths_now(). */
void sandbox_pool_look(struct sandbox_pool *pool);

/* Lets go of what is outdated or too much soon, and the second does it now. */
void sandbox_pool_tidy(struct sandbox_pool *pool);
void sandbox_pool_let_go(struct sandbox_pool *pool);

/*
 * Checks the view: what was replaced on the disk is no longer protected in it.
 * A sandbox whose view is not intact is retired, and one that has ended is not
 * intact.
 */
bool sandbox_is_intact(struct sandbox *n);

/* Makes the pool watch, if it is told of what was replaced. */
void sandbox_pool_watch(struct sandbox_pool *pool);

/* Watches what the plan protects, before the view is built. */
void sandbox_watch(struct sandbox *n);
void sandbox_unwatch(struct sandbox *n);
