/* SPDX-License-Identifier: ISC */
/*
 * Which UNIX sockets with a path are those of a sandbox. In a network namespace
 * of its own these are all that the kernel lists. In that of the host these are
 * the ones that the proxy bound itself (connect_proxy.h): it keeps the cookie
 * of each, a number that the kernel gives to one socket and never again, while
 * a name, and even the number of a file, can become another's.
 *
 * Runs in the proxy's process (call_proxy.h) and uses its descriptors.
 *
 * Sources: sock_diag(7), unix(7), SO_COOKIE in socket(7).
 */
#ifndef OWN_SOCKETS_H
#define OWN_SOCKETS_H

#include <stdbool.h>
#include <sys/types.h>

struct stat;

/*
 * The latest of so many sockets that were bound are known. A server that was
 * bound before all of them is a stranger.
 */
#define OWN_SOCKETS_MAX 65536

/*
 * Returns a descriptor for CALL_PROXY_DIAG_FD, which the caller owns, or -1 if
 * this kernel does not list UNIX sockets. Called in the network namespace that
 * the sandbox uses.
 */
int own_sockets_open(void);

/* Records a socket that was bound for a command. */
void own_sockets_add(int fd);

/*
 * Tells whether a socket of this sandbox is bound to the file that is open as
 * fd, whether it listens or not. As long as the file is open, no other file can
 * have its numbers. `pid` made the call. listed: all that the kernel lists
 * count. A file whose inode number has more than 32 bits is nobody's, because
 * the kernel's list cuts it.
 */
bool own_sockets_have(pid_t pid, int fd, const struct stat *st, bool listed);

/*
 * Tells whether somebody has this abstract name, which begins with a NUL byte;
 * also if that cannot be found out.
 */
bool own_sockets_have_name(const char *name, size_t len);

#endif
