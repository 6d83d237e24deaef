/* SPDX-License-Identifier: ISC */
/*
 * Root's runners, which are kept until a broker has heard of their end.
 */

#include "base.h"
#include "queue.h"
#include "root.h"
#include "saved.h"
#include "seqpacket.h"
#include "session_cgroup.h"

/* It stays a zombie until the broker has heard of its end, so that nothing else
 * can have its pid. */
struct kept {
	TAILQ_ENTRY(kept) link; /* runners */
	pid_t pid;
	int control_fd; /* the broker's end of its control channel */
	bool program;	/* a helper program of the broker, and no runner */
	bool orphan;	/* a program of an earlier broker; nobody asks for it */
	bool told;	/* the broker was told of its end */
	struct control_kept what;
};

static TAILQ_HEAD(, kept) runners = TAILQ_HEAD_INITIALIZER(runners);
static uint64_t groups_made; /* sessions so far, and the name of the last one */
static bool look; /* an end may be untold; to look costs a call for each */

static struct kept *
keep(pid_t pid, int control_fd)
{
	struct kept *k = xcalloc(1, sizeof(*k));

	k->pid = pid;
	k->what.pid = (uint32_t)pid;
	k->control_fd = control_fd;
	TAILQ_INSERT_TAIL(&runners, k, link);
	return k;
}

void
runners_keep_program(pid_t pid)
{
	keep(pid, -1)->program = true;
}

static void
save_one(struct saved *s, struct kept *k)
{
	SAVE(s, k->pid);
	saved_fd(s, &k->control_fd);
	SAVE(s, k->told);
	SAVE(s, k->program);
	SAVE(s, k->orphan);
	SAVE(s, k->what.uid);
	SAVE(s, k->what.group);
	SAVE(s, k->what.identity_group);
	saved_text(s, k->what.session_id, sizeof(k->what.session_id));
	saved_text(s, k->what.name, sizeof(k->what.name));
}

void
runners_save(struct saved *s)
{
	struct kept *k;
	uint32_t n = 0;

	TAILQ_FOREACH (k, &runners, link)
		n++;
	SAVE(s, groups_made);
	SAVE(s, n);
	k = TAILQ_FIRST(&runners);
	for (; n > 0 && !s->failed; n--, k = TAILQ_NEXT(k, link)) {
		if (s->mode == SAVED_READ)
			k = keep(0, -1);
		save_one(s, k);
		k->what.pid = (uint32_t)k->pid;
	}
}

/* Returns the pid, or -errno with the step that failed. */
static pid_t
run(const struct spawn_user *o, const char *session_id, uint64_t group,
    uint64_t *identity, int control_fd, struct cgroup *cgroup,
    const char **step)
{
	pid_t pid;
	int err;

	*step = "making the session's control group";
	err = session_cgroup_for(&o->who, group, identity, cgroup);
	if (err < 0)
		return err;
	*step = "starting the runner";
	pid = spawn_runner(o, group, session_id, control_fd, cgroup);
	if (pid < 0) {
		cgroup_close(cgroup);
		session_cgroup_close(o->who.name, group);
	}
	return pid;
}

pid_t
runners_start(const struct spawn_user *o, const struct control_start *start,
    struct control_runner_started *answer, int fds[RUNNERS_FDS_MAX],
    size_t *nfds)
{
	struct cgroup cgroup = CGROUP_NONE;
	const char *step = "a channel to the runner";
	int pair[2], err = seqpacket_pair(pair);
	struct kept *k;
	pid_t pid = err;

	if (err == 0) {
		answer->group = ++groups_made;
		pid = run(o, start->session_id, answer->group,
		    &answer->identity_group, pair[1], &cgroup, &step);
		close(pair[1]);
		if (pid < 0)
			close(pair[0]);
	}
	snprintf(answer->step, sizeof(answer->step), "%s", step);
	if (pid < 0)
		return pid;
	k = keep(pid, pair[0]);
	k->what.uid = o->who.uid;
	k->what.group = answer->group;
	k->what.identity_group = answer->identity_group;
	memcpy(
	    k->what.session_id, start->session_id, sizeof(k->what.session_id));
	memcpy(k->what.name, o->who.name, sizeof(k->what.name));
	fds[0] = pair[0];
	*nfds = 1 + cgroup_put(&cgroup, &answer->cgroups, fds + 1);
	return pid;
}

void
runners_at(uint32_t index, struct control_kept *kept, int *fd)
{
	struct kept *k;

	TAILQ_FOREACH (k, &runners, link)
		if (!k->program && index-- == 0)
			break;
	if (k == NULL)
		return;
	*kept = k->what;
	*fd = k->control_fd;
}

static struct kept *
find(pid_t pid)
{
	struct kept *k;

	TAILQ_FOREACH (k, &runners, link)
		if (k->pid == pid)
			break;
	return k;
}

bool
runners_have(pid_t pid)
{
	return find(pid) != NULL;
}

void
runners_kill(pid_t pid)
{
	if (find(pid) != NULL)
		kill(pid, SIGKILL);
}

void
runners_kill_all(void)
{
	struct kept *k;

	TAILQ_FOREACH (k, &runners, link)
		kill(k->pid, SIGKILL);
}

static void
forget(struct kept *k)
{
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	logs_end(k->pid);
	if (!k->program)
		session_cgroup_close(k->what.name, k->what.group);
	if (k->control_fd >= 0)
		close(k->control_fd);
	TAILQ_REMOVE(&runners, k, link);
	free(k);
}

int
runners_forget(pid_t pid)
{
	struct kept *k = find(pid);

	if (k == NULL || !k->told || k->orphan)
		return -ENOENT;
	forget(k);
	return 0;
}

void
runners_clear(void)
{
	struct kept *k;

	while ((k = TAILQ_FIRST(&runners)) != NULL)
		forget(k);
}

bool
child_has_ended(pid_t pid, siginfo_t *info)
{
	info->si_pid = 0;
	return waitid(P_PID, (id_t)pid, info, WEXITED | WNOHANG | WNOWAIT) ==
		   0 &&
	       info->si_pid != 0;
}

/* Returns 0, or -EAGAIN if nobody can be told now. */
static int
tell_exit(struct kept *k, const siginfo_t *info)
{
	const struct control_runner_status s = {
		.pid = (uint32_t)k->pid,
		.status = (uint32_t)(info->si_code == CLD_EXITED
					 ? info->si_status << 8
					 : info->si_status),
	};
	int err = broker_commands_tell(
	    root.serving.events, SPAWN_EXITED, &s, sizeof(s), NULL, 0);

	k->told = err == 0;
	return err == -EAGAIN ? err : 0;
}

void
runners_look(void)
{
	look = true;
}

bool
runners_tell_exits(void)
{
	struct kept *k, *next;
	siginfo_t info;
	int err = 0;

	if (!look)
		return true;
	look = false;
	for (k = TAILQ_FIRST(&runners); k != NULL && err == 0; k = next) {
		next = TAILQ_NEXT(k, link);
		if (k->told || !child_has_ended(k->pid, &info))
			continue;
		if (k->orphan)
			forget(k);
		else if (root.serving.events >= 0)
			err = tell_exit(k, &info);
	}
	look = err < 0;
	return !look;
}

void
runners_change_hands(void)
{
	struct kept *k;

	runners_look();
	TAILQ_FOREACH (k, &runners, link) {
		k->told = false;
		k->orphan = k->program;
		if (k->orphan)
			kill(k->pid, SIGKILL);
	}
}
