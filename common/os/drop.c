/* SPDX-License-Identifier: ISC */
/*
 * Drops privileges permanently and verifies that they are gone. Used by
 * children of execd before they exec, and by the front-end and its helpers
 * before they read a byte of a client.
 */
#include "drop.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/resource.h>

static struct __user_cap_header_struct cap_header = {
	.version = _LINUX_CAPABILITY_VERSION_3
};

/* The one that a program is given to stay hidden: root cannot work without it,
 * and it reaches no file and no memory. */
#define HIDING CAP_KILL

static void
set_capabilities(uint32_t keep)
{
	struct __user_cap_data_struct caps[2] = { { keep, keep, keep } };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &cap_header, caps) < 0)
		log_fatal_errno(-errno, "capset");
	if (keep != 0 &&
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, HIDING, 0, 0) < 0)
		log_fatal_errno(-errno, "a capability for the program");
}

static void
prove_capabilities(uint32_t keep)
{
	struct __user_cap_data_struct have[2];

	if (syscall(SYS_capget, &cap_header, have) < 0)
		log_fatal_errno(-errno, "capget");
	for (int i = 0; i < 2; i++)
		if ((have[i].effective | have[i].permitted |
			have[i].inheritable) != (i == 0 ? keep : 0))
			log_fatal("capabilities remain after the drop");
}

static void
prove_ids(uid_t uid, gid_t gid, size_t ngroups)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;

	if (getresuid(&r, &e, &s) < 0 || r != uid || e != uid || s != uid)
		log_fatal("the user id was not set");
	if (getresgid(&rg, &eg, &sg) < 0 || rg != gid || eg != gid || sg != gid)
		log_fatal("the group id was not set");
	if (getgroups(0, NULL) != (int)ngroups)
		log_fatal("the supplementary groups were not set");
	if (setresuid(0, 0, 0) == 0 || setuid(0) == 0 || seteuid(0) == 0)
		log_fatal("root could be regained after the drop");
}

/* The kernel hides a process that changes its user from other processes of the
 * new user, unless fs.suid_dumpable is 1: then it makes the process visible to
 * them, even if it was hidden before. Capabilities that are kept over the
 * change close that moment: the kernel lets nobody look into a process that
 * has capabilities which the looker has not. */
static void
change_user(uid_t uid)
{
	if (prctl(PR_SET_KEEPCAPS, 1) < 0)
		log_fatal_errno(-errno, "keeping capabilities");
	if (setresuid(uid, uid, uid) < 0)
		log_fatal_errno(-errno, "setresuid(%u)", uid);
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_KEEPCAPS, 0) < 0)
		log_fatal_errno(-errno, "hiding memory");
}

void
drop_to_user(uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups,
    bool hide_program)
{
	uint32_t keep = hide_program ? 1u << HIDING : 0;

	if (uid == 0)
		log_fatal("dropping privileges to root is no drop");
	if (setgroups(ngroups, groups) < 0)
		log_fatal_errno(-errno, "setgroups");
	if (setresgid(gid, gid, gid) < 0)
		log_fatal_errno(-errno, "setresgid(%u)", gid);
	change_user(uid);
	set_capabilities(keep);
	prove_ids(uid, gid, ngroups);
	prove_capabilities(keep);
}

void
drop_visibility(void)
{
	struct rlimit core;

	if (prctl(PR_SET_DUMPABLE, 0) < 0 || getrlimit(RLIMIT_CORE, &core) < 0)
		log_fatal_errno(-errno, "hiding memory");
	core.rlim_cur = 0;
	if (setrlimit(RLIMIT_CORE, &core) < 0)
		log_fatal_errno(-errno, "core dumps");
}

void
drop_capabilities(void)
{
	set_capabilities(0);
	prove_capabilities(0);
}
