/* SPDX-License-Identifier: ISC */
/*
 * The system-call filter of a sandboxed command. It is a deny-list, because a
 * command can be any program. The sandbox compiles it once per session and
 * policy, and each command only loads it. Refused calls return an error, so
 * that programs that probe continue. Only a foreign calling convention (x32,
 * and i386 unless it is permitted) kills the process.
 *
 * Sources: seccomp(2), seccomp_rule_add(3), seccomp_export_bpf(3).
 */
#ifndef COMMAND_FILTER_H
#define COMMAND_FILTER_H

#include <stdbool.h>

struct sock_filter;

struct command_filter {
	struct sock_filter *code; /* owned */
	unsigned short len;	  /* number of instructions */
	unsigned int flags;	  /* of seccomp(2) */
};

struct command_filter_options {
	bool network; /* IP and routing netlink, of the host */
	/*
	 * Without network: the same, because the sandbox has a network
	 * namespace of its own that leads nowhere.
	 */
	bool loopback;
	/*
	 * With loopback: UNIX stream and seqpacket sockets, because the proxy
	 * (connect_proxy.h) carries out connect(2). This filter does not.
	 */
	bool own_unix;
	/*
	 * With network: all UNIX sockets. Without: only stream and seqpacket
	 * ones, because a datagram could be sent to any place without a
	 * connection.
	 */
	bool unix_allow;
	/*
	 * Tracing of other processes, for commands with a pid namespace of
	 * their own. No effect without a view.
	 */
	bool allow_ptrace;
	/*
	 * i386 programs. Their multiplexed calls (socketcall, ipc) are refused
	 * as a whole, because the arguments are in memory.
	 */
	bool allow_32bit;
	/* Set-id bits on files, and openat2, whose mode is in memory. */
	bool allow_setid;
	/*
	 * The proxy (chmod_proxy.h) answers chmod(2) with the set-group-id bit
	 * alone, so this filter does not refuse it.
	 */
	bool ask_setgid;
	/* Making and entering namespaces. Mounting is still refused. */
	bool allow_nested_userns;
	/*
	 * The command sees the host's file system, ipc and processes, so this
	 * filter refuses what Landlock does not handle.
	 */
	bool no_view;
	/* Refuses changing a file's mode by name; for the file helper. */
	bool no_chmod;
	bool log; /* refused calls are logged, if the kernel can */
};

/*
 * Returns 0, or -errno with nothing to clear (filter.h). Equal options give
 * equal code.
 */
int command_filter_compile(
    struct command_filter *f, const struct command_filter_options *o);

/*
 * Makes only the call seccomp(2), so it is safe in a child of vfork(2). The
 * filter applies to this thread and its children for ever, in addition to
 * earlier ones. The caller must have set no_new_privs and loads the filter
 * last, because it refuses the steps before. Returns 0 or -errno: -EACCES
 * without no_new_privs, -ENOSYS or -EINVAL if the kernel has no seccomp,
 * -ENOMEM.
 */
int command_filter_load(const struct command_filter *f);

/* Also accepts a filter that is all zero. */
void command_filter_clear(struct command_filter *f);

#endif
