/* SPDX-License-Identifier: ISC */
/*
 * The proxy of a sandbox: a process beside it that carries out calls of
 * commands which a filter cannot judge, because it sees no memory
 * (seccomp_unotify(2)). These are chmod(2) with the set-group-id bit,
 * connect(2) and bind(2) (socket_calls.h), and socket(2) and socketpair(2) of
 * UNIX datagram sockets. The command's own call is never let through. If the
 * proxy is gone, the calls fail with ENOSYS.
 *
 * A filter of system calls cannot tell a directory from a program, and on a
 * program the set-group-id bit would give the user's group to whoever starts it
 * outside of the sandbox. The proxy opens the file, checks that it is a
 * directory, and changes the mode of what it opened.
 *
 * A datagram socket can send to any socket whose path it names, so the proxy
 * makes one of SOCK_SEQPACKET instead. A pair of them keeps the borders of
 * messages, too. One alone finds nobody to send to, as where no syslog runs:
 * programs that look for it then go on, and many end if they get no socket.
 *
 * It trusts no command. It may look into commands (CAP_SYS_PTRACE in the
 * sandbox's user namespace) and, where it binds sockets for them, enter their
 * roots (CAP_SYS_CHROOT), and has no other privilege.
 */
#pragma once

#include "base.h"

/* The proxy's descriptors, for its parts. */
enum {
	CALL_PROXY_SANDBOX_FD,
	CALL_PROXY_PROC_FD, /* a /proc that shows the commands and the proxy */
	/* Of struct call_proxy_means. A socket of the commands' network in any
	 * case, if connect(2) is handed over. */
	CALL_PROXY_DIAG_FD,
	CALL_PROXY_LISTENER_FD,
	CALL_PROXY_ROUTE_FD,	/* as in struct call_proxy_means, if given */
	CALL_PROXY_LANDLOCK_FD, /* likewise */
	CALL_PROXY_FDS,
};

/* What the proxy is to do, and what it needs for that. Nothing is owned. */
struct call_proxy_means {
	int proc;    /* a /proc that shows the commands; -1: no proxy */
	int diag;    /* lists UNIX sockets (own_sockets.c), or -1 */
	int route;   /* guards execd's ports (own_ports.h), or -1 */
	int ruleset; /* Landlock for paths that are bound, or -1 */
	bool bind;   /* bind(2) is handed over */
	bool chmod;  /* chmod(2) with the set-group-id bit is */
	/* Connections come from their command's block (redirect.h). */
	bool redirected;
};

/* Without either, connect(2) is not handed over. */
static inline bool
call_proxy_connects(const struct call_proxy_means *m)
{
	return m->diag >= 0 || m->route >= 0;
}

/*
 * Starts the proxy for the caller and everything that it starts afterwards. The
 * caller must have set no_new_privs. Returns 0 with *there, or -errno. *there
 * is false if the kernel or whoever started execd does not permit such a
 * filter; then nothing has changed.
 */
int call_proxy_start(const struct call_proxy_means *m, bool *there);

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

/*
 * Opens with O_PATH where a link of the command's /proc directory leads, "root"
 * for example. Returns a descriptor or -errno.
 */
int call_proxy_open_link(pid_t pid, const char *link);

/*
 * Reads a thread's /proc/PID/status, of which the line of groups may be long.
 * Returns 0 or -ESRCH.
 */
#define CALL_PROXY_STATUS_BYTES 8192
struct call_proxy_status {
	char text[CALL_PROXY_STATUS_BYTES + 1];
};
int call_proxy_status_read(struct call_proxy_status *s, pid_t pid);

/*
 * Returns a number of it. `field` is its name, with the line end before it and
 * the colon behind it. 0: there is none.
 */
uint64_t call_proxy_status_get(
    const struct call_proxy_status *s, const char *field, int base);
