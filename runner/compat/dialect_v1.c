/* SPDX-License-Identifier: ISC */
/*
 * The reference runner's dialect: one command for one parent. When the command
 * has ended, everything it left behind is killed, then its last output and its
 * exit are reported. So nothing outlives the runner, and no output is cut off.
 */
#include "dialect_v1.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "environment.h"
#include "heap.h"
#include "log.h"
#include "loop.h"
#include "process.h"
#include "runner_v1.h"
#include "sandbox_legacy.h"
#include "sandboxes.h"
#include "util.h"

#define CLEANUP_MS   20 /* interval of killing what was left behind */
#define LAST_KILL_MS 3000

static heap_aligned struct dialect {
	struct event_base *base;
	struct channel channel;
	struct process process;
	struct sandboxes sandbox;
	struct event timeout, cleanup;
	bool started;
	bool timed_out;
	bool finished; /* nothing more will be reported */
	int code;      /* exit code of the program */
} d;

static void
finish(int code)
{
	d.finished = true;
	d.code = code;
	channel_stop_reading(&d.channel);
}

/* An error ends the runner, because its parent asked for only one thing. */
static void
fail(const char *code, const char *fmt, const char *detail)
{
	struct json_writer w = channel_begin(&d.channel);
	_cleanup_free_ char *text = NULL;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	text = xasprintf(fmt, detail);
#pragma GCC diagnostic pop
	runner_v1_write_error(&w, text, code);
	channel_send(&d.channel);
	finish(1);
}

static void
on_output(struct process *p, uint64_t seq, enum stream stream, const void *data,
    size_t len)
{
	struct json_writer w = channel_begin(&d.channel);

	/* A terminal has one stream, and this dialect has no name for it. */
	runner_v1_write_output(
	    &w, stream == STREAM_STDERR ? "stderr" : "stdout", data, len);
	channel_send(&d.channel);
}

static void
cleanup_cb(evutil_socket_t fd, short what, void *arg)
{
	struct timeval again = { 0, CLEANUP_MS * 1000 };

	reaper_signal_all(SIGKILL);
	loop_add(&d.cleanup, &again);
}

static void
on_exited(struct process *p, uint64_t seq)
{
	event_del(&d.timeout);
	if (reaper_has_children())
		cleanup_cb(-1, 0, NULL);
}

static void
on_closed(struct process *p, uint64_t seq)
{
	struct json_writer w = channel_begin(&d.channel);

	int code = d.timed_out ? RUNNER_V1_TIMEOUT_CODE : p->state.exit_code;

	runner_v1_write_exit(&w, code, d.timed_out);
	channel_send(&d.channel);
	finish(code);
}

static bool
on_congested(struct process *p)
{
	return channel_congested(&d.channel);
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
	d.timed_out = process_terminate(&d.process);
}

static void
arm_timeout(uint64_t ms)
{
	struct timeval tv = timeval_of_ms(ms);

	loop_add(&d.timeout, &tv);
}

/* Returns command[] as a vector, or NULL if a string contains a NUL byte. */
static char **
build_argv(const struct json_value *command)
{
	char **argv = xcalloc(command->count + 1, sizeof(char *));
	size_t n = 0;

	for (const struct json_value *v = command->first; v; v = v->next) {
		if (memchr(v->text.ptr, '\0', v->text.len) != NULL) {
			while (n > 0)
				free(argv[--n]);
			free(argv);
			return NULL;
		}
		argv[n++] = xstrndup(v->text.ptr, v->text.len);
	}
	return argv;
}

static void
start(const struct runner_v1_spawn *s, char **argv, char **envp, int null_fd,
    struct sandbox *sandbox)
{
	_cleanup_free_ char **candidates =
	    spawn_candidates(argv[0], environment_get(envp, "PATH"));
	_cleanup_free_ char *cwd = xstrndup(s->cwd.ptr, s->cwd.len);
	struct spawn_request r = {
		.sandbox = sandbox,
		.candidates = (const char *const *)candidates,
		.argv = argv,
		.envp = envp,
		.cwd = cwd,
		.tty = s->tty,
		.rows = TTY_ROWS,
		.cols = TTY_COLS,
		.pipe_stdin = s->stdin_open,
		.parent_death_signal = true,
		.null_fd = null_fd,
	};
	struct json_writer w;
	bool enforcing;
	const char *step;
	int err = process_start(
	    &d.process, d.base, NULL, &r, 0, &observer, &d, &step, &enforcing);

	if (err < 0) {
		_cleanup_free_ char *why = xasprintf(
		    "%s: %s (os error %d)", step, strerror(-err), -err);

		fail(enforcing ? "sandbox_unavailable" : "spawn_failed", "%s",
		    why);
		return;
	}
	d.started = true;
	w = channel_begin(&d.channel);
	runner_v1_write_ready(&w, d.process.pid);
	channel_send(&d.channel);
	if (s->has_timeout)
		arm_timeout(s->timeout_ms);
}

static bool
is_unrestricted(struct slice policy)
{
	return slice_equal(policy, SLICE("danger-full-access")) ||
	       slice_equal(policy, SLICE("{\"type\":\"danger-full-access\"}"));
}

static bool
keep_helper(void *owner, const struct sandbox *n)
{
	return false; /* there are no helpers here */
}

/*
 * Finds the sandbox of the policy; *sandbox is NULL if none was asked for.
 * Returns false if one was asked for and cannot be had.
 */
static bool
find_sandbox(const struct runner_v1_spawn *s, char *const *envp,
    struct sandbox **sandbox)
{
	const struct sandbox_host host = {
		.base = d.base,
		.userns = -1,
		.parent_death_signal = true,
		.home = environment_get(envp, "HOME"),
		.tmpdir = getenv("TMPDIR"),
		.give_up = keep_helper,
	};
	struct sandbox_limits limits;
	struct slice cwd = s->policy_cwd.len > 0 ? s->policy_cwd : s->cwd;
	_cleanup_free_ char *policy_cwd = xstrndup(cwd.ptr, cwd.len);
	_cleanup_free_ char *command_cwd = xstrndup(s->cwd.ptr, s->cwd.len);
	struct json_doc doc = { 0 };
	struct sandbox_context context;
	char error[ARGS_ERROR_MAX];
	int err;

	*sandbox = NULL;
	if (is_unrestricted(s->policy))
		return true;
	sandbox_limits_default(&limits, false);
	sandboxes_init(&d.sandbox, &host, &limits);
	err =
	    sandbox_preset_decode(&doc, s->policy, policy_cwd, &context, error);
	if (err == 0)
		err = sandboxes_find(&d.sandbox,
		    &(struct sandbox_request){
			.asked = &context, .cwd = command_cwd },
		    sandbox, error);
	json_clear(&doc);
	if (err < 0)
		fail("sandbox_unavailable", "%s", error);
	return err == 0;
}

static void
take_spawn(const struct runner_v1_spawn *s)
{
	_cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	_cleanup_free_ char **envp = NULL;
	struct sandbox *sandbox;
	char **argv;

	if (d.started) {
		fail("protocol", "%s", "a second spawn_request");
		return;
	}
	argv = build_argv(s->command);
	envp = environment_build(NULL, NULL, s->env);
	if (argv == NULL || envp == NULL)
		fail("spawn_failed", "%s", "nul byte found in provided data");
	else if (find_sandbox(s, envp, &sandbox))
		start(s, argv, envp, null_fd, sandbox);
	for (char **a = argv; a != NULL && *a != NULL; a++)
		free(*a);
	free(argv);
}

static void
ignore_answer(void *arg, enum input_status status)
{
}

/*
 * This dialect has no answer to stdin. Input that the command never reads is
 * dropped; input that exceeds the queue is an error.
 */
static void
take_stdin(struct slice bytes)
{
	if (!d.started)
		fail("protocol", "%s", "stdin before spawn_request");
	else if (input_write(&d.process.input, SLICE(""), bytes, ignore_answer,
		     NULL) == INPUT_FULL)
		fail("stdin_full", "%s", "too much unread standard input");
}

static void
on_message(struct channel *ch, char *text, size_t len)
{
	char error[ARGS_ERROR_MAX];
	struct runner_v1_message m;

	if (runner_v1_parse(&m, text, len, error) < 0)
		fail("protocol", "invalid message: %s", error);
	else if (m.type == RUNNER_V1_SPAWN_REQUEST)
		take_spawn(&m.spawn);
	else if (m.type == RUNNER_V1_STDIN)
		take_stdin(m.stdin_bytes);
	else if (d.started)
		process_terminate(&d.process);
	else
		fail("protocol", "%s", "terminate before spawn_request");
	runner_v1_clear(&m);
}

static void
on_drained(struct channel *ch)
{
	if (d.started)
		process_resume(&d.process);
}

/* The parent is gone, so its command ends too. */
static void
on_ended(struct channel *ch)
{
	if (ch->in.len > 0)
		fail("protocol", "%s", "the input ends inside a frame");
	else if (!d.started)
		fail("protocol", "%s", "the input ends before spawn_request");
	else
		finish(1);
}

static void
on_broken(struct channel *ch, int err)
{
	if (err == -EMSGSIZE || err == -EBADMSG) {
		fail("protocol", "%s",
		    err == -EBADMSG ? "an empty frame"
				    : "a frame of more than 8388608 bytes");
		return;
	}
	log_error(err, "the parent's pipe");
	channel_close(&d.channel);
	finish(1);
}

static const struct channel_events channel_events = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

static void
on_idle(void)
{
	event_del(&d.cleanup);
}

int
dialect_v1_run(struct event_base *base, int in_fd, int out_fd)
{
	int err;

	loop_trust();
	err = reaper_init(base, false, on_idle);
	if (err < 0)
		log_fatal_errno(err, "taking over the command's children");
	d.base = base;
	event_assign(&d.timeout, base, -1, 0, timeout_cb, NULL);
	event_assign(&d.cleanup, base, -1, 0, cleanup_cb, NULL);
	channel_open(&d.channel, base, in_fd, out_fd, RUNNER_V1_FRAME_MAX,
	    &channel_events, &d);
	while (!d.finished ||
	       (channel_is_open(&d.channel) && !channel_drained(&d.channel))) {
		if (event_base_loop(base, EVLOOP_ONCE) < 0)
			log_fatal("event loop failed");
		channel_flush(&d.channel);
	}
	reaper_kill_all(LAST_KILL_MS);
	if (d.sandbox.pool.count > 0)
		sandbox_pool_clear(&d.sandbox.pool);
	return d.code;
}

/*
 * Opening a FIFO for reading waits for its writer; so the parent must open them
 * in this order.
 */
int
dialect_v1_run_paths(struct event_base *base, const char *in, const char *out)
{
	int in_fd = open(in, O_RDONLY | O_CLOEXEC), out_fd;

	if (in_fd < 0)
		log_fatal_errno(-errno, "%s", in);
	out_fd = open(out, O_WRONLY | O_CLOEXEC);
	if (out_fd < 0)
		log_fatal_errno(-errno, "%s", out);
	return dialect_v1_run(base, in_fd, out_fd);
}
