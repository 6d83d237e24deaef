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
#pragma once

#include "base.h"

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
	 * With network or loopback: UNIX stream and seqpacket sockets, because
	 * the proxy (socket_calls.h) carries out connect(2), and socketpair(2)
	 * of datagram sockets. This filter does not.
	 */
	bool own_unix;
	/*
	 * Connections that send(2) makes (TCP Fast Open), because no proxy
	 * would see their address.
	 */
	bool no_fast_open;
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
	 * The proxy (call_proxy.h) answers chmod(2) with the set-group-id bit
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

/*
 * Landlock for sandboxed commands (doc/sandbox.md C5). It is a second lock: on
 * writes, which the mounts already limit, and on TCP without a network. It
 * always restricts abstract sockets and signals out of the sandbox. It never
 * refuses reading or executing, because the view does that. Where it handles
 * files, mount(2) is refused as well.
 *
 * The places are prepared once per session and policy. Best effort: what the
 * kernel's ABI does not know is masked. A policy with a `landlock_min_abi`
 * compares it with command_landlock_abi() first.
 *
 * Sources: landlock(7), landlock_create_ruleset(2), landlock_add_rule(2),
 * landlock_restrict_self(2).
 */

struct command_landlock_place {
	int fd; /* opened with O_PATH */
	bool directory;
	bool no_sockets; /* none can be made, linked or renamed into it */
};

struct command_landlock_options {
	bool network;	     /* false: TCP can neither bind nor connect */
	bool restrict_files; /* writes only below `writable` */
	/*
	 * Writable roots and devices, opened in the finished view, because a
	 * rule applies to an inode. Not owned.
	 */
	const struct command_landlock_place *writable;
	size_t writable_count;
	int abi; /* of command_landlock_abi(); 0: ask now */
};

/*
 * Returns the ABI, 1 or more; 0 if the kernel has no Landlock (ENOSYS) or it is
 * off (EOPNOTSUPP); or another -errno, which has no known meaning.
 */
int command_landlock_abi(void);

/*
 * Tells whether o->abi, which is 1 or more, knows nothing of what is asked. An
 * empty ruleset is none: the kernel refuses to make it. Below ABI 4 this is
 * each policy that restricts no files, and below ABI 6 each of them that may
 * use TCP.
 */
bool command_landlock_is_empty(const struct command_landlock_options *o);

/*
 * Makes a ruleset for command_landlock_load(): a close-on-exec descriptor that
 * the caller owns. Errors: -ENOSYS without Landlock; -ENOMSG if it would be
 * empty (command_landlock_is_empty()); or
 * -errno of the system calls: -EBADF, -EBADFD (not a descriptor of a file
 * system), -ENOMEM, -EMFILE.
 */
int command_landlock_make(const struct command_landlock_options *o);

/*
 * Makes only the call landlock_restrict_self(2), so it is safe in a child of
 * vfork(2). It applies to this thread and its children for ever. The caller
 * must have set no_new_privs. Descriptors that are already open are not
 * restricted. Denials are not logged. Returns 0 or -errno: -EPERM without
 * no_new_privs, -EBADF, -EBADFD (not a ruleset), -E2BIG (16 layers).
 */
int command_landlock_load(int ruleset);
