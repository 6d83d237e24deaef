/* SPDX-License-Identifier: ISC */
#include "sandbox.h"

#include <event2/event.h>

#include "children.h"
#include "command_cgroup.h"
#include "inside.h"
#include "network_list.h"
#include "seqpacket.h"
#include "view.h"

/*
 * A sandbox answers in milliseconds. After this time it is stuck, perhaps on a
 * file system that does not respond.
 */
#define ANSWER_SECONDS 20

/*
 * The event loop waits for the answer, and so do all requests of the session.
 * So a sandbox that is stopped by a signal is killed once two checks this far
 * apart find it stopped. After that, its end is awaited for at most KILLED_MS.
 */
#define LOOK_MS	  100
#define KILLED_MS 1000

/* Finds none after an upgrade: it would be of another version. */
int
sandbox_program(const char *name)
{
	static const char runner[] = "/execd-runner";
	char path[PATH_MAX];
	ssize_t n =
	    readlink("/proc/self/exe", path, PATH_MAX - strlen(name) - 1);
	char *last;

	if (n < 0)
		return -1;
	path[n] = '\0';
	last = strrchr(path, '/');
	if (last == NULL || strcmp(last, runner) != 0)
		return -1;
	strcpy(last, name);
	return open(path, O_PATH | O_CLOEXEC);
}

/*
 * A sandbox that makes a user namespace itself has a program of its own name,
 * because AppArmor knows programs by their names (contrib/apparmor). The file
 * is opened now, for an upgrade replaces it. Where that has happened, or there
 * is none, the other name serves.
 */
static int
program_of(int userns, int program)
{
	int own = userns < 0 ? sandbox_program("/execd-sandbox") : -1;

	return own >= 0 ? own : program;
}

void
sandbox_pool_init(struct sandbox_pool *pool, struct event_base *base,
    int userns, int program, const struct sandbox_options *options,
    bool (*give_up)(void *owner, const struct sandbox *n), void *owner)
{
	*pool = (struct sandbox_pool){ .base = base,
		.userns = userns,
		.program = program_of(userns, program),
		.options = *options,
		.give_up = give_up,
		.changes_fd = -1,
		.owner = owner };
	pool->options.userns = userns >= 0;
	sandbox_mounts_init(&pool->mounts);
	TAILQ_INIT(&pool->sandboxes);
}

static void
sandbox_free(struct sandbox_pool *pool, struct sandbox *n)
{
	TAILQ_REMOVE(&pool->sandboxes, n, link);
	pool->count--;
	if (n->watch.pid > 0)
		kill(n->watch.pid, SIGKILL);
	reaper_remove(&n->watch);
	close(n->fd);
	sandbox_unwatch(n);
	placeholders_clear(&n->placeholders);
	plan_clear(&n->plan);
	free(n);
}

void
sandbox_pool_clear(struct sandbox_pool *pool)
{
	while (!TAILQ_EMPTY(&pool->sandboxes))
		sandbox_free(pool, TAILQ_FIRST(&pool->sandboxes));
	sandbox_mounts_clear(&pool->mounts);
	if (pool->changes_fd >= 0) {
		event_free(pool->changed);
		close(steal_fd(&pool->changes_fd));
	}
}

/* --- finding ------------------------------------------------------------ */

static bool
same_mount(const struct plan_mount *a, const struct plan_mount *b)
{
	if (plan_is_placeholder(a))
		return a->kind == b->kind && strcmp(a->path, b->path) == 0;
	return a->kind == b->kind && a->reopened == b->reopened &&
	       a->seen.type == b->seen.type &&
	       a->seen.device == b->seen.device &&
	       a->seen.inode == b->seen.inode && a->scratch == b->scratch &&
	       strcmp(a->path, b->path) == 0;
}

static bool
same_hosts(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_plan(const struct plan *a, const struct plan *b)
{
	if (a->base != b->base || a->network != b->network ||
	    !same_hosts(a->hosts, b->hosts) || a->minimal != b->minimal ||
	    a->deny_proc != b->deny_proc || a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!same_mount(&a->mounts[i], &b->mounts[i]))
			return false;
	return true;
}

/* --- starting ----------------------------------------------------------- */

/*
 * Runs on the runner's memory until exec, and never returns. The sandbox gets a
 * user namespace, or makes one.
 */
static void __attribute__((noreturn))
child(int fd, const struct sandbox_pool *pool)
{
	char *argv[] = { (char *)(uintptr_t) "execd-files",
		(char *)(uintptr_t) "--sandbox", NULL };
	bool has_userns = pool->userns >= 0;
	int userns = pool->userns, program = pool->program;
	sigset_t unblocked;

	sigemptyset(&unblocked);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Each may have the number of the other's place. */
	fd = fcntl(fd, F_DUPFD, SANDBOX_USERNS_FD + 1);
	program = fcntl(program, F_DUPFD, SANDBOX_USERNS_FD + 1);
	if (has_userns)
		userns = fcntl(userns, F_DUPFD, SANDBOX_USERNS_FD + 1);
	if (fd < 0 || dup2(fd, CONTROL_FD) < 0 ||
	    (has_userns && (userns < 0 || dup2(userns, SANDBOX_USERNS_FD) < 0)))
		_exit(127);
	close_range(
	    (unsigned)CONTROL_FD + 1 + has_userns, ~0u, CLOSE_RANGE_CLOEXEC);
	/* It passes descriptors on as this program does, and limits its
	 * commands itself. */
	execveat(program, "", argv, pool->homes, AT_EMPTY_PATH);
	_exit(127);
}

static int
start(struct sandbox_pool *pool, struct sandbox *n)
{
	const struct timeval wait = { .tv_sec = ANSWER_SECONDS };
	const struct timeval look = { .tv_usec = LOOK_MS * 1000 };
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	if (setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) <
		0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &look, sizeof(look)) <
		0)
		log_fatal_errno(-errno, "setsockopt");
	pid = vfork();
	if (pid == 0)
		child(pair[1], pool);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -errno;
	}
	n->fd = pair[0];
	reaper_add(&n->watch, pid, NULL); /* find() skips one that ended */
	TAILQ_INSERT_HEAD(&pool->sandboxes, n, link);
	pool->count++;
	return 0;
}

/* --- requests ----------------------------------------------------------- */

/* Ends the sandbox; what runs in its namespaces continues. */
static void
retire(struct sandbox *n)
{
	if (n->watch.pid > 0)
		kill(n->watch.pid, SIGKILL);
	reaper_remove(&n->watch);
}

void
sandbox_pool_change(
    struct sandbox_pool *pool, const struct sandbox_options *options)
{
	struct sandbox *n;

	if (memcmp(&pool->options, options, sizeof(*options)) == 0)
		return;
	pool->options = *options;
	TAILQ_FOREACH (n, &pool->sandboxes, link)
		retire(n);
}

/* --- a sandbox that ended without an answer ----------------------------- */

static bool
is_named(pid_t pid, const char *const *names, size_t n)
{
	char path[sizeof("/proc/2147483647/comm")], name[32] = "";
	_cleanup_close_ int fd = -1;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);
	if (len <= 0 || name[len - 1] != '\n')
		return false;
	name[len - 1] = '\0';
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/*
 * Kills a child of the runner that the runner was not told of. The children of
 * a sandbox are the runner's, and it watches all others. A client's command
 * with one of these names whose parent has ended is killed, too.
 */
static void
end_untold(pid_t pid, void *arg)
{
	static const char *const names[] = { "execd-init", "execd-sandbox",
		"execd-files" };

	if (!reaper_is_watched(pid) && is_named(pid, names, nitems(names)))
		kill(pid, SIGKILL);
}

/*
 * The start is answered with an error, so nothing of it may run. When an init
 * ends, everything that it started ends, too.
 */
static void
end_lost_start(struct sandbox *n)
{
	int err = n->lost ? children_each(end_untold, NULL) : 0;

	if (err < 0)
		log_error(err, "looking for what a sandbox has started");
}

/* --- a sandbox that is stopped ------------------------------------------ */

static bool
is_held(struct sandbox *n)
{
	if (!reaper_is_stopped(&n->watch))
		return false;
	poll(NULL, 0, LOOK_MS);
	if (!reaper_is_stopped(&n->watch))
		return false;
	log_error(0, "a sandbox was stopped by a signal: killing it");
	kill(n->watch.pid, SIGKILL);
	return true;
}

/*
 * Called each LOOK_MS while a request or its answer is waited for. A sandbox
 * that is stopped is killed, and then the channel ends soon.
 */
static bool
waits_on(void *arg)
{
	struct sandbox *n = arg;

	if (is_held(n))
		n->wait_until_ms = now_ms() + KILLED_MS;
	return now_ms() < n->wait_until_ms;
}

/* Waits until the answer or the sandbox's end. Returns 0 or -ETIMEDOUT. */
static int
await_answer(struct sandbox *n)
{
	struct pollfd pfd = { .fd = n->fd, .events = POLLIN };

	while (poll(&pfd, 1, LOOK_MS) == 0)
		if (!waits_on(n))
			return -ETIMEDOUT;
	return 0;
}

/*
 * Sends a request and receives the answer. Sets n->lost unless the request was
 * certainly not carried out: it was not sent as a whole, or the sandbox ended
 * before it read all of it (ECONNRESET).
 */
static int
exchange(struct sandbox *n, const struct buf *request, const int *fds,
    size_t nfds, struct buf *answer, int *got, size_t *ngot)
{
	const struct sandbox_patience patience = { waits_on, n };
	bool sent;
	int err;

	n->wait_until_ms = now_ms() + ANSWER_SECONDS * 1000;
	err = is_held(n) ? -ECONNRESET
			 : sandbox_send(n->fd, request, fds, nfds, &patience);
	sent = err == 0;
	if (err == 0)
		err = await_answer(n);
	if (err == 0)
		err = sandbox_recv(n->fd, answer, got, ngot);
	n->lost = sent && err < 0 && err != -ECONNRESET;
	return err;
}

/*
 * Like sandbox_ask(). The answer must bring nbrought descriptors; the caller
 * owns them if 0 is returned.
 */
static int
ask(struct sandbox *n, struct buf *request, const int *fds, size_t nfds,
    struct sandbox_answer *a, int *brought, size_t nbrought)
{
	int got[SANDBOX_FDS_MAX], err;
	struct buf_reader r;
	size_t ngot = 0;
	struct buf b;

	*a = (struct sandbox_answer){ .enforcing = true };
	buf_init(&b, SANDBOX_MESSAGE_MAX);
	err = exchange(n, request, fds, nfds, &b, got, &ngot);
	buf_reader_init(&r, b.data, b.len);
	if (err == 0 && (err = sandbox_answer_get(&r, a)) < 0)
		n->lost = true;
	if (err == 0 && a->err == 0 && ngot != nbrought)
		err = -EBADMSG;
	else if (err == 0 && a->err == 0)
		for (; ngot > 0; ngot--)
			brought[ngot - 1] = got[ngot - 1];
	while (ngot > 0)
		close(got[--ngot]);
	buf_clear(&b);
	buf_clear(request);
	if (err == 0)
		return a->err;
	/* Nobody knows what the sandbox did, so it gets no more requests. */
	log_error(err, "a sandbox does not answer");
	snprintf(a->step, sizeof(a->step), "its process does not answer");
	retire(n);
	end_lost_start(n);
	return err == -EPIPE ? -EIO : err;
}

/*
 * Sends a request, waits for its answer and clears
 * `request`. Returns 0 or -errno.
 */
static int
sandbox_ask(struct sandbox *n, struct buf *request, const int *fds, size_t nfds,
    struct sandbox_answer *a)
{
	return ask(n, request, fds, nfds, a, NULL, 0);
}

/*
 * Adds the descriptors that join the group's hierarchies, and the directory of
 * its version 2 group. Returns how many.
 */
static size_t
put_group(const struct group *g, int *fds, uint8_t *joins)
{
	size_t n = 0;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (g->joins[i] < 0)
			continue;
		fds[n++] = g->joins[i];
		*joins |= (uint8_t)(1u << i);
	}
	if (g->joins[CGROUP_UNIFIED] >= 0)
		fds[n++] = g->cgroup.dirs[CGROUP_UNIFIED];
	return n;
}

int
sandbox_start(struct sandbox *n, const struct sandbox_command *c,
    const int stdio[3], const struct group *group, int given, int *terminal,
    struct sandbox_answer *a)
{
	int fds[SANDBOX_FDS_MAX] = { stdio[0], stdio[1], stdio[2] };
	int handover[2] = { -1, -1 };
	size_t nfds = 3;
	uint8_t joins = 0;
	struct buf b;
	int err = c->tty ? seqpacket_pair(handover) : 0;

	*terminal = -1;
	if (err < 0) {
		*a = (struct sandbox_answer){ .err = err, .step = "a socket" };
		return err;
	}
	if (group != NULL)
		nfds += put_group(group, fds + nfds, &joins);
	if (c->tty)
		fds[nfds++] = handover[1];
	if (c->given)
		fds[nfds++] = given;
	buf_init(&b, SANDBOX_MESSAGE_MAX);
	sandbox_start_put(&b, c, joins, &n->placeholders);
	err = sandbox_ask(n, &b, fds, nfds, a);
	if (c->tty && err == 0)
		*terminal = inside_terminal_take(handover[0]);
	for (int i = 0; c->tty && i < 2; i++)
		close(handover[i]);
	if (err < 0 && a->stale)
		retire(n);
	return err;
}

bool
sandbox_is_stale(const struct sandbox *n)
{
	return n->watch.pid <= 0 && !n->lost;
}

int
sandbox_start_files(struct sandbox *n, int fd, struct sandbox_answer *a)
{
	const int fds[] = { fd, placeholders_lists() };
	struct buf b;

	buf_init(&b, SANDBOX_MESSAGE_MAX);
	sandbox_files_put(&b);
	return sandbox_ask(n, &b, fds, fds[1] >= 0 ? 2 : 1, a);
}

int
sandbox_socket(struct sandbox *n, const struct loopback_socket *s, int *fd)
{
	return n == NULL ? loopback_sockets(s, 1, fd)
			 : sandbox_sockets(n, s, 1, fd);
}

int
sandbox_sockets(
    struct sandbox *n, const struct loopback_socket *s, size_t count, int *fds)
{
	struct sandbox_answer a;
	struct buf b;

	if (!n->loopback)
		return -EOPNOTSUPP;
	if (n->watch.pid <= 0)
		return -ESTALE;
	buf_init(&b, SANDBOX_MESSAGE_MAX);
	sandbox_sockets_put(&b, s, count);
	return ask(n, &b, NULL, 0, &a, fds, count);
}

/* --- one sandbox per plan ----------------------------------------------- */

void
sandbox_log_error(int err, const char *step)
{
	log_error(err == -ESTALE ? 0 : err, "sandbox: %s", step);
}

static void
failed(struct sandbox_pool *pool, int err, const char *step)
{
	sandbox_log_error(err, step);
	snprintf(pool->step, sizeof(pool->step), "%s", step);
}

static int
build(struct sandbox_pool *pool, struct sandbox *n, bool landlock_only)
{
	struct sandbox_options options = pool->options;
	struct sandbox_answer a;
	struct buf b;
	int err;

	options.landlock_only = landlock_only;
	options.listed = n->plan.hosts != NULL;
	options.redirected = network_list_is_transparent(n->plan.hosts);
	buf_init(&b, SANDBOX_MESSAGE_MAX);
	sandbox_build_put(&b, &options, &n->plan);
	err = sandbox_ask(
	    n, &b, &pool->own_ports, options.guards_ports ? 1 : 0, &a);
	n->landlock_abi = a.landlock_abi;
	n->landlock_empty = a.landlock_empty;
	n->loopback = a.loopback;
	n->own_unix = a.own_unix;
	n->names = a.names;
	n->tmpdir = a.has_tmp ? VIEW_TMP : NULL;
	if (err == 0 && n->plan.network && pool->open_port && !a.guards_ports)
		log_warn(0, "sandbox: nothing here keeps a command with a "
			    "network from execd's own port, where it leaves "
			    "its sandbox: use a token");
	n->landlock_only = pool->no_namespaces = a.no_namespaces;
	n->no_proc = a.no_proc;
	if (err < 0)
		failed(pool, err, a.step);
	return err;
}

/* Frees the least recently used ones that nobody uses, as long as there are
 * `most` or more, and outdated ones in any case. */
static void
free_idle(struct sandbox_pool *pool, unsigned most)
{
	struct sandbox *n = TAILQ_LAST(&pool->sandboxes, sandbox_list), *next;

	for (; n != NULL; n = next) {
		next = TAILQ_PREV(n, sandbox_list, link);
		if ((pool->count >= most || n->outdated) && n->users == 0 &&
		    (n->helpers == 0 || pool->give_up(pool->owner, n)))
			sandbox_free(pool, n);
	}
}

void
sandbox_pool_let_go(struct sandbox_pool *pool)
{
	free_idle(pool, SANDBOXES_KEPT + 1);
}

/* Returns false if the pool is full and all are in use. */
static bool
make_room(struct sandbox_pool *pool)
{
	free_idle(pool, SANDBOXES_KEPT);
	return pool->count < SANDBOXES_MAX;
}

bool
sandbox_is_intact(struct sandbox *n)
{
	struct sandbox_answer a;
	struct buf b;
	int err;

	if (n->watch.pid <= 0)
		return false;
	buf_init(&b, SANDBOX_MESSAGE_MAX);
	sandbox_check_put(&b);
	err = sandbox_ask(n, &b, NULL, 0, &a);
	if (err < 0)
		log_debug("sandbox: a view is discarded: %s", a.step);
	if (err < 0 && n->watch.pid > 0)
		retire(n);
	return err == 0;
}

/* Finds an intact sandbox for the plan. Others with this plan are retired. */
static struct sandbox *
find(struct sandbox_pool *pool, const struct plan *plan, bool check)
{
	struct sandbox *n;

	TAILQ_FOREACH (n, &pool->sandboxes, link) {
		if (n->watch.pid <= 0 || !same_plan(&n->plan, plan) ||
		    (n->outdated && n->users == 0))
			continue;
		if (placeholders_match(&n->placeholders, plan) &&
		    (!check || sandbox_is_intact(n)))
			return n;
		retire(n);
	}
	return NULL;
}

int
sandbox_get(struct sandbox_pool *pool, struct plan *plan, bool check,
    bool landlock_only, struct sandbox **sandbox)
{
	struct sandbox *n;
	int err;

	sandbox_pool_look(pool);
	n = find(pool, plan, check);
	pool->no_namespaces = false;
	if (n != NULL) {
		TAILQ_REMOVE(&pool->sandboxes, n, link);
		TAILQ_INSERT_HEAD(&pool->sandboxes, n, link);
		*sandbox = n;
		return 0;
	}
	if (!make_room(pool)) {
		log_error(0, "sandbox: %d policies of this session are in use",
		    SANDBOXES_MAX);
		snprintf(pool->step, sizeof(pool->step), "too many policies");
		return -EUSERS;
	}
	n = xcalloc(1, sizeof(*n));
	n->pool = pool;
	err = start(pool, n);
	if (err < 0) {
		failed(pool, err, "starting its sandbox");
		free(n);
		return err;
	}
	n->plan = *plan;
	*plan = (struct plan){ 0 };
	placeholders_init(&n->placeholders, &n->plan);
	sandbox_pool_watch(pool);
	sandbox_watch(n);
	err = build(pool, n, landlock_only);
	if (n->landlock_only) /* without mounts */
		sandbox_unwatch(n);
	if (err < 0) {
		sandbox_free(pool, n);
		return err;
	}
	*sandbox = n;
	return 0;
}

/* --- its placeholders --------------------------------------------------- */

/*
 * They are made and covered before the first process, and left with the last,
 * so that nobody else sees them among his files for longer. What covers them in
 * the view goes with them.
 */

static int
cover(struct sandbox *n)
{
	struct sandbox_answer a;
	struct buf b;
	int err;

	buf_init(&b, SANDBOX_MESSAGE_MAX);
	if (!sandbox_cover_put(&b, &n->placeholders)) {
		buf_clear(&b);
		return 0;
	}
	err = sandbox_ask(n, &b, NULL, 0, &a);
	if (err == 0)
		placeholders_covered(&n->placeholders);
	else
		failed(n->pool, err, a.step);
	if (err < 0 && a.stale)
		retire(n);
	return err;
}

int
sandbox_use(struct sandbox *n, enum sandbox_use use)
{
	bool takes = use != SANDBOX_USE_READS && n->placeholders.count > 0 &&
		     !n->placeholders.taken;
	char step[SANDBOX_STEP_MAX];
	int err = takes ? placeholders_take(&n->placeholders, step) : 0;

	if (err < 0)
		failed(n->pool, err, step);
	else if (use == SANDBOX_USE_MAKES)
		err = cover(n);
	if (err == 0)
		n->users++;
	else if (n->users == 0)
		placeholders_leave(&n->placeholders);
	return err;
}

void
sandbox_release(struct sandbox *n)
{
	if (--n->users > 0)
		return;
	placeholders_leave(&n->placeholders);
	if (n->outdated || n->pool->count > SANDBOXES_KEPT)
		sandbox_pool_tidy(n->pool);
}
