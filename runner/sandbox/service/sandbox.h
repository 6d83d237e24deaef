/*
 * The runner's side of its nests: one per policy in use, found again by its
 * plan. A nest may end at any time; what runs in its namespaces goes on.
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

/* Nests of one session at a time; the one that was not used for longest makes
 * room. */
#define NESTS_MAX 16

struct nest {
	struct nest_pool *pool;
	TAILQ_ENTRY(nest) link; /* session.nests, last used first */
	struct reaper_watch watch;
	struct plan plan;   /* owned */
	struct mask *masks; /* owned */
	size_t nmasks;
	bool noted;	     /* they are on the list, if there is one */
	bool covered;	     /* taken, and covered in the view */
	struct event linger; /* until they are given up, without users */
	int fd;
	unsigned users; /* processes, and helpers with a request */
	unsigned helpers;
	unsigned landlock_abi; /* in force; 0: none */
	bool landlock_only;    /* there is no view, nor a namespace */
};

TAILQ_HEAD(nest_list, nest);

struct nest_pool {
	struct event_base *base;
	struct nest_list nests;
	unsigned count;
	/* The helper in a nest is not needed any more; false: it is. */
	bool (*give_up)(void *owner, const struct nest *n);
	/* Masks are about to be made: the key for their marks. NULL: nobody
	 * keeps a list, and nobody gives a key. */
	const struct siphash_key *(*note)(
	    void *owner, const struct mask *masks, size_t n);
	const struct siphash_key *key;
	void *owner;
	int door;	    /* -1: each makes its own */
	char *const *homes; /* environment of each, for its file helpers */
	struct nest_options options;
	char step[NEST_STEP_MAX]; /* what the latest failure was of */
	bool no_userns;		  /* it was for want of user namespaces */
};

void nest_pool_init(struct nest_pool *pool, struct event_base *base, int door,
    const struct nest_options *options,
    bool (*give_up)(void *owner, const struct nest *n), void *owner);
void nest_pool_clear(struct nest_pool *pool);

/*
 * The nest of a plan, which is taken over: an old one, or one that is built
 * now. check: it is asked whether its view is intact; nest_start() asks
 * anyway. landlock_only: a new one may do without user namespaces where there
 * are none. 0; or -errno, with what failed in the log.
 */
int nest_get(struct nest_pool *pool, struct plan *plan, bool check,
    bool landlock_only, struct nest **nest);

/* Starts a command in it, and in a control group (NULL: none); waits
 * until exec has worked or failed. A command with a terminal may open one of
 * its own instead of stdio's: its master is in *terminal then, and is the
 * caller's; else *terminal is -1. 0, or -errno with the answer's step. When
 * its view was not intact any more it is stale from then on: another nest of
 * the same plan may do. */
int nest_start(struct nest *n, const struct nest_command *c, const int stdio[3],
    const struct group *group, int *terminal, struct nest_answer *a);

bool nest_is_stale(const struct nest *n);

/* Starts a file helper in it, on the other end of the channel `fd`. */
int nest_start_files(struct nest *n, int fd, struct nest_answer *a);

/* Before somebody runs in it: its masks are made and covered if nobody did
 * so. 0 or -errno, then nobody may. And when everything of his is gone: then
 * masks that nobody needs stay for a moment, for the next one. */
int nest_use(struct nest *n);
void nest_release(struct nest *n);

/* Masks that nobody needs are in the way of others: those of all nests but
 * `n` (NULL: of all) go now. */
void nest_pool_unmask(struct nest_pool *pool, const struct nest *n);

/* For sandbox.c: of a new nest and one that is freed; and whether the masks in
 * the view are those that the plan saw. */
void nest_masks_init(struct nest *n);
void nest_masks_clear(struct nest *n);
bool nest_masks_are(const struct nest *n, const struct plan *plan);

/* For sandbox_placeholders.c: an order and its answer. 0 or -errno. */
int nest_ask(struct nest *n, struct buf *order, const int *fds, size_t nfds,
    struct nest_answer *a);

#endif
