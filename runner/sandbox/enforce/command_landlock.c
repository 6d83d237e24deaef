/* SPDX-License-Identifier: ISC */
/* Makes a Landlock ruleset from a policy (doc/sandbox.md C5). */
#include "command_landlock.h"

#include <errno.h>

#include "landlock.h"
#include "util.h"

/* Rights that change a directory: creating, removing, moving. */
#define DIRECTORY_RIGHTS                                                       \
	(LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_CHAR |     \
	    LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK |       \
	    LANDLOCK_MAKE_FIFO | LANDLOCK_MAKE_BLOCK | LANDLOCK_MAKE_SYM |     \
	    LANDLOCK_REFER)

/* Rights that change a file. Neither list has a right to read or execute. */
#define FILE_RIGHTS                                                            \
	(LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV)

static int (*probe_abi)(void) = landlock_abi;

void
command_landlock_set_probe(int (*probe)(void))
{
	probe_abi = probe != NULL ? probe : landlock_abi;
}

int
command_landlock_abi(void)
{
	int abi = probe_abi();

	return abi == -ENOSYS || abi == -EOPNOTSUPP ? 0 : abi;
}

static int
allow_writing(
    int ruleset, const struct command_landlock_place *p, uint64_t handled)
{
	return landlock_allow(
	    ruleset, p->fd, p->directory ? handled : handled & FILE_RIGHTS);
}

int
command_landlock_make(const struct command_landlock_options *o)
{
	struct landlock_attr attr = {
		.fs = o->restrict_files ? DIRECTORY_RIGHTS | FILE_RIGHTS : 0,
		.net =
		    o->network ? 0 : LANDLOCK_BIND_TCP | LANDLOCK_CONNECT_TCP,
		.scopes = LANDLOCK_SCOPE_ABSTRACT | LANDLOCK_SCOPE_SIGNAL,
	};
	int abi = o->abi > 0 ? o->abi : command_landlock_abi(), err = 0;
	_cleanup_close_ int ruleset = -1;

	landlock_mask(&attr, abi);
	ruleset = landlock_create(&attr, abi);
	if (ruleset < 0 || !o->restrict_files)
		return steal_fd(&ruleset);
	for (size_t i = 0; i < o->writable_count && err == 0; i++)
		err = allow_writing(ruleset, &o->writable[i], attr.fs);
	return err != 0 ? err : steal_fd(&ruleset);
}

/* Before ABI 7 the kernel refuses the flags and logs nothing. */
static int
load(int ruleset, unsigned flags)
{
	int err = landlock_restrict(ruleset, flags);

	return err == -EINVAL ? landlock_restrict(ruleset, 0) : err;
}

int
command_landlock_load(int ruleset)
{
	return load(
	    ruleset, LANDLOCK_LOG_SAME_EXEC_OFF | LANDLOCK_LOG_SUBDOMAINS_OFF);
}

int
command_landlock_load_logged(int ruleset)
{
	return load(ruleset, LANDLOCK_LOG_NEW_EXEC_ON);
}
