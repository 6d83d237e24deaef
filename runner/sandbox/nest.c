/*
 * The runner's side of its nests.
 */
#include "nest.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "control.h"
#include "descriptors.h"
#include "log.h"

/* A nest answers in milliseconds; beyond this it is stuck, on a file system
 * that does not answer perhaps. */
#define ANSWER_SECONDS 20

void
nest_pool_init(struct nest_pool *pool, int door,
    const struct nest_options *options,
    bool (*give_up)(void *owner, const struct nest *n), void *owner)
{
	*pool = (struct nest_pool){ .door = door,
		.options = *options,
		.give_up = give_up,
		.owner = owner };
	pool->options.door = door >= 0;
	TAILQ_INIT(&pool->nests);
}

static void
nest_free(struct nest_pool *pool, struct nest *n)
{
	TAILQ_REMOVE(&pool->nests, n, link);
	pool->count--;
	if (n->watch.pid > 0)
		kill(n->watch.pid, SIGKILL);
	reaper_remove(&n->watch);
	close(n->fd);
	for (size_t i = 0; i < n->nmasks; i++)
		mask_leave(&n->masks[i]);
	free(n->masks);
	plan_clear(&n->plan);
	free(n);
}

void
nest_pool_clear(struct nest_pool *pool)
{
	while (!TAILQ_EMPTY(&pool->nests))
		nest_free(pool, TAILQ_FIRST(&pool->nests));
}

/* --- finding ------------------------------------------------------------ */

static bool
same_mount(const struct plan_mount *a, const struct plan_mount *b)
{
	return a->kind == b->kind && a->reopened == b->reopened &&
	       a->seen.type == b->seen.type &&
	       a->seen.device == b->seen.device &&
	       a->seen.inode == b->seen.inode && strcmp(a->path, b->path) == 0;
}

static bool
same_plan(const struct plan *a, const struct plan *b)
{
	if (a->base != b->base || a->network != b->network ||
	    a->minimal != b->minimal || a->deny_proc != b->deny_proc ||
	    a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!same_mount(&a->mounts[i], &b->mounts[i]))
			return false;
	return true;
}

/* --- starting ----------------------------------------------------------- */

static void
ended(struct reaper_watch *w, int wait_status, const struct rusage *usage)
{
	w->pid = 0; /* and never found again */
}

/* Never returns; runs on the runner's memory until it executes. */
static void __attribute__((noreturn)) child(int fd, int door)
{
	char *none[] = { NULL };
	char *argv[] = { (char *)(uintptr_t) "execd-runner",
		(char *)(uintptr_t) "--nest", NULL };
	sigset_t unblocked;

	sigemptyset(&unblocked);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Out of the way of both numbers first. */
	if (door >= 0 && dup2(door, NEST_DOOR_FD) < 0)
		_exit(127);
	if (dup2(fd, CONTROL_FD) < 0)
		_exit(127);
	close_from(door >= 0 ? NEST_DOOR_FD + 1 : CONTROL_FD + 1);
	descriptors_restore();
	execve("/proc/self/exe", argv, none);
	_exit(127);
}

static int
start(struct nest_pool *pool, struct nest *n)
{
	const struct timeval wait = { .tv_sec = ANSWER_SECONDS };
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	if (setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) <
		0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) <
		0)
		log_fatal_errno(-errno, "setsockopt");
	pid = vfork();
	if (pid == 0)
		child(pair[1], pool->door);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -errno;
	}
	n->fd = pair[0];
	reaper_add(&n->watch, pid, ended);
	TAILQ_INSERT_HEAD(&pool->nests, n, link);
	pool->count++;
	return 0;
}

/* --- orders ------------------------------------------------------------- */

/* What runs in its namespaces goes on. */
static void
retire(struct nest *n)
{
	if (n->watch.pid > 0)
		kill(n->watch.pid, SIGKILL);
	reaper_remove(&n->watch);
}

static int
ask(struct nest *n, struct buf *order, const int *fds, size_t nfds,
    struct nest_answer *a)
{
	int got[NEST_FDS_MAX], err;
	struct buf_reader r;
	size_t ngot = 0;
	struct buf b;

	*a = (struct nest_answer){ .enforcing = true };
	buf_init(&b, NEST_MESSAGE_MAX);
	err = nest_send(n->fd, order, fds, nfds);
	if (err == 0)
		err = nest_recv(n->fd, &b, got, &ngot);
	buf_reader_init(&r, b.data, b.len);
	if (err == 0)
		err = nest_answer_get(&r, a);
	while (ngot > 0)
		close(got[--ngot]);
	buf_clear(&b);
	buf_clear(order);
	if (err == 0)
		return a->err;
	/* Nobody knows what it did: it is not asked again. */
	log_error(err, "the sandbox's nest does not answer");
	retire(n);
	return err == -EPIPE ? -EIO : err;
}

int
nest_start(struct nest *n, const struct nest_command *c, const int stdio[3],
    const int *joins, struct nest_answer *a)
{
	int fds[NEST_FDS_MAX] = { stdio[0], stdio[1], stdio[2] };
	size_t nfds = 3;
	struct buf b;

	for (int i = 0; joins != NULL && i < CGROUP_HIERARCHIES; i++)
		if (joins[i] >= 0)
			fds[nfds++] = joins[i];
	buf_init(&b, NEST_MESSAGE_MAX);
	nest_start_put(&b, c);
	return ask(n, &b, fds, nfds, a);
}

int
nest_start_files(struct nest *n, int fd, struct nest_answer *a)
{
	struct buf b;

	buf_init(&b, NEST_MESSAGE_MAX);
	nest_files_put(&b);
	return ask(n, &b, &fd, 1, a);
}

/* --- masks -------------------------------------------------------------- */

static void
find_masks(struct nest *n)
{
	const struct plan *plan = &n->plan;

	n->masks = xcalloc(plan->count, sizeof(*n->masks));
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		if (plan_is_mask(m))
			n->masks[n->nmasks++] = (struct mask){ .path = m->path,
				.directory = m->kind == PLAN_MASK_DIRECTORY,
				.fd = -1 };
	}
}

static void
leave_masks(struct nest *n)
{
	for (size_t i = 0; i < n->nmasks; i++)
		mask_leave(&n->masks[i]);
}

static void
note_masks(struct nest *n)
{
	struct nest_pool *pool = n->pool;

	if (n->noted || pool->note == NULL)
		return;
	for (size_t i = 0; i < n->nmasks; i++)
		pool->note(pool->owner, n->masks[i].path);
	n->noted = true;
}

static int
cover_masks(struct nest *n)
{
	struct nest_answer a;
	struct buf b;
	int err = 0;

	note_masks(n);
	for (size_t i = 0; i < n->nmasks && err == 0; i++) {
		err = mask_take(&n->masks[i]);
		if (err < 0)
			log_error(err, "sandbox: making %s", n->masks[i].path);
	}
	if (err < 0)
		return err;
	buf_init(&b, NEST_MESSAGE_MAX);
	nest_cover_put(&b, n->masks, n->nmasks);
	err = ask(n, &b, NULL, 0, &a);
	if (err < 0)
		log_error(err, "sandbox: %s", a.step);
	return err;
}

int
nest_use(struct nest *n)
{
	int err;

	if (n->users == 0 && n->nmasks > 0) {
		err = cover_masks(n);
		if (err < 0) {
			leave_masks(n);
			return err;
		}
	}
	n->users++;
	return 0;
}

void
nest_release(struct nest *n)
{
	if (--n->users == 0)
		leave_masks(n);
}

/* --- one per plan ------------------------------------------------------ */

static int
build(struct nest_pool *pool, struct nest *n)
{
	struct nest_answer a;
	struct buf b;
	int err;

	buf_init(&b, NEST_MESSAGE_MAX);
	nest_build_put(&b, &pool->options, &n->plan);
	err = ask(n, &b, NULL, 0, &a);
	n->landlock_abi = a.landlock_abi;
	if (err < 0)
		log_error(err, "sandbox: %s", a.step);
	return err;
}

/* The oldest that nobody uses. False: all are in use, and too many. */
static bool
make_room(struct nest_pool *pool)
{
	struct nest *n;

	if (pool->count < NESTS_MAX)
		return true;
	TAILQ_FOREACH_REVERSE(n, &pool->nests, nest_list, link)
	{
		if (n->users > 0 ||
		    (n->helpers > 0 && !pool->give_up(pool->owner, n)))
			continue;
		nest_free(pool, n);
		return true;
	}
	return false;
}

/* What somebody replaced under it is not protected in it any more. */
static bool
is_intact(struct nest *n)
{
	struct nest_answer a;
	struct buf b;
	int err;

	buf_init(&b, NEST_MESSAGE_MAX);
	nest_check_put(&b, n->users > 0);
	err = ask(n, &b, NULL, 0, &a);
	if (err < 0)
		log_debug("sandbox: a view is given up: %s", a.step);
	return err == 0;
}

/* An intact one. Those that are not are used no more. */
static struct nest *
find(struct nest_pool *pool, const struct plan *plan)
{
	struct nest *n;

	TAILQ_FOREACH (n, &pool->nests, link) {
		if (n->watch.pid <= 0 || !same_plan(&n->plan, plan))
			continue;
		if (is_intact(n))
			return n;
		retire(n);
	}
	return NULL;
}

int
nest_get(struct nest_pool *pool, struct plan *plan, struct nest **nest)
{
	struct nest *n = find(pool, plan);
	int err;

	if (n != NULL) {
		TAILQ_REMOVE(&pool->nests, n, link);
		TAILQ_INSERT_HEAD(&pool->nests, n, link);
		*nest = n;
		return 0;
	}
	if (!make_room(pool)) {
		log_error(0, "sandbox: %d policies of this session are in use",
		    NESTS_MAX);
		return -EUSERS;
	}
	n = xcalloc(1, sizeof(*n));
	n->pool = pool;
	err = start(pool, n);
	if (err < 0) {
		log_error(err, "sandbox: starting its nest");
		free(n);
		return err;
	}
	n->plan = *plan;
	*plan = (struct plan){ 0 };
	err = build(pool, n);
	if (err < 0) {
		nest_free(pool, n);
		return err;
	}
	find_masks(n);
	*nest = n;
	return 0;
}
