/* SPDX-License-Identifier: ISC */
/*
 * The system-call filter of a sandboxed command: a deny-list,
 * because a command is any program. Compiled once per session and policy in
 * the sandbox; each command only loads it. Errors answer, so that programs that
 * probe go on; only a foreign calling convention (x32, and i386 unless it is
 * permitted) kills the process.
 *
 * Sources: seccomp(2), seccomp_rule_add(3), seccomp_export_bpf(3).
 */
#ifndef COMMAND_FILTER_H
#define COMMAND_FILTER_H

#include <stdbool.h>

struct sock_filter;

struct command_filter {
	struct sock_filter *code; /* owned */
	unsigned short len;	  /* instructions */
	unsigned int flags;	  /* of seccomp(2) */
};

struct command_filter_options {
	bool network; /* IP and routing netlink; else no socket */
	/* With network: every UNIX socket. Without: stream sockets, as a
	 * datagram could be sent to any place without being connected. */
	bool unix_allow;
	/* Tracing of other processes, for commands that have a pid namespace
	 * of their own. Without effect where there is no view. */
	bool allow_ptrace;
	/* i386 programs; their multiplexed calls (socketcall, ipc), whose
	 * arguments are in memory, are refused whole. */
	bool allow_32bit;
	/* Set-id bits on files; openat2, whose mode is in memory. */
	bool allow_setid;
	/* Somebody else answers chmod(2) with the set-group-id bit alone
	 * (chmod_proxy.h): it is not refused here. */
	bool ask_setgid;
	/* Making and entering namespaces. Mounting stays refused. */
	bool allow_nested_userns;
	/* The command sees the host's file system, ipc and processes: what
	 * Landlock does not know is refused here. */
	bool no_view;
	/* No file is given another mode by its name: the file helper's. */
	bool no_chmod;
	bool log; /* refused calls go to the audit log, if the kernel has one */
};

/*
 * 0, or -errno and nothing to clear (filter.h). Equal options give equal code.
 */
int command_filter_compile(
    struct command_filter *f, const struct command_filter_options *o);

/*
 * Only seccomp(2): safe in a child of vfork(2). For this thread and its
 * children, for ever, on top of what is loaded already; the caller has set
 * no_new_privs and comes here last, as the filter refuses the steps before
 * it. 0, or -errno: -EACCES without no_new_privs, -ENOSYS or -EINVAL when
 * the kernel has no seccomp, -ENOMEM.
 */
int command_filter_load(const struct command_filter *f);

/* Also for a filter that is all zero. */
void command_filter_clear(struct command_filter *f);

#endif
