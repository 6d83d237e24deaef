/* SPDX-License-Identifier: ISC */
/*
 * A running command: its descriptors and its end.
 */
#include "process.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "denial.h"
#include "heap.h"
#include "log.h"
#include "loop.h"
#include "oom.h"
#include "process_tree.h"
#include "sandbox.h"
#include "util.h"

/* One read; also the longest chunk. */
#define READ_BYTES (64u << 10)
static heap_aligned uint8_t scratch[READ_BYTES];

/*
 * Limits what is read from a terminal before exited is reported. A terminal
 * does not say how much is waiting, and a descendant in another session may
 * write for ever.
 */
#define TTY_DRAIN_BYTES (1u << 20)

/*
 * One read of a terminal returns at most a page. After a read of this size
 * there may be more.
 */
#define TTY_MORE_BYTES 2048

static void settle(struct process *p);

static void
set_reading(struct process_stream *s, bool reading)
{
	if (s->fd >= 0)
		loop_watch(&s->event, &s->reading, reading);
}

static void
stream_close(struct process_stream *s)
{
	if (s->fd < 0)
		return;
	set_reading(s, false);
	close(s->fd);
	s->fd = -1;
	wide_pipe_end(&s->wide);
	s->drain_bytes = 0;
}

static void
pause_reading(struct process *p)
{
	p->paused = true;
	for (size_t i = 0; i < nitems(p->streams); i++)
		set_reading(&p->streams[i], false);
}

/*
 * Like read(2). A terminal returns at most a page, so it is read again while
 * pages are full. An end or error that comes meanwhile shows at the next call.
 */
static ssize_t
read_what_is_there(struct process_stream *s, size_t max)
{
	ssize_t n = read(s->fd, scratch, max), more = n;
	size_t at = n > 0 ? (size_t)n : 0;

	while (s->process->tty && more >= TTY_MORE_BYTES && at < max) {
		more = read(s->fd, scratch + at, max - at);
		at += more > 0 ? (size_t)more : 0;
	}
	if (n == READ_BYTES)
		wide_pipe_note_full(&s->wide, s->fd);
	return n > 0 ? (ssize_t)at : n;
}

/*
 * Reads and reports output. Returns 1 if there may be more, 0 if nothing is
 * there now, -1 at the end. EIO on a terminal's master is its end of file.
 */
static int
stream_read(struct process_stream *s)
{
	struct process *p = s->process;
	size_t max = process_state_chunk_max(&p->state);
	ssize_t n = read_what_is_there(
	    s, max < sizeof(scratch) ? max : sizeof(scratch));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && !(p->tty && errno == EIO))
		log_error(-errno, "output of process %d: the rest is lost",
		    (int)p->leader);
	if (n <= 0) {
		stream_close(s);
		return -1;
	}
	s->drain_bytes -=
	    (size_t)n < s->drain_bytes ? (size_t)n : s->drain_bytes;
	p->observer->output(p,
	    process_state_output(&p->state, s->stream, scratch, (size_t)n),
	    s->stream, scratch, (size_t)n);
	return 1;
}

static void
stream_cb(evutil_socket_t fd, short what, void *arg)
{
	struct process_stream *s = arg;
	struct process *p = s->process;

	if (p->observer->congested(p)) {
		pause_reading(p);
		return;
	}
	if (stream_read(s) < 0)
		settle(p);
}

static void
give_group_back(struct process *p)
{
	if (p->group != NULL)
		command_cgroup_give_back(p->groups, p->group);
	p->group = NULL;
}

/*
 * If a command left something running, it keeps its group until it is
 * terminated or forgotten. While there is an init, the group is not empty.
 */
static void
settle_group(struct process *p)
{
	if (p->terminated)
		give_group_back(p);
	else if (p->group != NULL && p->init.pid <= 0 &&
		 command_cgroup_settle(p->groups, p->group))
		p->group = NULL;
}

/*
 * Reports the output that was written before the command ended; exited comes
 * after it. Returns false if the client does not keep up; then it is done
 * later.
 */
static bool
drain(struct process *p)
{
	for (size_t i = 0; i < nitems(p->streams); i++) {
		struct process_stream *s = &p->streams[i];

		while (s->fd >= 0 && s->drain_bytes > 0) {
			if (p->observer->congested(p))
				return false;
			if (stream_read(s) <= 0)
				s->drain_bytes = 0;
		}
	}
	return true;
}

static int
exit_code(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}

static void
tell_exited(struct process *p)
{
	int code = exit_code(p->wait_status);

	p->state.sandbox_denied =
	    p->sandboxed && (denial_is_likely(&p->state.head, code) ||
				denial_is_likely(&p->state.tail, code));
	p->observer->exited(p, process_state_exited(&p->state, code));
}

/* Reports exited and closed, in that order, as soon as each is true. */
static void
settle(struct process *p)
{
	if (!p->reaped || p->state.closed)
		return;
	if (!p->state.exited) {
		if (!drain(p)) {
			pause_reading(p);
			return;
		}
		input_close(
		    &p->input, p->terminated ? INPUT_TERMINATED : INPUT_CLOSED);
		tell_exited(p);
	}
	if (p->terminated)
		for (size_t i = 0; i < nitems(p->streams); i++)
			stream_close(&p->streams[i]);
	if (p->streams[0].fd < 0 && p->streams[1].fd < 0) {
		settle_group(p);
		process_end_closed(p);
		p->observer->closed(p, process_state_closed(&p->state));
	}
}

static void
plan_drain(struct process *p)
{
	for (size_t i = 0; i < nitems(p->streams); i++) {
		struct process_stream *s = &p->streams[i];
		int waiting = 0;

		if (s->fd < 0)
			continue;
		if (p->tty)
			s->drain_bytes = TTY_DRAIN_BYTES;
		else if (ioctl(s->fd, FIONREAD, &waiting) == 0)
			/*
			 * One more byte than is waiting, so that an end of file
			 * after it is seen.
			 */
			s->drain_bytes = (size_t)waiting + 1;
	}
}

static void
leave_sandbox(struct process *p)
{
	if (p->sandbox != NULL)
		sandbox_release(p->sandbox);
	p->sandbox = NULL;
}

/* The init has ended, so nothing is left inside. */
static void
init_ended(struct reaper_watch *w, int wait_status, const struct rusage *usage)
{
	struct process *p = TABLE_OBJECT(w, struct process, init);

	leave_sandbox(p);
	if (p->state.closed)
		settle_group(p);
}

/* Kills everything that a sandboxed command left behind. */
static void
kill_inside(struct process *p)
{
	if (p->init.pid > 0)
		kill(p->init.pid, SIGKILL);
	else
		process_end_without_init(p);
}

/* Tells whether its init has killed it for its memory. */
static bool
was_killed_by_watch(const struct process *p)
{
	uint64_t n;

	return p->memory >= 0 && read(p->memory, &n, sizeof(n)) == sizeof(n);
}

/*
 * Without a group of its own, the kill that was counted may have hit another
 * command.
 */
static bool
ran_out_of_memory(const struct process *p)
{
	if (was_killed_by_watch(p))
		return true;
	return p->group != NULL ? command_cgroup_ran_out_of_memory(p->group)
				: oom_kills() > p->oom_kills;
}

static void
ended(struct reaper_watch *w, int wait_status, const struct rusage *usage)
{
	struct process *p = TABLE_OBJECT(w, struct process, watch);

	p->reaped = true;
	p->reaped_at = process_tree_now();
	p->pid = 0;
	p->wait_status = wait_status;
	p->usage = *usage;
	p->oom_killed = WIFSIGNALED(wait_status) &&
			WTERMSIG(wait_status) == SIGKILL && !p->killed &&
			ran_out_of_memory(p);
	kill_inside(p);
	if (p->init.pid <= 0)
		leave_sandbox(p);
	plan_drain(p);
	settle(p);
}

static void
stream_open(struct process *p, struct event_base *base, int i, int fd,
    enum stream stream)
{
	struct process_stream *s = &p->streams[i];

	*s =
	    (struct process_stream){ .process = p, .stream = stream, .fd = fd };
	if (fd < 0)
		return;
	heap_scratch(scratch, sizeof(scratch));
	event_assign(&s->event, base, fd, EV_READ | EV_PERSIST, stream_cb, s);
	set_reading(s, true);
}

/* Gets what must exist before the command starts. */
static int
prepare(struct process *p, struct cgroup_pool *groups, struct spawn_request *r,
    const char **step)
{
	int err = 0;

	*step = "a control group";
	p->groups = groups;
	if (groups != NULL && cgroup_is_open(&groups->session)) {
		p->group = command_cgroup_take(groups);
		if (p->group == NULL)
			return -errno;
	}
	r->group = p->group;
	*step = "placeholders for missing names";
	if (r->sandbox != NULL)
		err = sandbox_use(r->sandbox);
	if (err < 0)
		give_group_back(p);
	return err;
}

int
process_start(struct process *p, struct event_base *base,
    struct cgroup_pool *groups, struct spawn_request *r, size_t retention_bytes,
    const struct process_observer *observer, void *owner, const char **step,
    bool *enforcing)
{
	struct spawn_result res;
	uint64_t oom_before;
	int err = prepare(p, groups, r, step);

	*enforcing = r->sandbox != NULL;
	p->memory = -1;
	if (err < 0)
		return err;
	oom_before = p->group != NULL ? 0 : oom_kills();
	if (p->group == NULL && r->sandbox == NULL)
		r->mark = p->mark = process_tree_new_mark();
	err = spawn(r, &res, step);
	*enforcing = res.enforcing;
	if (err < 0) {
		if (r->sandbox != NULL)
			sandbox_release(r->sandbox);
		give_group_back(p);
		return err;
	}
	p->observer = observer;
	p->owner = owner;
	p->tty = r->tty;
	p->sandboxed = r->sandbox != NULL;
	p->pid = p->leader = res.pid;
	p->oom_kills = oom_before;
	p->memory = res.memory;
	process_state_init(&p->state, retention_bytes);
	reaper_add(&p->watch, res.pid, ended);
	p->sandbox = r->sandbox;
	if (res.init > 0)
		reaper_add(&p->init, res.init, init_ended);
	input_open(&p->input, base, res.in);
	stream_open(p, base, 0, res.out, r->tty ? STREAM_PTY : STREAM_STDOUT);
	stream_open(p, base, 1, res.err, STREAM_STDERR);
	return 0;
}

void
process_resume(struct process *p)
{
	if (!p->paused)
		return;
	p->paused = false;
	for (size_t i = 0; i < nitems(p->streams); i++)
		set_reading(&p->streams[i], true);
	settle(p);
}

bool
process_terminate(struct process *p)
{
	process_end_kill_all(p);
	if (p->reaped)
		return false;
	p->terminated = p->killed = true;
	/*
	 * Done while the command is still there to show which children are its
	 * own.
	 */
	kill_inside(p);
	/* A pid is not reused before we reap it, so this is the right group. */
	kill(-p->pid, SIGKILL);
	input_close(&p->input, INPUT_TERMINATED);
	return true;
}

void
process_abandon(struct process *p)
{
	p->terminated = true;
	settle(p);
}

void
process_signal(struct process *p, int sig)
{
	p->signals |= UINT64_C(1) << sig;
	if (!p->reaped)
		kill(-p->pid, sig);
}

void
process_clear(struct process *p)
{
	for (size_t i = 0; i < nitems(p->streams); i++)
		stream_close(&p->streams[i]);
	reaper_remove(&p->watch);
	process_end_clear(p);
	leave_sandbox(p);
	give_group_back(p);
	reaper_remove(&p->init);
	input_clear(&p->input);
	process_state_clear(&p->state);
	if (p->memory >= 0)
		close(p->memory);
	p->memory = -1;
}
