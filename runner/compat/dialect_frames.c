/* SPDX-License-Identifier: ISC */
/*
 * The reference runner's dialects: one command for one parent. It decides what
 * is done and told, and host.h does it; nothing here is of one operating
 * system.
 */
#include "dialect_frames.h"

#include "base.h"
#include "environment.h"
#include "host.h"

static struct dialect {
	unsigned version; /* of spawn_request; before it, of the last message */
	struct command *command; /* NULL: not started */
	bool finished;		 /* nothing more will be reported */
	uint32_t code;		 /* exit code of the program */
} d = { .version = FRAMES_OLD };

static void
finish(uint32_t code)
{
	d.finished = true;
	d.code = code;
	parent_stop_reading();
}

/* An error ends the runner, because its parent asked for only one thing. */
static void
fail(const struct frames_error *e)
{
	struct json_writer w = parent_begin();

	frames_write_error(&w, d.version, e);
	parent_send();
	finish(1);
}

static void
fail_text(const char *code, const char *message)
{
	fail(&(struct frames_error){
	    .code = code, .spawning = d.command != NULL, .message = message });
}

/* --- the command's events ----------------------------------------------- */

static void
on_output(bool is_stderr, const void *data, size_t len)
{
	struct json_writer w;

	/* After an error the parent expects no more. */
	if (d.finished)
		return;
	w = parent_begin();
	frames_write_output(
	    &w, d.version, is_stderr ? "stderr" : "stdout", data, len);
	parent_send();
	if (parent_congested())
		command_pause(d.command, true);
}

static void
on_closed(int64_t exit_code, bool timed_out)
{
	int64_t code = timed_out ? FRAMES_TIMEOUT_CODE : exit_code;
	struct json_writer w;

	if (d.finished)
		return;
	w = parent_begin();
	frames_write_exit(&w, d.version, code, timed_out);
	parent_send();
	finish((uint32_t)code);
}

static const struct command_events command_events = {
	.output = on_output,
	.closed = on_closed,
};

/* --- the parent's messages ---------------------------------------------- */

static void
start(const struct frames_spawn *s, char **argv, char **envp)
{
	_cleanup_free_ char *cwd = xstrndup(s->cwd.ptr, s->cwd.len);
	const struct command_request r = {
		.asked = s, .argv = argv, .envp = envp, .cwd = cwd
	};
	struct command_error error;
	struct json_writer w;

	d.command = command_start(&r, &command_events, &error);
	if (d.command == NULL) {
		fail(&(struct frames_error){ .code = error.code,
		    .windows_error = error.windows_error,
		    .spawning = true,
		    .message = error.message });
		return;
	}
	w = parent_begin();
	frames_write_ready(&w, d.version, command_id(d.command));
	parent_send();
}

static void
take_spawn(const struct frames_spawn *s)
{
	_cleanup_free_ char **envp = NULL, **argv = NULL;

	if (d.command != NULL) {
		fail_text("protocol", "a second spawn_request");
		return;
	}
	argv = argv_build(s->command, NULL);
	envp = environment_build(NULL, NULL, NULL, s->env);
	if (argv == NULL || envp == NULL)
		fail(&(struct frames_error){ .code = "spawn_failed",
		    .spawning = true,
		    .message = "nul byte found in provided data" });
	else
		start(s, argv, envp);
}

/*
 * These dialects have no answer to stdin. Input that the command never reads is
 * dropped; input that exceeds the queue is an error.
 */
static void
require_room(bool there_was)
{
	if (!there_was)
		fail_text("stdin_full", "too much unread standard input");
}

static void
take_resize(uint16_t rows, uint16_t cols)
{
	int err = command_resize(d.command, rows, cols);

	if (err < 0)
		log_warn(err, "resize");
}

static void
take(const struct frames_message *m)
{
	switch (m->type) {
	case FRAMES_SPAWN_REQUEST:
		take_spawn(&m->spawn);
		break;
	case FRAMES_STDIN:
		require_room(command_write(d.command, m->stdin_bytes));
		break;
	case FRAMES_CLOSE_STDIN:
		require_room(command_end_input(d.command));
		break;
	case FRAMES_RESIZE:
		take_resize(m->rows, m->cols);
		break;
	case FRAMES_TERMINATE:
		command_kill_tree(d.command);
		break;
	}
}

static void
fail_parse(const char *why)
{
	_cleanup_free_ char *text = xasprintf("invalid message: %s", why);

	fail_text("protocol", text);
}

static void
check_turn(const struct frames_message *m)
{
	static const char *const early[] = {
		[FRAMES_STDIN] = "stdin before spawn_request",
		[FRAMES_TERMINATE] = "terminate before spawn_request",
		[FRAMES_CLOSE_STDIN] = "close_stdin before spawn_request",
		[FRAMES_RESIZE] = "resize before spawn_request",
	};

	if (d.command == NULL && m->type != FRAMES_SPAWN_REQUEST)
		fail_text("protocol", early[m->type]);
	else if (d.command != NULL && m->version != d.version)
		fail_text("protocol", "the version is not spawn_request's");
	else
		take(m);
}

static void
on_message(const char *text, size_t len)
{
	char error[ARGS_ERROR_MAX];
	struct frames_message m;
	int err = frames_parse(&m, host_path_is_absolute, text, len, error);

	/* The parent is answered in its version, if that is known. */
	if (d.command == NULL && m.version != 0)
		d.version = m.version;
	if (err < 0)
		fail_parse(error);
	else
		check_turn(&m);
	frames_clear(&m);
}

static void
on_drained(void)
{
	if (d.command != NULL)
		command_pause(d.command, false);
}

/* The parent is gone, so its command ends too. */
static void
on_ended(bool inside_frame)
{
	if (inside_frame)
		fail_text("protocol", "the input ends inside a frame");
	else if (d.command == NULL)
		fail_text("protocol", "the input ends before spawn_request");
	else
		finish(1);
}

static void
on_broken(int err)
{
	if (err == -EBADMSG)
		fail_text("protocol", "an empty frame");
	else if (err == -EMSGSIZE)
		fail_text("protocol", "a frame of more than 8388608 bytes");
	else
		finish(1);
}

static const struct parent_events parent_events = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

uint32_t
dialect_frames_run(void)
{
	parent_open(&parent_events);
	host_run(&d.finished);
	command_free(d.command);
	return d.code;
}
