/* SPDX-License-Identifier: ISC */
/*
 * The runner's side of its helpers: start and end. The traffic is in
 * helper_relay.c.
 */
#include "helper_parts.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "descriptors.h"
#include "log.h"
#include "loop.h"
#include "sandbox.h"

/* The programs of the helpers. A file helper is execd-runner itself. */
static const struct helper_program {
	const char *name; /* for errors */
	const char *argv[3];
	bool environment; /* gets the session's environment */
} programs[HELPER_KINDS] = {
	[HELPER_FILES] = { "the file helper",
	    { "execd-runner", "--files", NULL }, false },
	[HELPER_HTTP] = { "execd-http", { "execd-http", NULL }, true },
};

const char *
helper_name(const struct helper *h)
{
	return programs[h->kind].name;
}

void
helper_forwarded_free(struct helper *h, struct forwarded *f)
{
	STAILQ_REMOVE(&h->waiting, f, forwarded, link);
	h->session->client.waiting--;
	rpc_id_clear(&f->id);
	if (f->spool != NULL && !f->sent)
		h->spools--;
	spool_free(f->spool);
	free(f);
}

static void
helper_free(struct helper *h)
{
	event_del(&h->in_event);
	event_del(&h->out_event);
	event_del(&h->look_event);
	close(h->fd);
	reaper_remove(&h->watch);
	buf_clear(&h->queue);
	while (!STAILQ_EMPTY(&h->waiting))
		helper_forwarded_free(h, STAILQ_FIRST(&h->waiting));
	free(h);
}

/* Requests sent to this helper will not be answered by it. */
static void
forget_files(struct helper *h)
{
	struct file_router *files = h->session->files;
	unsigned unanswered = h->answering;
	struct forwarded *f;

	STAILQ_FOREACH (f, &h->waiting, link)
		unanswered++;
	files->outstanding -= unanswered;
	file_router_forget(h->session, h);
	if (h->sandbox == NULL)
		return;
	if (unanswered > 0)
		sandbox_release(h->sandbox);
	h->sandbox->helpers--;
}

static void
stop(struct helper *h)
{
	struct session *s = h->session;

	TAILQ_REMOVE(&s->helpers, h, link);
	if (s->relaying == h)
		s->relaying = NULL;
	if (h->kind == HELPER_FILES)
		forget_files(h);
	if (h->watch.pid > 0)
		kill(h->watch.pid, SIGKILL);
	helper_free(h);
}

void
helper_stop_http(struct session *s)
{
	struct helper *h, *next;

	TAILQ_FOREACH_SAFE (h, &s->helpers, link, next)
		if (h->kind == HELPER_HTTP)
			stop(h);
}

void
helper_stop_all(struct session *s)
{
	while (!TAILQ_EMPTY(&s->helpers))
		stop(TAILQ_FIRST(&s->helpers));
	file_router_clear(s);
}

/*
 * Ends a failed helper. Half an answer cannot be taken back, and a client would
 * wait for the rest of a stream; in these cases the connection ends.
 */
static void
fail(struct helper *h, const char *how)
{
	struct session *s = h->session;
	const char *name = helper_name(h);
	struct forwarded *f;

	log_error(0, "%s %s", name, how);
	if (s->relaying == h || h->streams > 0) {
		session_detach(s, CHANNEL_END_RUNNER);
		return;
	}
	STAILQ_FOREACH (f, &h->waiting, link)
		reply_error(&s->client.channel, &f->id, RPC_INTERNAL,
		    "%s of this session %s", name, how);
	stop(h);
	file_router_resume(s);
}

void
helper_failed(struct helper *h)
{
	fail(h, "ended unexpectedly");
}

/* --- a helper that is stopped ------------------------------------------- */

static bool
owes_answer(const struct helper *h)
{
	return !STAILQ_EMPTY(&h->waiting) || h->session->relaying == h ||
	       h->streams > 0;
}

void
helper_look(struct helper *h)
{
	const struct timeval after = { .tv_sec = LOOK_SECONDS };

	if (!event_pending(&h->look_event, EV_TIMEOUT, NULL))
		loop_add(&h->look_event, &after);
}

/*
 * Ends a file helper that waits for a file system which does not answer. It
 * serves in order, so the first request is the one that waits.
 */
static void
replace_stuck(struct helper *h)
{
	const int seconds = LOOKS_STUCK * LOOK_SECONDS;
	struct session *s = h->session;
	struct forwarded *f = STAILQ_FIRST(&h->waiting);

	if (s->relaying == h || f == NULL) {
		fail(h, "waits for a file system, and is replaced");
		return;
	}
	log_warn(0, "a file system did not answer within %d s", seconds);
	reply_error(&s->client.channel, &f->id, RPC_INTERNAL,
	    "the file system did not answer within %d s (os error %d)", seconds,
	    ETIMEDOUT);
	while ((f = STAILQ_NEXT(f, link)) != NULL)
		reply_error(&s->client.channel, &f->id, RPC_INTERNAL,
		    "not carried out: the file helper was replaced, because a "
		    "file system did not answer the request before within "
		    "%d s (os error %d)",
		    seconds, ECANCELED);
	stop(h);
	file_router_resume(s);
}

/* Who waits for the client to read, or to write, does not wait for a disk. */
static bool
is_stuck(const struct helper *h, uint64_t *switches)
{
	return reaper_is_waiting(&h->watch, switches) &&
	       h->kind == HELPER_FILES && h->reading;
}

/*
 * There is no deadline for a request: a tree may be large, and a disk or a
 * server slow. But a helper that is stopped never answers, and one that did not
 * run at all is in a single system call. There its file system must answer.
 */
static void
look_cb(evutil_socket_t fd, short what, void *arg)
{
	struct helper *h = arg;
	uint64_t switches;
	bool same = is_stuck(h, &switches) && switches == h->switches;

	h->stopped = reaper_is_stopped(&h->watch) ? h->stopped + 1 : 0;
	h->stuck = same ? h->stuck + 1 : 0;
	h->switches = switches;
	if (!owes_answer(h))
		h->stopped = h->stuck = 0;
	else if (h->stopped >= LOOKS_STOPPED)
		fail(h, "was stopped by a signal, and is replaced");
	else if (h->stuck >= LOOKS_STUCK)
		replace_stuck(h);
	else
		helper_look(h);
}

/* The end of a helper is noticed by its socket; here it is only reaped. */
static void
ended(struct reaper_watch *w, int wait_status, const struct rusage *usage)
{
}

/*
 * The helper's child process. Never returns; runs in the runner's memory until
 * exec.
 */
static void __attribute__((noreturn))
child(const struct session *s, enum helper_kind kind, int fd)
{
	const struct helper_program *program = &programs[kind];
	char *const *env = program->environment ? s->env : s->homes;
	char **argv = (char **)(uintptr_t)program->argv;
	sigset_t unblocked;

	sigemptyset(&unblocked);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, CONTROL_FD) < 0)
		_exit(127);
	descriptors_restore();
	if (kind == HELPER_HTTP)
		execveat(s->http_program, "", argv, env, AT_EMPTY_PATH);
	else
		execve("/proc/self/exe", argv, env);
	_exit(127);
}

/*
 * Starts a file helper in a sandbox, without exec, because the program may not
 * be visible there.
 */
static pid_t
start_in_sandbox(struct sandbox *sandbox, int fd)
{
	struct sandbox_answer a;
	int err = sandbox_start_files(sandbox, fd, &a);

	if (err == 0)
		return a.command;
	log_error(err, "sandbox: %s", a.step);
	errno = -err;
	return -1;
}

static pid_t
start_plain(const struct session *s, enum helper_kind kind, int fd)
{
	pid_t pid = vfork();

	if (pid == 0)
		child(s, kind, fd);
	return pid;
}

static struct helper *
start(struct session *s, enum helper_kind kind, struct sandbox *sandbox)
{
	struct helper *h;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return NULL;
	pid = sandbox != NULL ? start_in_sandbox(sandbox, pair[1])
			      : start_plain(s, kind, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return NULL;
	}
	h = xcalloc(1, sizeof(*h));
	h->kind = kind;
	h->session = s;
	h->sandbox = sandbox;
	if (sandbox != NULL)
		sandbox->helpers++;
	h->fd = pair[0];
	set_nonblock(h->fd);
	buf_init(&h->queue, QUEUE_MAX_BYTES);
	STAILQ_INIT(&h->waiting);
	reaper_add(&h->watch, pid, ended);
	event_assign(&h->in_event, s->base, h->fd, EV_READ | EV_PERSIST,
	    helper_in_cb, h);
	event_assign(&h->out_event, s->base, h->fd, EV_WRITE, helper_out_cb, h);
	event_assign(&h->look_event, s->base, -1, 0, look_cb, h);
	loop_watch(&h->in_event, &h->reading, true);
	TAILQ_INSERT_HEAD(&s->helpers, h, link);
	return h;
}

struct helper *
helper_get(struct session *s, enum helper_kind kind, struct sandbox *sandbox)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->kind == kind && h->sandbox == sandbox)
			return h;
	return start(s, kind, sandbox);
}

struct sandbox *
helper_sandbox(const struct helper *h)
{
	return h->sandbox;
}

bool
helper_give_up(struct session *s, const struct sandbox *sandbox)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->sandbox == sandbox)
			break;
	if (h == NULL)
		return true;
	if (h->answering || !STAILQ_EMPTY(&h->waiting) ||
	    file_router_has_handles(s, h))
		return false;
	stop(h);
	return true;
}
