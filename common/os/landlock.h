/* SPDX-License-Identifier: ISC */
/*
 * Landlock (landlock(7)) without its headers: Debian 12's know ABI 2 only.
 * Constants up to ABI 7 (Linux 6.15), and the three system calls.
 */
#ifndef LANDLOCK_H
#define LANDLOCK_H

#include <stdint.h>

/* Rights to files, by the ABI that brought them. */
#define LANDLOCK_EXECUTE     (1ull << 0) /* 1 */
#define LANDLOCK_WRITE_FILE  (1ull << 1)
#define LANDLOCK_READ_FILE   (1ull << 2)
#define LANDLOCK_READ_DIR    (1ull << 3)
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

/* Of landlock_restrict_self(2): ABI 7. */
#define LANDLOCK_LOG_SAME_EXEC_OFF  (1u << 0)
#define LANDLOCK_LOG_NEW_EXEC_ON    (1u << 1)
#define LANDLOCK_LOG_SUBDOMAINS_OFF (1u << 2)

/* What a ruleset handles: refused unless a rule of it permits. As in the
 * kernel; an older one takes only its beginning. */
struct landlock_attr {
	uint64_t fs;
	uint64_t net;
	uint64_t scopes;
};

/* The newest ABI this kernel speaks, 1 and up; -ENOSYS where it has none,
 * -EOPNOTSUPP where it is switched off, or another -errno. */
int landlock_abi(void);

/* Takes away what an ABI does not know. */
void landlock_mask(struct landlock_attr *attr, int abi);

/* A ruleset, close-on-exec, of what `abi` (at most the kernel's) knows of
 * `attr`. -errno: -ENOSYS when abi is 0, abi itself when that is one, -ENOMSG
 * when nothing is left. */
int landlock_create(const struct landlock_attr *attr, int abi);

/* A rule: these rights (each handled) to the file behind a descriptor, or
 * below the directory. 0 or -errno: -EINVAL for a right that is not handled,
 * or not one to a plain file; -EBADFD where there is no file system. */
int landlock_allow(int ruleset, int fd, uint64_t rights);

/* Of this thread and its children, for ever. Needs no_new_privs. Only a system
 * call. 0 or -errno: -E2BIG after 16 times, -EINVAL for unknown flags. */
int landlock_restrict(int ruleset, unsigned flags);

/* No file, no TCP port, no abstract socket and no foreign process from now
 * on, as far as this kernel's ABI knows them. Needs no_new_privs. 0 or
 * -errno (-ENOSYS: no Landlock). */
int landlock_deny_all(void);

#endif
