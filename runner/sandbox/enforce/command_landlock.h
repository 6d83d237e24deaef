/* SPDX-License-Identifier: ISC */
/*
 * Landlock for sandboxed commands (doc/sandbox.md C5): a second lock on writes
 * below the mounts, TCP without a network, and always abstract sockets and
 * signals out of the sandbox. It never refuses to read or execute: that is
 * the view's. Where it handles files, mount(2) is refused as well.
 *
 * Prepared once per session and policy; each command only loads it.
 * Best effort: the kernel's ABI masks what is asked. A policy with a
 * `landlock_min_abi` compares it with command_landlock_abi() first.
 *
 * Sources: landlock(7), landlock_create_ruleset(2), landlock_add_rule(2),
 * landlock_restrict_self(2).
 */
#ifndef COMMAND_LANDLOCK_H
#define COMMAND_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

struct command_landlock_place {
	int fd; /* O_PATH */
	bool directory;
};

struct command_landlock_options {
	bool network;	     /* else TCP can neither bind nor connect */
	bool restrict_files; /* writes only below `writable` */
	/* Writable roots and devices, opened in the finished view: a rule goes
	 * by inode. Not owned. */
	const struct command_landlock_place *writable;
	size_t writable_count;
	int abi; /* command_landlock_abi(), asked once; 0: ask now */
};

/* 1 and up; 0 when the kernel has none (ENOSYS) or it is off (EOPNOTSUPP); or
 * another -errno, of which nobody knows what it means. */
int command_landlock_abi(void);

/*
 * A ruleset for command_landlock_load(), close-on-exec, the caller's to close.
 * -ENOSYS: no Landlock. -ENOMSG: this kernel's knows nothing of what was
 * asked, so that there is nothing to load. Else -errno of the system calls:
 * -EBADF, -EBADFD (a descriptor of no file system), -ENOMEM, -EMFILE.
 */
int command_landlock_make(const struct command_landlock_options *o);

/*
 * Only landlock_restrict_self(2): safe in a child of vfork(2). For this thread
 * and its children, for ever; the caller has set no_new_privs. What is open
 * already stays as it is. Denials are not logged. 0, or -errno: -EPERM
 * without no_new_privs, -EBADF, -EBADFD (no ruleset), -E2BIG (16 deep).
 */
int command_landlock_load(int ruleset);

/* Likewise, and what is denied the programs that this process executes goes to
 * the audit log (ABI 7; before, nothing is ever logged). */
int command_landlock_load_logged(int ruleset);

/* Tests only: asked for the ABI instead of the kernel; NULL: the kernel. */
void command_landlock_set_probe(int (*probe)(void));

#endif
