/* SPDX-License-Identifier: ISC */
/*
 * Lets commands without a network connect to UNIX sockets that were made in
 * their own sandbox, and to no others. A socket with a path is no part of a
 * network namespace: whoever sees the path can connect to a program outside,
 * and tmux, ssh-agent, gpg-agent and D-Bus do what they are asked. A filter of
 * system calls sees neither the address nor the family of a socket. So the
 * kernel hands each connect(2) of a sandbox to its proxy (call_proxy.h). The
 * proxy takes a duplicate of the socket, copies the address once, opens the
 * path, looks whether a listener of this sandbox's network namespace is bound
 * to what it has opened, and connects the socket itself. The command's own call
 * is never let through.
 *
 * With the network of the host, the proxy connects the socket as well, to
 * everything but execd's own ports (own_ports.h).
 *
 * A server sees the proxy's pid as its peer (SO_PEERCRED); user and group are
 * the command's.
 *
 * Sources: seccomp_unotify(2), pidfd_getfd(2), sock_diag(7), unix(7).
 */
#ifndef CONNECT_PROXY_H
#define CONNECT_PROXY_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct seccomp_data;

/* What connect_proxy_take() returns while the call is not decided. */
#define CONNECT_PROXY_WAITS 1
/* Calls that wait at the same time; the next one fails with EAGAIN. */
#define CONNECT_PROXY_WAITING_MAX 256

/*
 * For the sandbox, in its own network namespace or, after own_ports_set(), in
 * that of the host: returns a descriptor for CALL_PROXY_DIAG_FD, which the
 * caller owns, or -1 if this kernel lacks what the proxy needs: pidfd_getfd
 * (Linux 5.6), SO_NETNS_COOKIE (5.14), or, for UNIX sockets, sock_diag(7).
 */
int connect_proxy_open(void);

/*
 * Carries out connect(2) for the command that made the call `id`. Returns 0 or
 * -errno for the command, or CONNECT_PROXY_WAITS.
 */
int connect_proxy_take(uint64_t id, pid_t pid, const struct seccomp_data *data);

/*
 * Lists the sockets whose calls wait. The caller calls connect_proxy_look()
 * when one of them is ready. Returns their number.
 */
size_t connect_proxy_watch(struct pollfd pfds[CONNECT_PROXY_WAITING_MAX]);

/*
 * Looks after the calls that wait, and answers those that are decided. Returns
 * in how many milliseconds it wants to be called again; -1: nothing waits.
 */
int connect_proxy_look(void (*answer)(uint64_t id, int err));

#endif
