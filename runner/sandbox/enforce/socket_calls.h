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
 * (own_sockets.c), and connects to that. With the network of the host, a socket
 * is the sandbox's if the proxy bound it, and abstract names are refused.
 *
 * No socket is made in the host's /tmp, where programs outside would find it. A
 * bind(2) there makes one in the sandbox's own directory, and a link to it.
 *
 * Other sockets are connected to everything but execd's own ports
 * (own_ports.h).
 *
 * A connect(2) that blocks waits in a table of the proxy, which serves the next
 * call meanwhile, and looks for the room of a listener and for signals
 * (call_signals.c).
 *
 * A server sees the proxy's pid as its peer (SO_PEERCRED); user and group are
 * the command's.
 *
 * Sources: seccomp_unotify(2), pidfd_getfd(2), sock_diag(7), unix(7).
 */
#pragma once

#include <linux/seccomp.h>

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
 * Called once by the proxy, before its filter. The descriptors of *m are in
 * their places.
 */
void socket_calls_begin(const struct call_proxy_means *m);

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

/* --- call_signals.c ----------------------------------------------------- */

/*
 * What signals do to a call that the proxy carries out (call_proxy.h). The
 * kernel waits for the proxy's answer in the place of the call. A signal that
 * comes before the proxy has taken the call up lets the kernel begin it again,
 * which nobody notices. After that, since Linux 5.19, only a signal that kills
 * ends the wait (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), so that a call which
 * the proxy has begun is carried out once, however many signals come. Two
 * things follow from this.
 *
 * A call that waits for somebody else, as connect(2) does, would hold back each
 * signal until then. So the proxy looks for signals itself, and lets the kernel
 * end such a call as it does where there is no proxy.
 *
 * Before Linux 5.19 each signal ends the wait, and up to 6.16 one that comes
 * just before the call is taken up can. Then the call is begun again although
 * it was carried out. What is done for a socket cannot be done twice, so the
 * latest answers are kept for the next time. A pair of sockets is made anew
 * there, and the first one stays open in the command.
 *
 * Sources: seccomp_unotify(2), signal(7), proc_pid_status(5).
 */

/*
 * Two calls are the same if one thread makes both of them, at one place of its
 * program, with equal arguments, one socket and one address.
 */
struct call_made {
	pid_t pid; /* the thread */
	struct seccomp_data call;
	struct sockaddr_storage asked; /* the address that it gave */
	uint64_t socket; /* its cookie, which is never another's; 0: none */
};

struct call_answer {
	struct call_made made;
	int err;
	bool heard; /* false: the thread had gone from its call by then */
};

/* Keeps the answer to a call that was carried out. */
void call_signals_keep(const struct call_made *made, int err, bool heard);

/* Returns the kept answer to the same call, or NULL. It is valid until the next
 * call of call_signals_keep(). */
const struct call_answer *call_signals_find(const struct call_made *made);

/*
 * Tells whether a signal is to end a call that waits. `process` is the thread
 * group of `pid`. timed: SO_SNDTIMEO limits the wait. Returns 0, or what the
 * proxy answers: -EINTR, or the kernel's own -ERESTARTSYS, which begins the
 * call again after the signal if the handler says so (SA_RESTART), there is
 * none, or the process was only stopped.
 */
int call_signals_interrupt(pid_t pid, pid_t process, bool timed);

/* --- own_sockets.c ------------------------------------------------------ */

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
