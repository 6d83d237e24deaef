/*
 * Control groups of the sessions.
 */
#include "quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "util.h"

/* Processes of one session, its runner and helpers included. */
#define SESSION_PIDS_MAX 4096

static struct cgroup own = CGROUP_NONE;	 /* where execd was started */
static struct cgroup base = CGROUP_NONE; /* execd's own, below it */
static char base_name[32];

/* In version 2 a group that hands controllers down has no members of its own
 * (the "no internal process" rule): execd moves aside. */
static void
hand_down(int dir)
{
	int fd = openat(dir, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "+pids +memory", 13) != 13)
		log_debug("cgroup: controllers are not handed down: %s",
		    strerror(errno));
	close(fd);
}

void
quota_init(void)
{
	int err;

	cgroup_open_own(&own);
	if (!cgroup_is_open(&own)) {
		log_warn(0, "no control groups here: commands have resource "
			    "limits instead");
		return;
	}
	snprintf(base_name, sizeof(base_name), "execd-%d", (int)getpid());
	if (own.dirs[CGROUP_UNIFIED] >= 0)
		hand_down(own.dirs[CGROUP_UNIFIED]);
	err = cgroup_make(&own, base_name, &base);
	if (err < 0) {
		log_warn(err, "control groups: commands have resource limits "
			      "instead");
		cgroup_close(&own);
		return;
	}
	if (base.dirs[CGROUP_UNIFIED] >= 0)
		hand_down(base.dirs[CGROUP_UNIFIED]);
}

void
quota_clear(void)
{
	cgroup_close(&base);
	cgroup_remove(&own, base_name);
	cgroup_close(&own);
}

/* The user may make groups below, and in version 2 move his own processes
 * between them; the limits of the session stay root's. */
static int
delegate(const struct cgroup *c, uid_t uid, gid_t gid)
{
	int unified = c->dirs[CGROUP_UNIFIED];

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c->dirs[i] >= 0 && fchown(c->dirs[i], uid, gid) < 0)
			return -errno;
	if (unified >= 0 &&
	    (fchownat(unified, "cgroup.procs", uid, gid, 0) < 0 ||
		fchownat(unified, "cgroup.subtree_control", uid, gid, 0) < 0))
		return -errno;
	return 0;
}

bool
quota_open(const char *session_id, uid_t uid, gid_t gid, uint64_t pids,
    uint64_t memory_bytes, struct cgroup *c)
{
	int err;

	if (!cgroup_is_open(&base))
		return false;
	err = cgroup_make(&base, session_id, c);
	if (err == 0)
		err = cgroup_limit(c, pids, memory_bytes);
	if (err == 0)
		err = delegate(c, uid, gid);
	if (err == 0)
		return true;
	log_warn(err, "control group of session %.8s", session_id);
	cgroup_close(c);
	quota_close(session_id);
	return false;
}

bool
quota_for(const char *session_id, const struct identity *id, struct cgroup *c)
{
	uint32_t pids = id->limits.session_processes;
	uint64_t memory = id->limits.session_memory_bytes;

	return quota_open(session_id, id->uid, id->gid,
		   pids ? pids : SESSION_PIDS_MAX, memory, c) ||
	       (pids == 0 && memory == 0);
}

/* The groups that a runner made are empty: its processes are gone with it. */
static void
remove_children(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			unlinkat(dir, e->d_name, AT_REMOVEDIR);
	closedir(d);
}

void
quota_close(const char *session_id)
{
	struct cgroup c;

	if (!cgroup_is_open(&base) || cgroup_make(&base, session_id, &c) < 0)
		return;
	cgroup_kill(&c);
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		if (c.dirs[i] >= 0)
			remove_children(c.dirs[i]);
	cgroup_close(&c);
	cgroup_remove(&base, session_id);
}
