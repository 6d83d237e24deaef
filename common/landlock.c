/*
 * Landlock by its three system calls, with constants of our own up to ABI 7
 * (Linux 6.15); an older kernel gets what it knows.
 */
#include "landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self  446
#endif

#define CREATE_RULESET_VERSION (1u << 0)

/* struct landlock_ruleset_attr as of ABI 6; the size says how much of it. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

/* Number of file access rights each ABI knows: bits 0 to n-1. */
static const uint8_t fs_rights[] = { 0, 13, 14, 15, 15, 16 };

#define NET_RIGHTS 3 /* ABI 4: bind and connect TCP */
#define SCOPES	   3 /* ABI 6: abstract sockets and signals */

int
landlock_abi(void)
{
	long abi = syscall(
	    SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

int
landlock_deny_all(void)
{
	int abi = landlock_abi();
	size_t known = (size_t)abi < nitems(fs_rights) ? (size_t)abi
						       : nitems(fs_rights) - 1;
	struct ruleset_attr attr = {
		.handled_access_fs = (1ull << fs_rights[known]) - 1,
		.handled_access_net = abi >= 4 ? NET_RIGHTS : 0,
		.scoped = abi >= 6 ? SCOPES : 0,
	};
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
	_cleanup_close_ int fd = -1;

	if (abi == 0)
		return -ENOSYS;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return -errno;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	return 0;
}
