/* SPDX-License-Identifier: ISC */
/*
 * Work that may never end: on a path that the configuration names, whose disk
 * may be a server's or FUSE and need not answer, and to close what the broker
 * may have sent. A child does it and tells the broker itself, so that root's
 * execd waits for nobody.
 */
#pragma once

#include "control_spawn.h"

/* Runs in the child, which has no descriptor of ours but those that it is
 * given. Returns a descriptor, PLACE_NONE, or -errno, for some errors with the
 * reason in found->why. */
typedef int disk_work(const void *arg, struct control_found *found);

/* Where the child has `own`, which may be -1. */
#define DISK_OWN 1

/*
 * Returns the channel on which the child says what the work returned (struct
 * control_found), with the descriptor. It is the caller's. Returns -ETIMEDOUT
 * if the disk still owes an answer for that path, or -errno.
 */
int disk_do(const char *path, disk_work *work, const void *arg, int own);

/* Receives a message. One that brings descriptors stays unread, because to
 * close them may take as long as their sender likes (SO_LINGER, FUSE). Returns
 * the number of bytes, 0 at the end, -EBADMSG for such a message, whose
 * beginning is in p, or another -errno. */
ssize_t disk_receive(int fd, void *p, size_t cap);

/* Closes a channel on which descriptors may wait to be received. */
void disk_close(int channel);

/* Reaps children that have ended. Returns whether some have not. */
bool disk_is_busy(void);
