/* SPDX-License-Identifier: ISC */
/*
 * Work that may never end: on a path that the configuration names, whose disk
 * may be a server's or FUSE and need not answer, and to close what the broker
 * may have sent. execd-child does it and tells the broker itself, so that
 * root's execd waits for nobody.
 */
#pragma once

#include "task.h"

/*
 * Starts the task, with a copy of `own` unless that is -1. Returns the channel
 * on which the child says what came of it (struct control_found, with a
 * descriptor). The caller owns the channel. Returns -ETIMEDOUT if the disk has
 * not answered an earlier task for that path, or -errno.
 */
int disk_do(enum task_kind kind, const struct control_place *place, int own);

/* Receives a message. One that brings descriptors stays unread, because to
 * close them may take as long as their sender likes (SO_LINGER, FUSE). Returns
 * the number of bytes, 0 at the end, -EBADMSG for such a message, whose
 * beginning is in p, or another -errno. */
ssize_t disk_receive(int fd, void *p, size_t cap);

/* Closes a channel on which descriptors may wait to be received. */
void disk_close(int channel);

/* Reaps children that have ended. Returns whether some have not. */
bool disk_reap(void);

/* Tells whether the child with that pid is one of them. */
bool disk_has(pid_t pid);
