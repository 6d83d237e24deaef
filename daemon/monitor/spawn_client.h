/* SPDX-License-Identifier: ISC */
/*
 * The broker's side of the spawn channel: what it asks of root's execd, which
 * starts runners and keeps what the next broker needs. The broker waits for
 * each answer, and gives up if there is none: then it ends, and another one
 * goes on with the sessions.
 */
#ifndef SPAWN_CLIENT_H
#define SPAWN_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "cgroup.h"
#include "identity.h"

/* Finds the channel that root's execd has left. False: there is none. */
bool spawn_find(void);

/* Connects to root's execd, if that did not start us. 0 or -errno. */
int spawn_connect(const char *path);

/* The process of root's execd. */
pid_t spawn_root_pid(void);

/* Asks what the host gives. An enum exit_code, after printing what is wrong;
 * 0. *served: another broker has served before this one. */
int spawn_begin(bool *served);

/* Hears of ends of runners from now on, and of the end of root's execd, which
 * is the end of everything. 0 or -errno. */
int spawn_watch(void);

/* The largest number in the name of a session's control group so far. */
uint64_t spawn_groups_made(void);

struct control_kept;
struct session;

/*
 * A runner for the session, in a control group of its own whose directories
 * are the caller's; `own` is our end of its control channel, of which root
 * keeps a copy. Its pid, or -errno with the step that failed in step[64]:
 * -EOPNOTSUPP the identity's limits need a group and there is none.
 */
pid_t spawn_run(const struct session *s, int control_fd, int own,
    struct cgroup *cgroup, char *step);

/* The runner at that place of those that root keeps, and our end of its
 * control channel, the caller's. False: there are no more. */
bool spawn_kept(uint32_t index, struct control_kept *kept, int *own);

/* A user namespace for the sandboxes of that user; its descriptor is the
 * caller's. -errno with what failed in *step. */
int spawn_userns(uid_t uid, gid_t gid, const char **step);

/* Takes away what a killed runner left behind. */
void spawn_sweep(const struct identity *id, int list);

/* SIGKILL. */
void spawn_kill(pid_t runner);

/* A descriptor for the next broker under that name; -1: no more. Then one that
 * was left, the caller's, or -1. Without root's execd there is none. */
void spawn_store(const char *name, int fd);
int spawn_take(const char *name);

/* There is service, and whether another broker could go on with it. */
void spawn_serving(bool replaceable);

/* Everything ends, with this code. */
void spawn_stop(int exit_code);

#endif
