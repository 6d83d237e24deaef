/* SPDX-License-Identifier: ISC */
/*
 * Lets commands set the set-group-id bit on directories. A filter of system
 * calls cannot tell a directory from a program, and on a program this bit would
 * give the user's group to whoever starts it outside of the sandbox. So the
 * kernel hands each chmod(2) with this bit to the sandbox's proxy
 * (call_proxy.h). It opens the file, checks that it is a directory, and changes
 * the mode of what it opened.
 */
#ifndef CHMOD_PROXY_H
#define CHMOD_PROXY_H

#include <stdint.h>
#include <sys/types.h>

struct seccomp_data;

/* Carries out the call `id`. Returns 0 or -errno for the command. */
int chmod_proxy_take(uint64_t id, pid_t pid, const struct seccomp_data *data);

#endif
