/* SPDX-License-Identifier: ISC */
/*
 * The runner's side of its sandboxes: one per policy in use, found again by its
 * plan. A sandbox may end at any time; what runs in its namespaces goes on.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <event2/event_struct.h>
#include <sys/types.h>

#include "queue.h"
#include "reaper.h"
#include "sandbox_message.h"

struct event_base;
struct group;
struct session;

/* Sandboxes of one session at a time; the one that was not used for longest
 * makes room. */
#define SANDBOXES_MAX 16

struct sandbox {
	struct sandbox_pool *pool;
	TAILQ_ENTRY(sandbox) link; /* session.nests, last used first */
	struct reaper_watch watch;
	struct plan plan;		  /* owned */
	struct placeholder *placeholders; /* owned */
	size_t nmasks;
	bool noted;	     /* they are on the list, if there is one */
	bool covered;	     /* taken, and covered in the view */
	struct event linger; /* until they are given up, without users */
	int fd;
	unsigned users; /* processes, and helpers with a request */
	unsigned helpers;
	unsigned landlock_abi; /* in force; 0: none */
	bool landlock_only;    /* there is no view, nor a namespace */
	/* It read an order and ended without an answer: whether the order was
	 * carried out is unknown. */
	bool lost;
};

TAILQ_HEAD(sandbox_list, sandbox);

struct sandbox_pool {
	struct event_base *base;
	struct sandbox_list sandboxes;
	unsigned count;
	/* The helper in a sandbox is not needed any more; false: it is. */
	bool (*give_up)(void *owner, const struct sandbox *n);
	/* Placeholders are about to be made: the key for their marks. NULL:
	 * nobody keeps a list, and nobody gives a key. */
	const struct siphash_key *(*note)(
	    void *owner, const struct placeholder *placeholders, size_t n);
	const struct siphash_key *key;
	void *owner;
	int userns;	    /* -1: each makes its own */
	char *const *homes; /* environment of each, for its file helpers */
	struct sandbox_options options;
	char step[SANDBOX_STEP_MAX]; /* what the latest failure was of */
	bool no_userns;		     /* it was for want of user namespaces */
};

void sandbox_pool_init(struct sandbox_pool *pool, struct event_base *base,
    int userns, const struct sandbox_options *options,
    bool (*give_up)(void *owner, const struct sandbox *n), void *owner);
void sandbox_pool_clear(struct sandbox_pool *pool);

/*
 * The sandbox of a plan, which is taken over: an old one, or one that is built
 * now. check: it is asked whether its view is intact; sandbox_start() asks
 * anyway. landlock_only: a new one may do without user namespaces where there
 * are none. 0; or -errno, with what failed in the log.
 */
int sandbox_get(struct sandbox_pool *pool, struct plan *plan, bool check,
    bool landlock_only, struct sandbox **sandbox);

/* Starts a command in it, and in a control group (NULL: none); waits
 * until exec has worked or failed. A command with a terminal may open one of
 * its own instead of stdio's: its master is in *terminal then, and is the
 * caller's; else *terminal is -1. 0, or -errno with the answer's step. When
 * its view was not intact any more it is stale from then on: another sandbox of
 * the same plan may do. */
int sandbox_start(struct sandbox *n, const struct sandbox_command *c,
    const int stdio[3], const struct group *group, int *terminal,
    struct sandbox_answer *a);

/* It ended, and did not carry out the latest order: another sandbox may be
 * given the same order. */
bool sandbox_is_stale(const struct sandbox *n);

/* Starts a file helper in it, on the other end of the channel `fd`. */
int sandbox_start_files(struct sandbox *n, int fd, struct sandbox_answer *a);

/* Before somebody runs in it: its placeholders are made and covered if nobody
 * did so. 0 or -errno, then nobody may. And when everything of his is gone:
 * then placeholders that nobody needs stay for a moment, for the next one. */
int sandbox_use(struct sandbox *n);
void sandbox_release(struct sandbox *n);

/* Placeholders that nobody needs are in the way of others: those of all
 * sandboxes but `n` (NULL: of all) go now. */
void sandbox_pool_unmask(struct sandbox_pool *pool, const struct sandbox *n);

/* For sandbox.c: of a new sandbox and one that is freed; and whether the
 * placeholders in the view are those that the plan saw. */
void sandbox_masks_init(struct sandbox *n);
void sandbox_masks_clear(struct sandbox *n);
bool sandbox_masks_are(const struct sandbox *n, const struct plan *plan);

/* For sandbox_placeholders.c: an order and its answer. 0 or -errno. */
int sandbox_ask(struct sandbox *n, struct buf *order, const int *fds,
    size_t nfds, struct sandbox_answer *a);

#endif
