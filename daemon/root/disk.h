/* SPDX-License-Identifier: ISC */
/*
 * Work on a path that the configuration names. The disk may be a server's or
 * FUSE, which need not answer, and root's execd must not wait for it. So a
 * child does the work, and is waited for until a deadline.
 */
#ifndef DISK_H
#define DISK_H

#include "control_spawn.h"

/* Runs in the child, which has no descriptor of ours. Returns a descriptor,
 * PLACE_NONE, or -errno, for some errors with the reason in found->why. */
typedef int disk_work(const void *arg, struct control_found *found);

/*
 * Returns what the work returned; a descriptor is the caller's. Returns
 * -ETIMEDOUT if the disk has not answered in time, or at once if it still owes
 * an answer for that path. Never returns -EBADMSG. Logs the path.
 */
int disk_do(const char *path, disk_work *work, const void *arg,
    struct control_found *found);

#endif
