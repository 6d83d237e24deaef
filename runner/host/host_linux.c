/* SPDX-License-Identifier: ISC */
/*
 * The seam on Linux: the channel to the parent, and one process. When the
 * command has ended, everything it left behind is killed, then its last output
 * and its end are told. So nothing outlives the runner, and no output is cut
 * off.
 */
#include "host_linux.h"

#include <event2/event.h>

#include "base.h"
#include "channel.h"
#include "environment.h"
#include "heap.h"
#include "host.h"
#include "loop.h"
#include "process.h"
#include "sandbox_legacy.h"
#include "sandboxes.h"

#define CLEANUP_MS   20 /* interval of killing what was left behind */
#define LAST_KILL_MS 3000

struct command {
	struct process process;
	struct sandboxes sandbox;
	const struct command_events *on;
	struct event timeout;
	bool paused;
	bool timed_out;
};

static heap_aligned struct command the_command;

static heap_aligned struct host {
	struct event_base *base;
	struct channel channel;
	const struct parent_events *on;
	struct event cleanup;
	int in_fd, out_fd;
} host;

/* --- the parent --------------------------------------------------------- */

static void
on_message(struct channel *ch, char *text, size_t len)
{
	host.on->message(text, len);
}

static void
on_drained(struct channel *ch)
{
	host.on->drained();
}

static void
on_ended(struct channel *ch)
{
	host.on->ended(ch->in.len > 0);
}

static void
on_broken(struct channel *ch, int err)
{
	if (err != -EMSGSIZE && err != -EBADMSG) {
		log_error(err, "the parent's pipe");
		channel_close(&host.channel);
	}
	host.on->broken(err);
}

static const struct channel_events channel_events = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

void
parent_open(const struct parent_events *on)
{
	host.on = on;
	channel_open(&host.channel, host.base, host.in_fd, host.out_fd,
	    FRAMES_MESSAGE_MAX, &channel_events, &host);
}

struct json_writer
parent_begin(void)
{
	return channel_begin(&host.channel);
}

void
parent_send(void)
{
	channel_send(&host.channel);
}

bool
parent_congested(void)
{
	return channel_congested(&host.channel);
}

void
parent_stop_reading(void)
{
	channel_stop_reading(&host.channel);
}

/* --- the command's events ----------------------------------------------- */

/* The dialect has no name for a terminal's one stream. */
static void
on_output(struct process *p, uint64_t seq, enum stream stream, const void *data,
    size_t len)
{
	struct command *c = p->owner;

	c->on->output(stream == STREAM_STDERR, data, len);
}

static void
cleanup_cb(evutil_socket_t fd, short what, void *arg)
{
	reaper_signal_all(SIGKILL);
	loop_add_ms(&host.cleanup, CLEANUP_MS);
}

static void
on_exited(struct process *p, uint64_t seq)
{
	struct command *c = p->owner;

	event_del(&c->timeout);
	if (reaper_has_children())
		cleanup_cb(-1, 0, NULL);
}

static void
on_closed(struct process *p, uint64_t seq)
{
	struct command *c = p->owner;

	c->on->closed(p->state.exit_code, c->timed_out);
}

static bool
on_congested(struct process *p)
{
	const struct command *c = p->owner;

	return c->paused;
}

static const struct process_observer observer = {
	.output = on_output,
	.exited = on_exited,
	.closed = on_closed,
	.congested = on_congested,
};

static void
timeout_cb(evutil_socket_t fd, short what, void *arg)
{
	struct command *c = arg;

	c->timed_out = process_terminate(&c->process);
}

static void
on_idle(void)
{
	event_del(&host.cleanup);
}

/* --- its start ---------------------------------------------------------- */

static bool
is_unrestricted(const struct frames_spawn *s)
{
	return s->profile == NULL &&
	       (slice_equal(s->policy, SLICE("danger-full-access")) ||
		   slice_equal(
		       s->policy, SLICE("{\"type\":\"danger-full-access\"}")));
}

static bool
keep_helper(void *owner, const struct sandbox *n)
{
	return false; /* there are no helpers here */
}

/* Decodes the policy of the message. Returns 0, or -EBADMSG with error. */
static int
decode_policy(struct json_doc *doc, const struct frames_spawn *s,
    struct sandbox_context *context, char *error)
{
	struct slice cwd = s->policy_cwd.len > 0 ? s->policy_cwd : s->cwd;
	_cleanup_free_ char *policy_cwd = xstrndup(cwd.ptr, cwd.len);

	if (s->profile != NULL)
		return sandbox_profile_decode(
		    doc, s->profile, policy_cwd, s->roots, context, error);
	return sandbox_preset_decode(
	    doc, s->policy, policy_cwd, context, error);
}

/*
 * Finds the sandbox of the policy; *sandbox is NULL if none was asked for.
 * Returns a negative value if one was asked for and cannot be had.
 */
static int
find_sandbox(struct command *c, const struct command_request *r,
    struct sandbox **sandbox, char *error)
{
	const struct sandbox_host about = {
		.base = host.base,
		.userns = -1,
		.program = sandbox_program("/execd-files"),
		.own_ports = -1,
		.parent_death_signal = true,
		.home = environment_get(r->envp, "HOME"),
		.tmpdir = getenv("TMPDIR"),
		.give_up = keep_helper,
	};
	struct sandbox_limits limits;
	struct json_doc doc = { 0 };
	struct sandbox_context context;
	int err;

	*sandbox = NULL;
	if (is_unrestricted(r->asked))
		return 0;
	sandbox_limits_default(&limits, false);
	sandboxes_init(&c->sandbox, &about, &limits);
	err = decode_policy(&doc, r->asked, &context, error);
	if (err == 0)
		err = sandboxes_find(&c->sandbox,
		    &(struct sandbox_request){
			.asked = &context, .cwd = r->cwd },
		    sandbox, error);
	json_clear(&doc);
	return err;
}

/* Returns 0 or -errno with *e. */
static int
run(struct command *c, const struct command_request *r, int null_fd,
    struct sandbox *sandbox, struct command_error *e)
{
	_cleanup_free_ char **candidates =
	    spawn_candidates(r->argv[0], environment_get(r->envp, "PATH"));
	struct spawn_request request = {
		.sandbox = sandbox,
		.candidates = (const char *const *)candidates,
		.argv = r->argv,
		.envp = r->envp,
		.cwd = r->cwd,
		.tty = r->asked->tty,
		.rows = TTY_ROWS,
		.cols = TTY_COLS,
		.pipe_stdin = r->asked->stdin_open,
		.parent_death_signal = true,
		.null_fd = null_fd,
	};
	struct spawn_fault fault;
	int err = process_start(
	    &c->process, host.base, NULL, &request, 0, &observer, c, &fault);

	if (err == 0)
		return 0;
	e->code = fault.enforcing ? "sandbox_unavailable" : "spawn_failed";
	snprintf(e->message, sizeof(e->message), "%s: %s (os error %d)",
	    fault.step, strerror(-err), -err);
	return err;
}

struct command *
command_start(const struct command_request *r, const struct command_events *on,
    struct command_error *e)
{
	_cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct command *c = &the_command;
	struct sandbox *sandbox;

	*c = (struct command){ .on = on };
	*e = (struct command_error){ .code = "sandbox_unavailable" };
	event_assign(&c->timeout, host.base, -1, 0, timeout_cb, c);
	if (find_sandbox(c, r, &sandbox, e->message) < 0 ||
	    run(c, r, null_fd, sandbox, e) < 0)
		return NULL;
	if (r->asked->has_timeout)
		loop_add_ms(&c->timeout, r->asked->timeout_ms);
	return c;
}

int64_t
command_id(const struct command *c)
{
	return c->process.leader;
}

void
command_pause(struct command *c, bool paused)
{
	c->paused = paused;
	if (!paused)
		process_resume(&c->process);
}

static void
ignore_answer(void *arg, enum input_status status)
{
}

bool
command_write(struct command *c, struct slice data)
{
	return input_write(&c->process.input, SLICE(""), data, ignore_answer,
		   NULL) != INPUT_FULL;
}

bool
command_end_input(struct command *c)
{
	return process_end_input(&c->process) == 0;
}

int
command_resize(struct command *c, uint16_t rows, uint16_t cols)
{
	return process_resize(&c->process, rows, cols);
}

void
command_kill_tree(struct command *c)
{
	process_kill_tree(&c->process);
}

/* Called at the end of the program; it takes no memory. */
void
command_free(struct command *c)
{
	reaper_kill_all(LAST_KILL_MS);
	if (the_command.sandbox.pool.count > 0)
		sandbox_pool_clear(&the_command.sandbox.pool);
}

/* --- the program -------------------------------------------------------- */

void
host_linux_open(struct event_base *base, int in_fd, int out_fd)
{
	int err;

	err = reaper_init(base, false, on_idle);
	if (err < 0)
		log_fatal_errno(err, "taking over the command's children");
	event_assign(&host.cleanup, base, -1, 0, cleanup_cb, NULL);
	host.base = base;
	host.in_fd = in_fd;
	host.out_fd = out_fd;
}

/*
 * Opening a FIFO for reading waits for its writer; so the parent must open them
 * in this order.
 */
void
host_linux_open_paths(struct event_base *base, const char *in, const char *out)
{
	int in_fd = open(in, O_RDONLY | O_CLOEXEC), out_fd;

	if (in_fd < 0)
		log_fatal_errno(-errno, "%s", in);
	out_fd = open(out, O_WRONLY | O_CLOEXEC);
	if (out_fd < 0)
		log_fatal_errno(-errno, "%s", out);
	host_linux_open(base, in_fd, out_fd);
}

void
host_run(const bool *finished)
{
	while (!*finished || (channel_is_open(&host.channel) &&
				 !channel_drained(&host.channel))) {
		loop_turn(host.base);
		channel_flush(&host.channel);
	}
}

bool
host_path_is_absolute(struct slice path)
{
	return path.len > 0 && path.ptr[0] == '/';
}
