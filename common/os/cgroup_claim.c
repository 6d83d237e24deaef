/* SPDX-License-Identifier: ISC */
/*
 * Claims a control group: see cgroup_claim.h. The rules of version 2 are in
 * cgroups(7) and in the kernel's Documentation/admin-guide/cgroup-v2.rst, "No
 * Internal Process Constraint" and "Threads".
 */
#include "cgroup_claim.h"

#include <sys/file.h>

#include "children.h"

/* --- The group ------------------------------------------------------------ */

/*
 * It is called execd, or if another execd beside this one has that, execd-1 and
 * so on. Who has a group holds a lock on its directory. What one that was
 * killed has left is removed by the next that gets the lock.
 */
#define NAME "execd"

#define CLAIMS_MAX 100 /* names that are tried for a group */

/* The leaf that the program itself moves into. */
#define LEAF "monitor"

/* Another execd may remove the directory between the open and the lock. If a
 * process of an execd that was killed is still in the group, the group is not
 * used again. Whoever claims a group needs the exclusive lock; the shared one
 * keeps it, and is root's, too, when a child has claimed it for root. */
static int
lock_group(int parent, const char *name, int fd)
{
	struct stat ours, there;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -EEXIST;
	cgroup_remove_below(fd);
	if (fstat(fd, &ours) < 0 ||
	    fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
	    ours.st_ino != there.st_ino)
		return -ENOENT;
	return ours.st_nlink > 2 || flock(fd, LOCK_SH | LOCK_NB) < 0 ? -EEXIST
								     : 0;
}

/* Makes the group and opens it as base. It is this program's as long as base is
 * open. Returns 0, -EEXIST if another execd has it, -ENOENT if one has just
 * removed it, or an error of cgroup_make(). */
static int
make_base(struct cgroup_claim *c)
{
	int err = cgroup_make(&c->own, c->name, &c->base);

	for (int i = 0; err == 0 && i < CGROUP_HIERARCHIES; i++)
		if (c->base.dirs[i] >= 0)
			err = lock_group(
			    c->own.dirs[i], c->name, c->base.dirs[i]);
	if (err < 0)
		cgroup_close(&c->base);
	return err;
}

static int
name_base(struct cgroup_claim *c)
{
	int err = -EEXIST;

	for (int i = 0; i < CLAIMS_MAX && (err == -EEXIST || err == -ENOENT);
	     i++) {
		snprintf(c->name, sizeof(c->name), NAME "%s%.0d",
		    i > 0 ? "-" : "", i);
		err = make_base(c);
	}
	return err;
}

/* --- Version 2 ---------------------------------------------------------- */

/*
 * A group that hands controllers of memory down has no process of its own. So
 * this program leaves its group before anything is written. A group that is
 * written to while it has a process takes pids and cpu, whose controllers are
 * threaded, but becomes "domain threaded" by that: no group below it has memory
 * then, and no process enters one.
 */

/* The root of all groups is the exception, and has no such file. */
static bool
is_root_group(int dir)
{
	return faccessat(dir, "cgroup.type", F_OK, 0) < 0;
}

/* Only `program` and its descendants are ours. The kernel shows a process of
 * another pid namespace as 0. */
static bool
is_ours(pid_t program, pid_t member)
{
	pid_t pid = member;

	while (pid > 1 && pid != program)
		pid = children_parent_of(pid);
	return pid == program ||
	       (pid < 0 && kill(member, 0) < 0 && errno == ESRCH);
}

/* Moves each member to another group, or with -1 only looks. A member that ends
 * meanwhile need not move. Returns 0, or -errno with the pid of whom it is
 * about: -EBUSY for another's process. */
static int
each_member(pid_t program, int from, int to, pid_t *about)
{
	int fd = openat(from, "cgroup.procs", O_RDONLY | O_CLOEXEC), err = 0;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char text[16];

	if (f == NULL)
		return -errno;
	while (err == 0 && fscanf(f, "%d", about) == 1) {
		snprintf(text, sizeof(text), "%d", (int)*about);
		if (!is_ours(program, *about))
			err = -EBUSY;
		else if (to >= 0)
			err = write_whole(to, "cgroup.procs", text);
		if (err == -ESRCH)
			err = 0;
	}
	fclose(f);
	return err;
}

/* How often members that were forked meanwhile are moved, too. */
#define ROUNDS_MAX 100

static int
move_members(pid_t program, int from, int to)
{
	char byte[2];
	pid_t about;
	int err = 0;

	for (int i = 0; err == 0 && i < ROUNDS_MAX; i++) {
		if (read_whole(from, "cgroup.procs", byte, sizeof(byte)) == 0)
			return 0;
		err = each_member(program, from, to, &about);
	}
	return err < 0 ? err : -EBUSY;
}

static int
move_aside(struct cgroup_claim *c)
{
	int dir = c->base.dirs[CGROUP_UNIFIED];
	_cleanup_close_ int leaf = -1;

	if (mkdirat(dir, LEAF, 0755) < 0 && errno != EEXIST)
		return -errno;
	leaf = cgroup_open_in(dir, LEAF);
	if (leaf < 0)
		return -errno;
	c->moved = true;
	return move_members(c->program, c->own.dirs[CGROUP_UNIFIED], leaf);
}

/* Only then the group is empty: as long as groups below have controllers, no
 * process enters it. */
static int
move_back(struct cgroup_claim *c)
{
	int err = cgroup_take_back(&c->base), back;
	_cleanup_close_ int leaf =
	    cgroup_open_in(c->base.dirs[CGROUP_UNIFIED], LEAF);

	back = cgroup_take_back(&c->own);
	if (err == 0)
		err = back;
	if (c->moved && leaf >= 0)
		back =
		    move_members(c->program, leaf, c->own.dirs[CGROUP_UNIFIED]);
	c->moved = false;
	return err < 0 ? err : back;
}

/* Somebody may have entered the group meanwhile, or an execd that was killed
 * has left it so. */
static bool
is_threaded(int dir)
{
	char type[32] = "";

	return read_whole(dir, "cgroup.type", type, sizeof(type)) > 0 &&
	       strncmp(type, "domain\n", 7) != 0;
}

static int
hand_down(struct cgroup_claim *c, char *why)
{
	int own = c->own.dirs[CGROUP_UNIFIED], err = 0;

	/* Or else no process enters a group below. */
	if (is_threaded(own))
		cgroup_take_back(&c->own);
	if (!is_root_group(own))
		err = move_aside(c);
	if (err < 0) {
		snprintf(why, CGROUP_CLAIM_WHY_MAX,
		    "its own processes cannot move into a group below");
		return err;
	}
	err = cgroup_hand_down(&c->own);
	if (err == 0 && is_threaded(own))
		err = -EOPNOTSUPP;
	if (err == 0)
		err = cgroup_hand_down(&c->base);
	if (err < 0)
		snprintf(why, CGROUP_CLAIM_WHY_MAX,
		    "controllers cannot be handed down");
	return err;
}

static void
close_unified(struct cgroup *c)
{
	close(c->dirs[CGROUP_UNIFIED]);
	c->dirs[CGROUP_UNIFIED] = -1;
}

/* Takes the group of version 2 into use, or leaves it as it was. */
static int
use_unified(struct cgroup_claim *c, char *why)
{
	int own = c->own.dirs[CGROUP_UNIFIED], err = hand_down(c, why);

	if (err == 0)
		return 0;
	move_back(c);
	unlinkat(c->base.dirs[CGROUP_UNIFIED], LEAF, AT_REMOVEDIR);
	close_unified(&c->base);
	unlinkat(own, c->name, AT_REMOVEDIR);
	close_unified(&c->own);
	return err;
}

/* Changes nothing in a group with processes of others: -EBUSY, and who. */
static int
check_members(struct cgroup_claim *c, char *why)
{
	int own = c->own.dirs[CGROUP_UNIFIED];
	pid_t other = 0;

	if (own < 0 || is_root_group(own) ||
	    each_member(c->program, own, -1, &other) == 0)
		return 0;
	snprintf(why, CGROUP_CLAIM_WHY_MAX,
	    "the group is not execd's alone: process %d is in it%s", (int)other,
	    other == 0 ? " (of another pid namespace)" : "");
	close_unified(&c->own);
	return -EBUSY;
}

/* --- The claim ---------------------------------------------------------- */

/* Names the controllers that are missing. */
static void
tell_missing(const struct cgroup_claim *c, char *why)
{
	static const char *const names[] = { "pids", "memory", "cpu" };
	size_t n = 0;

	for (size_t i = 0; i < nitems(names); i++)
		if (!(c->controllers & 1u << i))
			n += (size_t)snprintf(why + n, CGROUP_CLAIM_WHY_MAX - n,
			    "%s%s", n == 0 ? "without the controllers " : ", ",
			    names[i]);
}

/* Says why there is no group that this user may use. */
static const char *
why_none(int err)
{
	return err == -ENOENT  ? "no control groups are mounted here"
	       : err == -EROFS ? "the control groups are mounted read-only"
			       : "the group was not delegated to this user";
}

int
cgroup_claim(struct cgroup_claim *c, pid_t program, char *why)
{
	int err, unified;

	*c = (struct cgroup_claim){
		.own = CGROUP_NONE, .base = CGROUP_NONE, .program = program
	};
	*why = '\0';
	unified = cgroup_open_usable(&c->own);
	if (unified < 0)
		snprintf(why, CGROUP_CLAIM_WHY_MAX, "%s", why_none(unified));
	else
		unified = check_members(c, why);
	if (!cgroup_is_open(&c->own))
		return unified;
	err = name_base(c);
	if (err < 0) {
		snprintf(why, CGROUP_CLAIM_WHY_MAX, "making the group %s: %s",
		    c->name, strerror(-err));
		cgroup_close(&c->own);
		return err;
	}
	if (c->base.dirs[CGROUP_UNIFIED] >= 0)
		unified = use_unified(c, why);
	if (!cgroup_is_open(&c->base)) {
		cgroup_close(&c->own);
		return unified;
	}
	c->controllers = cgroup_controllers(&c->base);
	if (*why == '\0')
		tell_missing(c, why);
	return 0;
}

int
cgroup_claim_end(struct cgroup_claim *c)
{
	int err = 0, removed;

	if (!cgroup_is_open(&c->base))
		return 0;
	if (c->moved)
		err = move_back(c);
	c->controllers = 0;
	/* The lock comes last, or else another execd would use the group. */
	removed = cgroup_remove_tree(&c->own, c->name);
	cgroup_close(&c->base);
	cgroup_close(&c->own);
	return removed < 0 ? removed : err;
}
