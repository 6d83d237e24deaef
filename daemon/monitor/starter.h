/*
 * Runners are started here, or by a starter: `execd starter`, a program of its
 * own unit. systemd confines a unit with all that comes of it, and commands are
 * to be plain programs of their user: so the unit that hears the network is
 * confined and has no runners, and the one that has them hears the monitor
 * alone. Whatever the monitor asks, no runner is root.
 */
#ifndef STARTER_H
#define STARTER_H

#include <stdbool.h>
#include <sys/types.h>

#include "cgroup.h"
#include "identity.h"

struct monitor;

/* Connects to a starter and asks what the host gives. An enum exit_code, after
 * printing what is wrong; 0. */
int starter_connect(const char *path);

/* Hears from it from now on: ends of runners, and its own, which ends the
 * monitor. 0 or -errno. */
int starter_watch(void);

/* One that did not answer in time is waited for once: then the monitor ends,
 * and whoever starts it again connects it to another. */
void starter_check(struct monitor *m);

bool starter_is_used(void);

/*
 * A runner for the session, in a control group of its own whose directories
 * are the caller's. Its pid, or -errno: -EOPNOTSUPP the identity's limits need
 * a group and there is none.
 */
pid_t starter_run(const char *group, const struct identity *id, int control_fd,
    struct cgroup *cgroup);

/* The rest is done here if there is no starter. As door_open(),
 * sweep_start(), and kill(2) with SIGKILL of a runner. */
int starter_door(uid_t uid, gid_t gid, const char **step);
void starter_sweep(
    const struct monitor *m, const struct identity *id, int list);
void starter_kill(pid_t runner);

/* `execd starter`: serves the monitor on CONTROL_FD. Returns an enum
 * exit_code. */
int starter_serve(struct monitor *m);

#endif
