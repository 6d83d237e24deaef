/* SPDX-License-Identifier: ISC */
/*
 * Landlock (landlock(7)) without the kernel's headers, because those of Debian
 * 12 know only ABI 2. Constants that are used here, up to ABI 7 (Linux 6.15),
 * and the three system calls.
 */
#pragma once

#include <stdint.h>

/* Rights to files. The number beside a constant is the first ABI that knows
 * this right and those on the following lines. */
#define LANDLOCK_EXECUTE     (1ull << 0) /* 1 */
#define LANDLOCK_WRITE_FILE  (1ull << 1)
#define LANDLOCK_REMOVE_DIR  (1ull << 4)
#define LANDLOCK_REMOVE_FILE (1ull << 5)
#define LANDLOCK_MAKE_CHAR   (1ull << 6)
#define LANDLOCK_MAKE_DIR    (1ull << 7)
#define LANDLOCK_MAKE_REG    (1ull << 8)
#define LANDLOCK_MAKE_SOCK   (1ull << 9)
#define LANDLOCK_MAKE_FIFO   (1ull << 10)
#define LANDLOCK_MAKE_BLOCK  (1ull << 11)
#define LANDLOCK_MAKE_SYM    (1ull << 12)
#define LANDLOCK_REFER	     (1ull << 13) /* 2 */
#define LANDLOCK_TRUNCATE    (1ull << 14) /* 3 */
#define LANDLOCK_IOCTL_DEV   (1ull << 15) /* 5 */

#define LANDLOCK_BIND_TCP    (1ull << 0) /* 4 */
#define LANDLOCK_CONNECT_TCP (1ull << 1)

#define LANDLOCK_SCOPE_ABSTRACT (1ull << 0) /* 6 */
#define LANDLOCK_SCOPE_SIGNAL	(1ull << 1)

/* Flags of landlock_restrict_self(2), since ABI 7. */
#define LANDLOCK_LOG_SAME_EXEC_OFF  (1u << 0)
#define LANDLOCK_LOG_SUBDOMAINS_OFF (1u << 2)

/* The actions that a ruleset restricts: each is refused unless a rule permits
 * it. The layout is the kernel's; an older kernel takes only the first
 * fields. */
struct landlock_attr {
	uint64_t fs;
	uint64_t net;
	uint64_t scopes;
};

/* Returns the newest ABI of this kernel, 1 or more. Returns -ENOSYS if the
 * kernel has no Landlock, -EOPNOTSUPP if it is switched off, or another
 * -errno. */
int landlock_abi(void);

/* Removes from *attr what this ABI does not know. */
void landlock_mask(struct landlock_attr *attr, int abi);

/*
 * Makes a ruleset from the parts of `attr` that `abi` knows. `abi` must not
 * exceed that of the kernel. Returns a close-on-exec descriptor, which is the
 * caller's, or -errno: -ENOSYS if abi is 0, abi itself if it is negative,
 * -ENOMSG if no restriction is left.
 */
int landlock_create(const struct landlock_attr *attr, int abi);

/*
 * Adds a rule that permits `rights` to the file behind `fd`, or to everything
 * below that directory. The ruleset must restrict all these rights. Returns 0
 * or -errno: -EINVAL for a right that the ruleset does not restrict or that
 * does not apply to a plain file, -EBADFD if fd belongs to no file system.
 */
int landlock_allow(int ruleset, int fd, uint64_t rights);

/* Applies the ruleset to this thread and its future children, permanently.
 * Needs no_new_privs. Makes only a system call. Returns 0 or -errno: -E2BIG
 * after 16 rulesets, -EINVAL for unknown flags. */
int landlock_restrict(int ruleset, unsigned flags);

/* Refuses all files, TCP ports, abstract sockets and signals to other
 * processes, as far as this kernel's ABI can. Needs no_new_privs. Returns 0 or
 * -errno (-ENOSYS: no Landlock). */
int landlock_deny_all(void);
