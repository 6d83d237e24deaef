/* SPDX-License-Identifier: ISC */
/*
 * Which UNIX sockets with a path are those of a sandbox. The proxy finds the
 * socket that is bound to a file in the kernel's list, by device and inode. In
 * a network namespace of its own each socket of that list is the sandbox's, and
 * nothing else is asked. The list of the host's network has everybody's, so
 * there the socket must also be one that the proxy bound itself
 * (socket_calls.h): it keeps the cookie of each, a number that the kernel gives
 * to one socket and never again, while a name, and even the number of a file,
 * can become another's.
 *
 * The cookies are not asked for where the namespace decides. For them each
 * bind(2) has to be handed over, TCP's and those of abstract names, too, by a
 * proxy that may enter the roots of commands, and a server that was bound
 * before the latest OWN_SOCKETS_MAX sockets would become a stranger. A list
 * that is the sandbox's own needs none of that, and has no such limit.
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
 * the sandbox uses, which is that of the host or its own.
 */
int own_sockets_open(bool of_host);

/* Records a socket that was bound for a command. */
void own_sockets_add(int fd);

/*
 * Tells whether a socket of this sandbox is bound to the file that is open as
 * fd, whether it listens or not. As long as the file is open, no other file can
 * have its numbers. `pid` made the call. A file whose inode number has more
 * than 32 bits is nobody's, because the kernel's list cuts it.
 */
bool own_sockets_have(pid_t pid, int fd, const struct stat *st);

/*
 * Tells whether somebody has this abstract name, which begins with a NUL byte;
 * also if that cannot be found out.
 */
bool own_sockets_have_name(const char *name, size_t len);

#endif
