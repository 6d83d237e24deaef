/* SPDX-License-Identifier: ISC */
/*
 * The broker's side of the spawn channel. Root's execd starts runners, and
 * keeps what the next broker needs. The broker waits for each answer. If there
 * is none, the broker ends, and another one takes over the sessions.
 */
#pragma once

#include "base.h"
#include "cgroup.h"
#include "control_spawn.h"
#include "identity.h"

/* Finds the channel that root's execd left to us. Returns false if there is
 * none. */
bool spawn_find(void);

/* Connects to root's execd if it did not start us. Returns 0 or -errno. */
int spawn_connect(const char *path);

/* Returns the pid of root's execd. */
pid_t spawn_root_pid(void);

/* Begins, with a mask of enum begin_flag. Returns 0, or an enum exit_code after
 * printing what is wrong with this host. */
int spawn_begin(uint32_t flags);

/* What root's execd says of itself and of us: whether it is root; whether a
 * broker has served before; whether one serves until our list is sealed. */
bool spawn_is_root(void);
bool spawn_has_served(void);
bool spawn_is_reload(void);

/* Descriptors of execd-http, execd-files and execd-netproxy, opened with
 * O_PATH. The last is -errno if it could not be opened. */
#define SPAWN_HELPERS 3
const int *spawn_helpers(void);

/* Returns what this broker leaves for the next one, which reads it as the last
 * one left it. Without root's execd nothing is kept. */
struct spawn_kept *spawn_keeps(void);

/* Returns the group around those of all identities; without groups it is not
 * open. */
const struct cgroup *spawn_sessions_group(void);

/* --- the list, before the first client ----------------------------------- */

/* From now on, or no longer: files are those of the current configuration, and
 * places are not sent to root. */
void spawn_past(bool past);
bool spawn_is_past(void);

/* Returns a descriptor of a copy of the file, which is the caller's. *mode is
 * the mode of the file, with COPY_OF_ROOTS if it is root's. Returns -errno on
 * an error, with the reason in found->why. */
int spawn_file(const char *path, mode_t *mode, struct control_found *found);

/* Sends the place to root and sets its number. *fd is what root opened, the
 * caller's, or -1. Returns 0 or -errno, for some errors with the reason in
 * found->why. */
int spawn_place(
    struct control_place *place, int *fd, struct control_found *found);

/* Seals the list, which has these users. After the return this broker is the
 * one that serves. */
void spawn_seal(
    struct identity *const *users, size_t n, const struct control_seal *seal);

/* The identity's user is in fewer groups than root knows. */
void spawn_narrow(const struct identity *id);

/* Returns a list as SPAWN_USER brings it (spawn_user.h), the caller's, or
 * -errno. */
int spawn_user_list(const struct identity *id);

/* --- afterwards ----------------------------------------------------------- */

/* From now on reports of ended runners arrive. The end of root's execd is the
 * end of everything. Returns 0 or -errno. */
int spawn_watch(void);

/* Tells whether root's execd does not answer: it has not asked for so long
 * whether this broker does. spawn_silent_at() returns when that will be so, if
 * it does not ask before. */
bool spawn_is_silent(int64_t now);
int64_t spawn_silent_at(void);

/* The numbers in the names of a session's groups. */
struct spawn_groups {
	uint64_t session, identity;
};

/*
 * Starts a runner for the session, in a control group of its own. *own becomes
 * our end of its control channel, of which root keeps a copy. It is the
 * caller's, and so are the directories of the group. Returns the pid, or -errno
 * with the step that failed in step[64]; -EOPNOTSUPP means that the identity's
 * limits need a control group and there is none.
 */
pid_t spawn_run(const struct control_start *start, int *own,
    struct cgroup *cgroup, struct spawn_groups *groups, char *step);

/* Returns the runner with that index among those that root keeps, and our end
 * of its control channel, which is the caller's. Returns false if there are no
 * more. */
bool spawn_kept(uint32_t index, struct control_kept *kept, int *own);

/* Makes a user namespace for the sandboxes of that user. Returns its
 * descriptor, the caller's, or -errno with the step that failed in *step. */
int spawn_userns(const struct identity *id, const char **step);

/* Starts another program. `id` is whom it is there for, or NULL (enum
 * control_program_kind). Returns the pid, and in *own the other end of its
 * channel, the caller's, or -errno. */
pid_t spawn_program(
    enum control_program_kind kind, const struct identity *id, int *own);

/* spawn_open() opens the file or socket of records again. spawn_record() makes
 * a new file in a directory. Both return a descriptor, the caller's, or -errno.
 * After spawn_close() nobody listens at that place. */
int spawn_open(const struct control_place *place);
int spawn_record(uint32_t number, const char *directory, const char *name);
void spawn_close(uint32_t number);

/* Asks root to start another broker, which reads the configuration and replaces
 * this one. The event `reloaded` tells what came of it. */
void spawn_reload(void);

/* For that event, from the broker that read it: an enum exit_code, and what was
 * logged. */
void spawn_tell_reloaded(int code, const char *text);

/* Sends SIGKILL to a runner or program. */
void spawn_kill(pid_t pid);

/* Root need not tell the next broker of SIGTERM: spawn_keeps() has the times.
 */
void spawn_ending(void);

/* Tells root that this broker serves, and whether another broker could take
 * over from it. */
void spawn_serving(bool replaceable);

/* Everything ends, with this code. */
void spawn_stop(int exit_code);

/*
 * The user namespace (doc/design.md section 2) that belongs to the user of an
 * identity. A process of that user that has the descriptor may enter it, and
 * has capabilities there and nowhere else. This also works on hosts where
 * ordinary users may not make user namespaces.
 */

/* Starts the program without root's execd, after task_init(), and returns as
 * above. Only for root: for the doctor. */
int userns_open(uid_t uid, gid_t gid, const char **step);
