/* SPDX-License-Identifier: ISC */
/*
 * Landlock through its three system calls, with constants of our own up to ABI
 * 7 (Linux 6.15). An older kernel gets only what it knows.
 */
#include "landlock.h"

#include "base.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

#define CREATE_RULESET_VERSION (1u << 0)
#define RULE_PATH_BENEATH      1

struct path_beneath {
	uint64_t rights;
	int32_t fd;
} __attribute__((packed));

/* The number of file rights that each ABI knows: bits 0 to n - 1. */
static const uint8_t fs_rights[] = { 0, 13, 14, 15, 15, 16 };

#define NET_RIGHTS (LANDLOCK_BIND_TCP | LANDLOCK_CONNECT_TCP)	     /* ABI 4 */
#define SCOPES	   (LANDLOCK_SCOPE_ABSTRACT | LANDLOCK_SCOPE_SIGNAL) /* ABI 6 */

int
landlock_abi(void)
{
	long abi = syscall(
	    SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	return abi < 0 ? -errno : (int)abi;
}

void
landlock_mask(struct landlock_attr *attr, int abi)
{
	size_t known = (size_t)abi < nitems(fs_rights) ? (size_t)abi
						       : nitems(fs_rights) - 1;

	attr->fs &= (1ull << fs_rights[known]) - 1;
	attr->net &= abi >= 4 ? NET_RIGHTS : 0;
	attr->scopes &= abi >= 6 ? SCOPES : 0;
}

int
landlock_create(const struct landlock_attr *attr, int abi)
{
	struct landlock_attr known = *attr;
	size_t size = abi >= 6	 ? sizeof(known)
		      : abi >= 4 ? offsetof(struct landlock_attr, scopes)
				 : offsetof(struct landlock_attr, net);
	int fd;

	if (abi <= 0)
		return abi < 0 ? abi : -ENOSYS;
	landlock_mask(&known, abi);
	fd = (int)syscall(SYS_landlock_create_ruleset, &known, size, 0);
	return fd < 0 ? -errno : fd;
}

int
landlock_allow(int ruleset, int fd, uint64_t rights)
{
	const struct path_beneath rule = { rights, fd };

	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule,
		0) < 0)
		return -errno;
	return 0;
}

int
landlock_restrict(int ruleset, unsigned flags)
{
	if (syscall(SYS_landlock_restrict_self, ruleset, flags) < 0)
		return -errno;
	return 0;
}

int
landlock_deny_all(void)
{
	const struct landlock_attr all = { ~0ull, ~0ull, ~0ull };
	_cleanup_close_ int fd = landlock_create(&all, landlock_abi());

	return fd < 0 ? fd : landlock_restrict(fd, 0);
}
