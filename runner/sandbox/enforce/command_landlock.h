/* SPDX-License-Identifier: ISC */
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
#ifndef COMMAND_LANDLOCK_H
#define COMMAND_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

struct command_landlock_place {
	int fd; /* opened with O_PATH */
	bool directory;
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
 * Makes a ruleset for command_landlock_load(): a close-on-exec descriptor that
 * the caller owns. Errors: -ENOSYS without Landlock; -ENOMSG if the kernel's
 * Landlock knows nothing of what was asked, so there is nothing to load; or
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

/*
 * The same, but what is denied to programs that this process executes goes to
 * the audit log (ABI 7; before that, nothing is logged).
 */
int command_landlock_load_logged(int ruleset);

/*
 * For tests: replaces the question to the kernel for its ABI. NULL: ask the
 * kernel.
 */
void command_landlock_set_probe(int (*probe)(void));

#endif
