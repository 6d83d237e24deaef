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
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroup.h"
#include "identity.h"

/* Finds the channel that root's execd has left. False: there is none. */
bool spawn_find(void);

/* Connects to root's execd, if that did not start us. 0 or -errno. */
int spawn_connect(const char *path);

/* The process of root's execd. */
pid_t spawn_root_pid(void);

/* Begins. `check`: nothing is to be made. An enum exit_code, after printing
 * what is wrong with this host; 0. */
int spawn_begin(bool check);

/* What root's execd says of itself, and of us: a broker has served before, one
 * serves until our list is whole. execd-http, O_PATH. */
bool spawn_is_root(void);
bool spawn_has_served(void);
bool spawn_is_reload(void);
int spawn_http(void);

/* Who asked for the reload, the caller's, or -1. */
int spawn_reload_client(void);

/* --- the list, before the first client ----------------------------------- */

struct control_found;
struct control_place;
struct control_seal;

/* From now on files are those of the configuration in force, and paths are
 * nowhere. */
void spawn_past(bool past);

/* The file's content, which does not change any more; the descriptor is the
 * caller's. Or -errno with the reason in found->why. */
int spawn_file(const char *path, struct control_found *found);

/* Gives the place its number. *fd: what was opened, the caller's, or -1.
 * 0, or -errno, some with a reason in found->why. */
int spawn_place(
    struct control_place *place, int *fd, struct control_found *found);

/* The list is whole, with these users. When it returns, this is the broker. */
void spawn_seal(
    struct identity *const *users, size_t n, const struct control_seal *seal);

/* --- afterwards ----------------------------------------------------------- */

/* Hears of ends of runners from now on, and of the end of root's execd, which
 * is the end of everything. 0 or -errno. */
int spawn_watch(void);

/* The largest number in the name of a session's control group so far. */
uint64_t spawn_groups_made(void);

struct control_kept;
struct control_start;

/*
 * A runner for the session, in a control group of its own whose directories
 * are the caller's; `own` is our end of its control channel, of which root
 * keeps a copy. Its pid, or -errno with the step that failed in step[64]:
 * -EOPNOTSUPP the identity's limits need a group and there is none.
 */
pid_t spawn_run(const struct control_start *start, int control_fd, int own,
    struct cgroup *cgroup, char *step);

/* The runner at that place of those that root keeps, and our end of its
 * control channel, the caller's. False: there are no more. */
bool spawn_kept(uint32_t index, struct control_kept *kept, int *own);

/* A user namespace for the sandboxes of that user; its descriptor is the
 * caller's. -errno with what failed in *step. */
int spawn_userns(const struct identity *id, const char **step);

/* A program that hears strangers, or its helper (enum control_program_kind),
 * with its end of the control channel. Its pid or -errno. */
pid_t spawn_program(unsigned kind, int control_fd);

/* A place of records anew, and a new file in a directory: the caller's, or
 * -errno. Nobody listens at that place any more. */
int spawn_open(const struct control_place *place);
int spawn_record(uint32_t number, const char *name);
void spawn_close(uint32_t number);

/* Asks for another broker, which reads the configuration and takes the place of
 * this one. client: who asked, and is answered by it (ctl_socket.h), or -1. */
void spawn_reload(int client);

/* Takes away what a killed runner left behind. */
void spawn_cleanup(const struct identity *id, int list);

/* SIGKILL, for a runner or program. */
void spawn_kill(pid_t pid);

/* A descriptor for the next broker under that name; -1: no more. Then one that
 * was left, the caller's, or -1. Without root's execd there is none. */
void spawn_store(const char *name, int fd);
int spawn_take(const char *name);

/* There is service, and whether another broker could go on with it. */
void spawn_serving(bool replaceable);

/* Everything ends, with this code. */
void spawn_stop(int exit_code);

#endif
