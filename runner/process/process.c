/* SPDX-License-Identifier: ISC */
#include "process.h"

#include <event2/event.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "descriptors.h"
#include "heap.h"
#include "loop.h"
#include "sandbox.h"

/* --- all that it started ------------------------------------------------ */

static int
signal_members(struct process *p, int sig, enum process_target target)
{
	const struct process_tree t = { p->leader, p->mark, p->reaped_at };

	return process_tree_signal(&t, sig, target);
}

/*
 * Kills the control group, daemons included; exact where there is a group.
 * Returns 0 or -errno; after an error some processes may be left.
 */
static int
kill_group(struct process *p)
{
	int err = p->group != NULL ? command_cgroup_kill(p->group) : 0;

	if (err < 0)
		log_error(err,
		    "the control group of process %d cannot be killed",
		    (int)p->leader);
	return err;
}

static int
signal_tree(struct process *p, int sig, enum process_target target)
{
	int n;

	reserve_give(RESERVE_TO_KILL);
	n = signal_members(p, sig, target);
	if (sig == SIGKILL && target == PROCESS_TREE)
		kill_group(p);
	if (n < 0)
		log_error(
		    n, "signal %d to the processes of %d", sig, (int)p->leader);
	reserve_keep();
	return n;
}

/*
 * Sends SIGKILL to the control group, daemons included, even if their parents
 * have ended. If that fails, or if the command has a mark instead of a group,
 * uses what the process tree shows.
 */
static void
kill_all(struct process *p)
{
	int n = 0;

	reserve_give(RESERVE_TO_KILL);
	if (kill_group(p) < 0 || p->mark != 0)
		n = signal_members(p, SIGKILL, PROCESS_TREE);
	if (n < 0)
		log_error(n, "killing the processes of %d", (int)p->leader);
	reserve_keep();
}

/*
 * For a sandboxed command without an init of its own: kills what it started or
 * left behind, as far as the process tree shows (process_tree.h).
 */
static void
kill_left_behind(struct process *p)
{
	if (p->sandbox == NULL || p->init.pid > 0)
		return;
	/*
	 * What it left behind is our child now, or below one. Usually there is
	 * nothing, and /proc need not be searched.
	 */
	if (!p->reaped || reaper_has_orphans())
		signal_tree(p, SIGKILL, PROCESS_TREE);
}

static void
clear_deadline(struct process *p)
{
	if (p->deadline_ms != 0)
		event_del(&p->deadline);
	p->deadline_ms = 0;
}

/*
 * Called when p is closed: removes the deadline for running. What is left after
 * a graceful end is still killed at its deadline.
 */
static void
clear_running_deadline(struct process *p)
{
	if (p->deadline_for != DEADLINE_GRACE)
		clear_deadline(p);
}

/* --- its streams and its end -------------------------------------------- */

/* One read is one chunk. */
static heap_aligned uint8_t scratch[CHUNK_MAX_BYTES];

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
	if (n == CHUNK_MAX_BYTES)
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

/* What was ended ends even if nobody reads what it wrote. */
static bool
must_wait(struct process *p)
{
	return (!p->terminated && process_state_is_full(&p->state)) ||
	       p->observer->congested(p);
}

static void
stream_cb(evutil_socket_t fd, short what, void *arg)
{
	struct process_stream *s = arg;
	struct process *p = s->process;

	if (must_wait(p)) {
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
 * forgotten. While there is an init, the group is not empty.
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
			if (must_wait(p))
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

void
process_say(struct process *p, const char *text, size_t len)
{
	enum stream stream = p->tty ? STREAM_PTY : STREAM_STDERR;

	p->observer->output(p,
	    process_state_output(&p->state, stream, text, len), stream, text,
	    len);
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
		if (p->observer->ended != NULL)
			p->observer->ended(p);
		tell_exited(p);
	}
	if (p->terminated)
		for (size_t i = 0; i < nitems(p->streams); i++)
			stream_close(&p->streams[i]);
	/* Whoever hears of the end finds no placeholder of the command's. */
	if (p->streams[0].fd < 0 && p->streams[1].fd < 0 &&
	    (p->sandbox == NULL || !p->sandbox->placeholders.taken)) {
		settle_group(p);
		clear_running_deadline(p);
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
	settle(p);
}

/* Kills everything that a sandboxed command left behind. */
static void
kill_inside(struct process *p)
{
	if (p->init.pid > 0)
		kill(p->init.pid, SIGKILL);
	else
		kill_left_behind(p);
}

/*
 * Without a group of its own, the kill that was counted may have hit another
 * command.
 */
static bool
ran_out_of_memory(const struct process *p)
{
	return p->group != NULL ? command_cgroup_ran_out_of_memory(p->group)
				: cgroup_own_oom_kills() > p->oom_kills;
}

static void
read_on(struct process *p)
{
	p->paused = false;
	for (size_t i = 0; i < nitems(p->streams); i++)
		set_reading(&p->streams[i], true);
}

static void
end_starting(struct process *p)
{
	if (!p->starting)
		return;
	p->starting = false;
	event_del(&p->start_event);
	close(p->start_fd);
}

/*
 * Takes what a process that is STARTING has told. Returns false if it does not
 * run: then its owner has cleared it. One that was killed before tells nothing,
 * and ends as one that ran.
 */
static bool
take_start(struct process *p)
{
	struct spawn_fault f;
	ssize_t n = read(p->start_fd, &f, sizeof(f));

	if (n < 0 && errno == EAGAIN && !p->reaped)
		return true;
	end_starting(p);
	read_on(p);
	p->observer->started(p, n == sizeof(f) ? &f : NULL);
	return n != sizeof(f);
}

static void
start_cb(evutil_socket_t fd, short what, void *arg)
{
	take_start(arg);
}

/* It is read from when its owner has heard that it runs. */
static void
begin_starting(struct process *p, struct event_base *base, int fd)
{
	p->starting = true;
	p->start_fd = fd;
	pause_reading(p);
	event_assign(
	    &p->start_event, base, fd, EV_READ | EV_PERSIST, start_cb, p);
	loop_add(&p->start_event, NULL);
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
	if (p->starting && !take_start(p))
		return;
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
    struct spawn_fault *fault)
{
	int err = 0;

	*fault = (struct spawn_fault){ .enforcing = r->sandbox != NULL,
		.step = "a control group" };
	p->groups = groups;
	if (groups != NULL && cgroup_is_open(&groups->session)) {
		p->group = command_cgroup_take(groups);
		if (p->group == NULL)
			return -errno;
	}
	r->group = p->group;
	if (r->sandbox != NULL) {
		fault->step = r->sandbox->pool->step;
		err = sandbox_use(r->sandbox, SANDBOX_USE_STARTS);
	}
	if (err < 0)
		give_group_back(p);
	return err;
}

int
process_start(struct process *p, struct event_base *base,
    struct cgroup_pool *groups, struct spawn_request *r, size_t retention_bytes,
    const struct process_observer *observer, void *owner,
    struct spawn_fault *fault)
{
	struct spawn_result res;
	uint64_t oom_before;
	int err = prepare(p, groups, r, fault);

	if (err < 0)
		return fault->err = err;
	oom_before = p->group != NULL ? 0 : cgroup_own_oom_kills();
	if (p->group == NULL && r->sandbox == NULL)
		r->mark = p->mark = process_tree_new_mark();
	err = spawn(r, &res, fault);
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
	p->elsewhere = res.elsewhere;
	p->pid = p->leader = res.pid;
	p->oom_kills = oom_before;
	process_state_init(&p->state, retention_bytes);
	reaper_add(&p->watch, res.pid, ended);
	p->sandbox = r->sandbox;
	if (res.init > 0)
		reaper_add(&p->init, res.init, init_ended);
	input_open(&p->input, base, res.in);
	stream_open(p, base, 0, res.out, r->tty ? STREAM_PTY : STREAM_STDOUT);
	stream_open(p, base, 1, res.err, STREAM_STDERR);
	if (res.starting >= 0 && observer->started != NULL)
		begin_starting(p, base, res.starting);
	else if (res.starting >= 0)
		close(res.starting);
	return 0;
}

void
process_resume(struct process *p)
{
	if (!p->paused)
		return;
	read_on(p);
	settle(p);
}

bool
process_terminate(struct process *p)
{
	if (p->reaped)
		return false;
	kill_all(p);
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
process_kill_tree(struct process *p)
{
	if (!process_terminate(p))
		kill_all(p);
}

void
process_signal(struct process *p, int sig)
{
	p->signals |= UINT64_C(1) << sig;
	if (!p->reaped)
		kill(-p->pid, sig);
}

/* --- its deadline ------------------------------------------------------- */

/* Stops waiting for the end of its streams. */
static void
abandon(struct process *p)
{
	p->terminated = true;
	settle(p);
}

/* Tells whether the kernel has ended it, even if it is not reaped yet. */
static bool
is_over(const struct process *p)
{
	siginfo_t info = { 0 };

	return p->reaped || (waitid(P_PID, (id_t)p->pid, &info,
				 WEXITED | WNOHANG | WNOWAIT) == 0 &&
				info.si_pid != 0);
}

/*
 * A deadline holds for everything that the command started: what still holds
 * its streams then is killed too.
 */
static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct process *p = arg;

	p->deadline_ms = 0;
	p->timed_out = p->deadline_for != DEADLINE_GRACE && !is_over(p);
	p->killed = true;
	signal_tree(p, SIGKILL, PROCESS_TREE);
	process_kill_tree(p);
	if (p->reaped)
		abandon(p);
}

/* Sets a deadline, unless an earlier one is set. */
static void
plan(struct process *p, struct event_base *base, uint64_t ms,
    enum process_deadline why)
{
	struct timeval tv = timeval_of_ms(ms);
	int64_t at = now_ms() + (int64_t)tv.tv_sec * 1000 + tv.tv_usec / 1000;

	if (p->deadline_ms != 0 && p->deadline_ms <= at)
		return;
	clear_deadline(p);
	p->deadline_ms = at;
	p->deadline_for = why;
	event_assign(&p->deadline, base, -1, 0, deadline_cb, p);
	loop_add(&p->deadline, &tv);
}

void
process_set_timeout(struct process *p, struct event_base *base,
    uint64_t timeout_ms, enum process_deadline why)
{
	/*
	 * Counts from now, not from the beginning of the turn, so that it is
	 * never early.
	 */
	event_base_update_cache_time(base);
	plan(p, base, timeout_ms, why);
}

/*
 * A stopped process gets SIGTERM only when it continues. A shell on a terminal
 * ignores SIGTERM, but not SIGHUP.
 */
void
process_ask_to_end(struct process *p)
{
	if (p->tty)
		process_signal(p, SIGHUP);
	process_signal(p, SIGTERM);
	process_signal(p, SIGCONT);
}

bool
process_end_gracefully(
    struct process *p, struct event_base *base, uint64_t grace_ms)
{
	if (p->reaped)
		return false;
	process_ask_to_end(p);
	plan(p, base, grace_ms, DEADLINE_GRACE);
	return true;
}

bool
process_signal_target(struct process *p, int sig, enum process_target target)
{
	p->killed |= sig == SIGKILL;
	p->signals |= UINT64_C(1) << sig;
	if (p->state.closed || (p->reaped && target == PROCESS_ALONE))
		return false;
	if (!p->reaped && target == PROCESS_ALONE)
		return kill(p->pid, sig) == 0;
	if (!p->reaped && target == PROCESS_GROUP)
		return kill(-p->pid, sig) == 0;
	return signal_tree(p, sig, target) > 0;
}

/* --- its input ---------------------------------------------------------- */

/*
 * Puts the end-of-file character of a terminal into text and returns how often
 * to send it. After an unfinished line it only sends the line, so it is sent
 * twice. Without line editing it is an ordinary character and is sent once. 0:
 * the terminal has no such character.
 */
static size_t
end_of_file(int master, char text[2])
{
	struct termios t;

	if (tcgetattr(master, &t) < 0 || t.c_cc[VEOF] == _POSIX_VDISABLE)
		return 0;
	text[0] = text[1] = (char)t.c_cc[VEOF];
	return t.c_lflag & ICANON ? 2 : 1;
}

static void
ignore_answer(void *arg, enum input_status status)
{
}

int
process_end_input(struct process *p)
{
	char text[2];
	size_t n = p->tty ? end_of_file(p->input.fd, text) : 0;

	if (n > 0 &&
	    input_write(&p->input, SLICE(""), (struct slice){ text, n },
		ignore_answer, NULL) == INPUT_FULL)
		return -ENOBUFS;
	input_finish(&p->input);
	return 0;
}

int
process_resize(struct process *p, uint16_t rows, uint16_t cols)
{
	struct winsize ws = { .ws_row = rows, .ws_col = cols };

	if (!p->tty)
		return -ENOTTY;
	/* The command's terminal has ended with it. */
	if (p->streams[0].fd < 0)
		return 0;
	return ioctl(p->streams[0].fd, TIOCSWINSZ, &ws) < 0 ? -errno : 0;
}

/* Before its program runs it has started nothing, and may lead no group yet. */
void
process_abandon(struct process *p)
{
	char byte;

	if (read(p->start_fd, &byte, 1) == 0)
		process_kill_tree(p);
	else if (!p->reaped)
		kill(p->pid, SIGKILL);
	process_clear(p);
}

void
process_clear(struct process *p)
{
	end_starting(p);
	for (size_t i = 0; i < nitems(p->streams); i++)
		stream_close(&p->streams[i]);
	reaper_remove(&p->watch);
	clear_deadline(p);
	leave_sandbox(p);
	give_group_back(p);
	reaper_remove(&p->init);
	input_clear(&p->input);
	process_state_clear(&p->state);
}
