/* SPDX-License-Identifier: ISC */
/*
 * Lets commands connect to UNIX sockets that were made in their own sandbox,
 * and to no others. A socket with a path is no part of a network namespace:
 * whoever sees the path can connect to a program outside, and tmux, ssh-agent,
 * gpg-agent and D-Bus do what they are asked. A filter of system calls sees
 * neither the address nor the family of a socket. So the kernel hands each
 * connect(2) of a sandbox to its proxy (call_proxy.h). The proxy takes a
 * duplicate of the socket, copies the address once, opens the path, looks
 * whether a socket of this sandbox is bound to what it has opened
 * (own_sockets.h), and connects the socket itself. The command's own call is
 * never let through.
 *
 * With the network of the host, a socket is the sandbox's if the proxy bound
 * it, so bind(2) is handed to it as well, and abstract names are refused. It
 * connects other sockets to everything but execd's own ports (own_ports.h).
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

struct call_proxy_means;
struct seccomp_data;

/* Calls that wait at the same time; the next one fails with EAGAIN. */
#define CONNECT_PROXY_WAITING_MAX 1024

/* How the proxy makes the child that binds a path. */
#define CONNECT_PROXY_CLONE (CLONE_VM | CLONE_VFORK | SIGCHLD)

/*
 * Called by the sandbox before the proxy starts, in the network namespace that
 * commands use: its own, or with `host` that of the host, then after
 * own_ports_take(). Sets m->diag, m->route and m->bind. They stay -1 and false
 * where this kernel lacks what the proxy needs: pidfd_getfd (Linux 5.6),
 * SO_NETNS_COOKIE (5.14), and, for UNIX sockets, sock_diag(7).
 */
void connect_proxy_open(struct call_proxy_means *m, bool host);

/* Tells whether CALL_PROXY_LANDLOCK_FD is a ruleset for paths that are bound.
 */
void connect_proxy_landlock(bool given);

/* Gives a command the result of its call, 0 or -errno. */
typedef void connect_proxy_answer(uint64_t id, int err);

/*
 * Carries out connect(2) for the command that made the call `id`, and answers
 * it, now or in connect_proxy_look().
 */
void connect_proxy_take(uint64_t id, pid_t pid, const struct seccomp_data *data,
    connect_proxy_answer *answer);

/* Carries out bind(2) in the same way, and answers it now. */
void connect_proxy_bind(uint64_t id, pid_t pid, const struct seccomp_data *data,
    connect_proxy_answer *answer);

/*
 * Lists the sockets whose calls wait. The caller calls connect_proxy_look()
 * when one of them is ready. Returns their number.
 */
size_t connect_proxy_watch(struct pollfd pfds[CONNECT_PROXY_WAITING_MAX]);

/*
 * Looks after the calls that wait, and answers those that are decided. Returns
 * in how many milliseconds it wants to be called again; -1: nothing waits.
 */
int connect_proxy_look(connect_proxy_answer *answer);

#endif
