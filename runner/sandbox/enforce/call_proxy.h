/* SPDX-License-Identifier: ISC */
/*
 * The proxy of a sandbox: a process beside it that carries out calls of
 * commands which a filter cannot judge, because it sees no memory
 * (seccomp_unotify(2)). These are chmod(2) with the set-group-id bit and, where
 * the network is restricted or execd has an open port, connect(2)
 * (connect_proxy.h). The command's own
 * call is never let through. If the proxy is gone, the calls fail with ENOSYS.
 *
 * A filter of system calls cannot tell a directory from a program, and on a
 * program the set-group-id bit would give the user's group to whoever starts it
 * outside of the sandbox. The proxy opens the file, checks that it is a
 * directory, and changes the mode of what it opened.
 *
 * It trusts no command, may look into commands (CAP_SYS_PTRACE in the
 * sandbox's user namespace), and has no other privilege.
 */
#ifndef CALL_PROXY_H
#define CALL_PROXY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The proxy's descriptors, for its parts. */
enum {
	CALL_PROXY_SANDBOX_FD,
	CALL_PROXY_PROC_FD, /* a /proc that shows the commands and the proxy */
	CALL_PROXY_DIAG_FD, /* of connect_proxy_open(), or a second PROC_FD */
	CALL_PROXY_LISTENER_FD,
};

/*
 * Starts the proxy for the caller and everything that it starts afterwards. The
 * caller must have set no_new_privs. `proc` is a /proc that shows the commands.
 * `diag` is of connect_proxy_open(); -1: connect(2) is not handed over. chmod:
 * chmod(2) with the set-group-id bit is. Returns 0 with *there, or -errno.
 * *there is false if the kernel or whoever started execd does not permit such a
 * filter; then nothing has changed.
 */
int call_proxy_start(int proc, int diag, bool chmod, bool *there);

/* Tells whether the caller has started a proxy and it has ended. */
bool call_proxy_is_gone(void);

/*
 * Opens a path with O_PATH in the view, relative to `directory` (as above).
 * Links of /proc are followed only where the whole path is /proc/self/fd/N.
 * `flags` is 0 or O_NOFOLLOW. Returns a descriptor or -errno.
 */
int call_proxy_open(pid_t pid, int directory, const char *path, int flags);

/*
 * Tells whether the same process still waits for the answer to a call; its
 * number may have been reused.
 */
bool call_proxy_is_awaited(uint64_t id);

/* Returns the pid of the process of a thread, or 0. */
pid_t call_proxy_leader(pid_t pid);

#endif
