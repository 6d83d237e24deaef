/* SPDX-License-Identifier: ISC */
/*
 * A session's own namespaces: its processes are numbered apart and see only
 * themselves in /proc; what is mounted there stays there.
 */
#ifndef NAMESPACES_H
#define NAMESPACES_H

#include <stdbool.h>
#include <sys/types.h>

/* Forks; `isolated` into new pid and mount namespaces. Only a program with one
 * thread may; the child goes on like after fork(2). The pid, 0 in the child, or
 * -errno. */
pid_t namespaces_fork(bool isolated);

/* In the child: mounts become one-way (what the host mounts later still
 * appears), /proc its own, and pids begin at a random place. 0, or -errno with
 * the step. */
int namespaces_enter(const char **step);

#endif
