/* SPDX-License-Identifier: ISC */
/* Enters the namespaces of a sandbox. */
#include "sandbox_userns.h"

#include <errno.h>
#include <sched.h>

#include "userns.h"

int
userns_enter(int userns, bool network, bool *none, const char **step)
{
	int err = 0;

	*none = false;
	*step = "entering the session's user namespace";
	if (userns < 0)
		err = userns_enter_new(none, step);
	else if (setns(userns, CLONE_NEWUSER) < 0)
		err = -errno;
	if (err < 0)
		return err;
	*step = "new mount, ipc and uts namespaces";
	if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return -errno;
	*step = "a new network namespace";
	if (!network && unshare(CLONE_NEWNET) < 0)
		return -errno;
	return 0;
}
