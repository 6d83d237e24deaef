/* SPDX-License-Identifier: ISC */
/*
 * The calls about sockets that the proxy (call_proxy.h) carries out for
 * commands: each connect(2) and, with the network of the host, each bind(2).
 * It takes a duplicate of the socket, copies the address once, and judges and
 * uses what it has copied. The command's own call is never let through.
 *
 * UNIX sockets are connected to those that were made in the same sandbox, and
 * to no others. A socket with a path is no part of a network namespace: whoever
 * sees the path can connect to a program outside, and tmux, ssh-agent,
 * gpg-agent and D-Bus do what they are asked. A filter of system calls sees
 * neither the address nor the family of a socket. So the proxy opens the path,
 * looks whether a socket of this sandbox is bound to what it has opened
 * (own_sockets.h), and connects to that. With the network of the host, a socket
 * is the sandbox's if the proxy bound it, and abstract names are refused.
 *
 * Other sockets are connected to everything but execd's own ports
 * (own_ports.h).
 *
 * A connect(2) that blocks waits in a table of the proxy, which serves the next
 * call meanwhile, and looks for the room of a listener and for signals
 * (call_signals.h).
 *
 * A server sees the proxy's pid as its peer (SO_PEERCRED); user and group are
 * the command's.
 *
 * Sources: seccomp_unotify(2), pidfd_getfd(2), sock_diag(7), unix(7).
 */
#ifndef SOCKET_CALLS_H
#define SOCKET_CALLS_H

#include <poll.h>
#include <sys/types.h>

#include "base.h"

struct call_proxy_means;
struct seccomp_data;

/*
 * How many calls wait at the same time: of one process, and of all of a
 * sandbox, if the limit of open files permits so many. The next one fails with
 * ENOBUFS, as connect(2) does where the kernel has no room. A call that need
 * not wait is carried out however many do.
 */
#define SOCKET_CALLS_OF_PROCESS	 1024
#define SOCKET_CALLS_WAITING_MAX 4096

/* How the proxy makes the child that binds a path. */
#define SOCKET_CALLS_CLONE (CLONE_VM | CLONE_VFORK | SIGCHLD)

/*
 * Called by the sandbox before the proxy starts, in the network namespace that
 * commands use: its own, or with `host` that of the host, then after
 * own_ports_take(). Sets m->diag, m->route and m->bind. They stay -1 and false
 * where this kernel lacks what the proxy needs: pidfd_getfd (Linux 5.6),
 * SO_NETNS_COOKIE (5.14), and, for UNIX sockets, sock_diag(7).
 */
void socket_calls_open(struct call_proxy_means *m, bool host);

/*
 * Called once by the proxy, before its filter. landlocked:
 * CALL_PROXY_LANDLOCK_FD is a ruleset for paths that are bound.
 */
void socket_calls_begin(bool landlocked);

/*
 * Gives a command the result of its call, 0 or -errno. Returns false if it does
 * not wait for that any more.
 */
typedef bool socket_calls_answer(uint64_t id, int err);

/*
 * Carries out connect(2) for the command that made the call `id`, and answers
 * it, now or in socket_calls_look().
 */
void socket_calls_connect(uint64_t id, pid_t pid,
    const struct seccomp_data *data, socket_calls_answer *answer);

/* Carries out bind(2) in the same way, and answers it now. */
void socket_calls_bind(uint64_t id, pid_t pid, const struct seccomp_data *data,
    socket_calls_answer *answer);

/*
 * Lists the sockets whose calls wait. Returns their number, and in *pause in
 * how many milliseconds the caller calls socket_calls_look() if none of them is
 * ready before; -1: nothing waits.
 */
size_t socket_calls_watch(
    struct pollfd pfds[SOCKET_CALLS_WAITING_MAX], int *pause);

/*
 * Looks after the calls that wait, and answers those that are decided. `pfds`
 * is as socket_calls_watch() left it, with what poll(2) found.
 */
void socket_calls_look(const struct pollfd pfds[SOCKET_CALLS_WAITING_MAX],
    socket_calls_answer *answer);

#endif
