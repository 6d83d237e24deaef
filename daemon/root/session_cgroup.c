/* SPDX-License-Identifier: ISC */
#include "session_cgroup.h"

#include <sys/file.h>

#include "disk.h"
#include "queue.h"
#include "root.h"
#include "saved.h"

static struct cgroup_claim claim = { .own = CGROUP_NONE, .base = CGROUP_NONE };

/* Below execd's own group: one for all sessions, one for those of each
 * identity, and one for each session. Root numbers them; the broker's text
 * names none. */
static struct cgroup all = CGROUP_NONE;

struct identity_group {
	TAILQ_ENTRY(identity_group) link; /* identities */
	char name[CONTROL_IDENTITY_MAX];
	uint64_t number;
	uint32_t sessions;
};

static TAILQ_HEAD(, identity_group) identities = TAILQ_HEAD_INITIALIZER(
    identities);
static uint64_t identities_made;

#define ALL_NAME "sessions"
/* In version 2 the group of a session has no members of its own. */
#define RUNNER_NAME "runner"

static int
make_parent(const struct cgroup *above, const char *name, struct cgroup *c)
{
	int err = cgroup_make(above, name, c);

	if (err == 0 && c->dirs[CGROUP_UNIFIED] >= 0)
		err = cgroup_hand_down(c);
	return err;
}

/* --- execd's own group --------------------------------------------------- */

/* Opens what the child has, and takes its lock. */
static int
open_claim(const struct task_claimed *found)
{
	struct cgroup own = CGROUP_NONE, base = CGROUP_NONE;
	int err = found->err;

	for (int i = 0; i < CGROUP_HIERARCHIES && err == 0; i++) {
		if (found->own[i][0] == '\0')
			continue;
		own.dirs[i] = cgroup_open_in(AT_FDCWD, found->own[i]);
		base.dirs[i] = cgroup_open_in(own.dirs[i], found->claim.name);
		if (flock(base.dirs[i], LOCK_SH | LOCK_NB) < 0)
			err = -errno;
	}
	if (err < 0) {
		cgroup_close(&own);
		cgroup_close(&base);
	}
	claim = found->claim;
	claim.own = own;
	claim.base = base;
	return err;
}

/* A child looks for the group and makes it, because that is a long story with
 * many ends (cgroup_claim.h). */
static int
claim_group(char *why)
{
	static struct task_claimed found;
	struct task t = { .kind = TASK_CLAIM };
	struct pollfd heard = { .events = POLLIN };
	pid_t pid = task_start(&t, NULL, 0, &heard.fd);
	int err = pid;

	*why = '\0';
	if (pid < 0)
		return err;
	poll(&heard, 1, -1);
	err = disk_receive(heard.fd, &found, sizeof(found)) == sizeof(found)
		  ? open_claim(&found)
		  : -EIO;
	memcpy(why, found.why, CGROUP_CLAIM_WHY_MAX);
	if (err == 0)
		send(heard.fd, "", 1, MSG_NOSIGNAL);
	close(heard.fd);
	waitpid(pid, NULL, 0);
	return err;
}

static int
release_group(void)
{
	struct task t = { .kind = TASK_RELEASE, .claim = claim };
	int fds[2 * CGROUP_HIERARCHIES], channel, status = 0;
	size_t n = cgroup_put(&claim.own, &t.hierarchies, fds);
	pid_t pid;

	if (n == 0)
		return 0;
	n += cgroup_put(&claim.base, &t.hierarchies, fds + n);
	pid = task_start(&t, fds, n, &channel);
	if (pid < 0)
		return pid;
	waitpid(pid, &status, 0);
	close(channel);
	cgroup_close(&claim.own);
	cgroup_close(&claim.base);
	return -WEXITSTATUS(status);
}

void
session_cgroup_init(void)
{
	char why[CGROUP_CLAIM_WHY_MAX];
	int err = claim_group(why);

	if (err == 0)
		err = make_parent(&claim.base, ALL_NAME, &all);
	if (err < 0) {
		/* Who has a limit is refused then. */
		session_cgroup_clear();
		log_warn(0,
		    "control groups: sessions have none: %s; they have in a "
		    "systemd unit with Delegate=yes (execd-sessions.service)",
		    *why != '\0' ? why : strerror(-err));
	} else if (*why != '\0') {
		log_warn(0, "control groups: %s", why);
	}
}

static void
save_identity(struct saved *s, struct identity_group *g)
{
	saved_text(s, g->name, sizeof(g->name));
	SAVE(s, g->number);
	SAVE(s, g->sessions);
}

void
session_cgroup_save(struct saved *s)
{
	struct identity_group *g;
	uint32_t n = 0;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		saved_fd(s, &claim.own.dirs[i]);
		saved_fd(s, &claim.base.dirs[i]);
		saved_fd(s, &all.dirs[i]);
	}
	saved_text(s, claim.name, sizeof(claim.name));
	SAVE(s, claim.controllers);
	SAVE(s, claim.moved);
	TAILQ_FOREACH (g, &identities, link)
		n++;
	SAVE(s, identities_made);
	SAVE(s, n);
	g = TAILQ_FIRST(&identities);
	for (; n > 0 && !s->failed; n--, g = TAILQ_NEXT(g, link)) {
		if (s->mode == SAVED_READ) {
			g = xcalloc(1, sizeof(*g));
			TAILQ_INSERT_TAIL(&identities, g, link);
		}
		save_identity(s, g);
	}
}

unsigned
session_cgroup_controllers(void)
{
	return claim.controllers;
}

size_t
session_cgroup_put(uint8_t *hierarchies, int dirs[CGROUP_HIERARCHIES])
{
	return cgroup_put(&all, hierarchies, dirs);
}

/* The controllers without which the limits cannot be enforced. */
static unsigned
needed_by(const struct control_user *s)
{
	return (s->tasks_max ? CGROUP_COUNTS_PIDS : 0) |
	       (s->memory_max_bytes ? CGROUP_COUNTS_MEMORY : 0) |
	       (s->cpu_quota_percent ? CGROUP_COUNTS_CPU : 0);
}

void
session_cgroup_clear(void)
{
	int err;

	/* Only then the groups above give their controllers back. */
	if (cgroup_is_open(&all))
		cgroup_remove_tree(&claim.base, ALL_NAME);
	cgroup_close(&all);
	err = release_group();
	claim.controllers = 0;
	if (err < 0)
		log_warn(err, "control groups: removing %s", claim.name);
}

/* The user may make groups below, and in version 2 move his own processes
 * between them. The limits of the session stay root's. */
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

int
session_cgroup_join(const struct cgroup *session)
{
	int err = 0;

	for (int i = 0; i < CGROUP_HIERARCHIES && err == 0; i++)
		if (session->dirs[i] >= 0)
			err = write_whole(session->dirs[i],
			    i == CGROUP_UNIFIED ? RUNNER_NAME "/cgroup.procs"
						: "tasks",
			    "0");
	return err;
}

/* In version 2 the groups of commands, beside the leaf, can have limits. */
static int
make_leaf(const struct cgroup *session)
{
	int dir = session->dirs[CGROUP_UNIFIED], err;

	if (dir < 0)
		return 0;
	err = cgroup_hand_down(session);
	if (err == 0)
		err = write_whole(dir, "cgroup.max.descendants", CGROUP_BELOW);
	if (err == 0)
		err = write_whole(dir, "cgroup.max.depth", CGROUP_DEPTH);
	if (err == 0 && mkdirat(dir, RUNNER_NAME, 0755) < 0 && errno != EEXIST)
		err = -errno;
	return err;
}

/* --- limits -------------------------------------------------------------- */

static struct cgroup_limits
limits_of(const struct control_user *s)
{
	return (struct cgroup_limits){
		.pids = s->tasks_max,
		.memory_bytes = s->memory_max_bytes,
		.cpu_percent = s->cpu_quota_percent,
		.cpu_weight = s->cpu_weight,
		.io_weight = s->io_weight,
		.again = true,
	};
}

static struct identity_group *
find_identity(const char *name)
{
	struct identity_group *g;

	TAILQ_FOREACH (g, &identities, link)
		if (strcmp(g->name, name) == 0)
			return g;
	return NULL;
}

static const char *
put_name(char name[CONTROL_GROUP_MAX], const char *prefix, uint64_t number)
{
	snprintf(name, CONTROL_GROUP_MAX, "%s%llu", prefix,
	    (unsigned long long)number);
	return name;
}

/* In version 1 a hierarchy that has limited nothing would serve nothing. */
static int
open_identity(const struct control_user *s, const struct identity_group *g,
    struct cgroup *c)
{
	const struct cgroup_limits limits = limits_of(s);
	unsigned controllers = claim.controllers;
	struct cgroup above = all;
	char name[CONTROL_GROUP_MAX];
	int err;

	put_name(name, IDENTITY_GROUP_PREFIX, g->number);
	if (s->cpu_quota_percent == 0 && s->cpu_weight == 0 &&
	    s->limits_command_cpu == 0 && all.dirs[CGROUP_CPU] >= 0 &&
	    faccessat(all.dirs[CGROUP_CPU], name, F_OK, 0) < 0) {
		above.dirs[CGROUP_CPU] = -1;
		controllers &= ~(unsigned)CGROUP_COUNTS_CPU;
	}
	err = make_parent(&above, name, c);
	return err < 0 ? err : cgroup_limit(c, &limits, controllers);
}

void
session_cgroup_limit_all(const struct control_seal *seal)
{
	const struct cgroup_limits limits = { .pids = seal->all_tasks_max,
		.memory_bytes = seal->all_memory_max_bytes,
		.may_swap = true,
		.again = true };
	int err = cgroup_limit(
	    &all, &limits, cgroup_is_open(&all) ? claim.controllers : 0);

	if (err < 0)
		log_error(err, "control groups: the limits of all sessions");
}

void
session_cgroup_limit(const struct control_user *s)
{
	const struct identity_group *g = find_identity(s->name);
	struct cgroup c = CGROUP_NONE;
	int err = g == NULL ? 0 : open_identity(s, g, &c);

	cgroup_close(&c);
	if (err < 0)
		log_error(err, "control groups: the limits of %s", s->name);
}

/* --- a session ----------------------------------------------------------- */

static struct identity_group *
take_identity(const char *name)
{
	struct identity_group *g = find_identity(name);

	if (g == NULL) {
		g = xcalloc(1, sizeof(*g));
		snprintf(g->name, sizeof(g->name), "%s", name);
		g->number = ++identities_made;
		TAILQ_INSERT_TAIL(&identities, g, link);
	}
	g->sessions++;
	return g;
}

/* The last session of an identity takes its group with it. */
static void
give_identity(struct identity_group *g)
{
	char name[CONTROL_GROUP_MAX];

	if (--g->sessions > 0)
		return;
	cgroup_remove(&all, put_name(name, IDENTITY_GROUP_PREFIX, g->number));
	TAILQ_REMOVE(&identities, g, link);
	free(g);
}

static int
make_session(const struct control_user *s, const struct identity_group *g,
    uint64_t number, struct cgroup *c)
{
	struct cgroup identity = CGROUP_NONE;
	char name[CONTROL_GROUP_MAX];
	int err = open_identity(s, g, &identity);

	if (err == 0)
		err = cgroup_make(
		    &identity, put_name(name, SESSION_GROUP_PREFIX, number), c);
	if (err == 0)
		err = make_leaf(c);
	if (err == 0)
		err = delegate(c, s->uid, s->gid);
	cgroup_close(&identity);
	return err;
}

int
session_cgroup_for(const struct control_user *s, uint64_t number,
    uint64_t *identity, struct cgroup *c)
{
	struct identity_group *g;
	int err;

	*c = (struct cgroup)CGROUP_NONE;
	if (needed_by(s) & ~claim.controllers)
		return -EOPNOTSUPP;
	if (!cgroup_is_open(&all))
		return 0;
	g = take_identity(s->name);
	*identity = g->number;
	err = make_session(s, g, number, c);
	if (err == 0)
		return 0;
	cgroup_close(c);
	session_cgroup_close(s->name, number);
	if (needed_by(s) != 0)
		return err;
	log_warn(err, "control group of a session of %s: it has none", s->name);
	return 0;
}

/* In version 1 all processes have ended: with their pid namespace, or as
 * orphans. */
void
session_cgroup_close(const char *identity, uint64_t number)
{
	struct identity_group *g = find_identity(identity);
	char name[CONTROL_GROUP_MAX], path[sizeof(name) + 16];
	struct cgroup c;
	int err;

	if (g == NULL)
		return; /* it has none */
	err = cgroup_make(
	    &all, put_name(name, IDENTITY_GROUP_PREFIX, g->number), &c);
	put_name(name, SESSION_GROUP_PREFIX, number);
	snprintf(path, sizeof(path), "%s/cgroup.kill", name);
	if (err == 0 && c.dirs[CGROUP_UNIFIED] >= 0 &&
	    faccessat(c.dirs[CGROUP_UNIFIED], name, F_OK, 0) == 0)
		err = write_whole(c.dirs[CGROUP_UNIFIED], path, "1");
	if (err < 0)
		log_error(err, "control group %s: killing it", name);
	err = cgroup_remove_tree(&c, name);
	if (err < 0)
		log_warn(err, "control group %s: removing it", name);
	cgroup_close(&c);
	give_identity(g);
}
