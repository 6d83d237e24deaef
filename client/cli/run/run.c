/* SPDX-License-Identifier: ISC */
#include "run.h"

#include "jsonrpc.h"

/*
 * Sends standard input to the command. Each byte is sent once, and no more
 * writes are under way than the server queues.
 */

#define READ_BYTES 32768
#define WRITES_MAX 32 /* under way; the peer blocks after 128 */

#define ESCAPE	   '~'
#define CONTROL(c) ((c)&0x1f)

/* --- Answers ------------------------------------------------------------ */

static void run_input_update(struct run *r);

static void
written(void *arg, const struct execd_answer *a)
{
	struct run *r = arg;

	r->writes--;
	/* A command that has ended takes no input; its end is reported
	 * anyway. */
	if (a->code != 0 && a->code != EXECD_CODE_LOST)
		execctl_tell(r->ctl, "input: %s", a->message);
	if (a->code != 0 || !json_is(json_get(a->result, "status"), "accepted"))
		r->in_ended = r->in_closed = true;
	run_input_update(r);
}

static void
close_input(struct run *r)
{
	if (r->in_closed)
		return;
	r->in_closed = true;
	/* A terminal's input ends with a key. The first one ends a line that
	 * was begun. */
	if (!r->tty) {
		execd_process_close_stdin(r->process);
		return;
	}
	r->writes++;
	execd_process_write(r->process, "\4\4", 2, written, r);
}

/* --- Keys --------------------------------------------------------------- */

/* The terminal is raw. */
static const char escapes[] =
    "~?\r\n"
    "At the start of a line:\r\n"
    "  ~.   leave; the command goes on, execctl attach finds it\r\n"
    "  ~^Z  suspend execctl\r\n"
    "  ~~   one ~\r\n"
    "  ~?   this list\r\n";

/* What is no escape goes to the command with the ~ before it. */
static bool
take_escape(char c)
{
	if (c == '?')
		terminal_print(escapes);
	else if (c == CONTROL('Z'))
		terminal_suspend();
	else
		return false;
	return true;
}

/* "~." at the start of a line makes execctl leave, even if the connection is
 * dead. The function returns true then. It removes all escapes from data[]. */
static bool
take_escapes(struct run *r, char *data, ssize_t *n)
{
	ssize_t to = 0;

	for (ssize_t i = 0; i < *n; i++) {
		char c = data[i];

		if (r->escaped && c == '.')
			return true;
		if (r->escaped && take_escape(c)) {
			r->escaped = false;
			continue;
		}
		if (r->escaped && c != ESCAPE)
			data[to++] = ESCAPE; /* it was not an escape */
		if (!r->escaped && r->at_line_start && c == ESCAPE) {
			r->escaped = true;
			continue;
		}
		r->escaped = false;
		r->at_line_start = c == '\r' || c == '\n';
		data[to++] = c;
	}
	*n = to;
	return false;
}

static void
leave(struct run *r)
{
	char text[SCREEN_RESTORE_MAX];

	screen_restore(&r->screen, text);
	terminal_print(text);
	terminal_restore();
	execctl_say("left with ~. while the command runs; "
		    "`execctl attach %s' goes on with it",
	    execd_client_session(r->ctl->client));
	run_leave(r, EXIT_CTL_UNKNOWN);
}

/* --- Reading ------------------------------------------------------------ */

static void
ready(void *arg)
{
	struct run *r = arg;
	char data[READ_BYTES * 2];
	ssize_t n = read(r->in.fd, data, READ_BYTES);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0 && errno != EIO)
		execctl_say("standard input: %s", strerror(errno));
	if (n <= 0) {
		r->in_ended = true;
		/* A raw terminal has no end of input but this one. */
		if (r->input == RUN_INPUT_TTY)
			run_hang_up(r);
	} else if (r->input == RUN_INPUT_TTY && take_escapes(r, data, &n)) {
		leave(r);
		return;
	} else if (n > 0) {
		r->writes++;
		execd_process_write(r->process, data, (size_t)n, written, r);
	}
	run_input_update(r);
}

/* Starts or stops reading input, depending on what is allowed now. */
static void
run_input_update(struct run *r)
{
	bool more = r->started && !r->in_ended && !r->done &&
		    r->writes < WRITES_MAX && r->input != RUN_INPUT_NONE;

	/* The terminal is read even while nothing is answered, so that ~.
	 * works. */
	if (r->input == RUN_INPUT_TTY && r->started && !r->done)
		more = !r->in_ended;
	if (r->in.added || more)
		source_set(r->ctl, &r->in, STDIN_FILENO, more ? POLLIN : 0);
	if (r->in_ended && r->input == RUN_INPUT_PIPE && !r->done)
		close_input(r);
}

static int
run_input_begin(struct run *r)
{
	int err;

	r->in.ready = ready;
	r->in.arg = r;
	if (r->input == RUN_INPUT_TTY) {
		err = terminal_raw();
		if (err < 0)
			return execctl_fail(r->ctl, EXIT_CTL_USAGE,
			    "-t needs a terminal as standard input: %s",
			    strerror(-err));
	}
	run_input_update(r);
	return 0;
}

static void
run_input_end(struct run *r)
{
	source_remove(r->ctl, &r->in);
	terminal_restore();
}

/*
 * `run --json` writes one JSON object, on a line of its own, for each event.
 */

#define LINE_MAX_BYTES (128u << 20)

static void
begin(struct json_text *t, const char *event)
{
	json_text_init(t, LINE_MAX_BYTES);
	json_begin(&t->w, '{');
	json_key_cstring(&t->w, "event", event);
}

static void
end(struct run *r, struct json_text *t)
{
	json_end(&t->w, '}');
	buf_puts(&t->buf, "\n");
	output_put(&r->out, t->buf.data, t->buf.len);
	buf_clear(&t->buf);
}

static void
run_json_started(struct run *r, const char *sandbox_type)
{
	struct json_text t;

	begin(&t, "started");
	json_key_cstring(&t.w, "session", execd_client_session(r->ctl->client));
	json_key_cstring(&t.w, "process", execd_process_id(r->process));
	json_key_cstring(&t.w, "sandboxType", sandbox_type);
	end(r, &t);
}

static void
run_json_output(
    struct run *r, enum execd_stream stream, const void *data, size_t len)
{
	static const char *const names[] = { [EXECD_STDOUT] = "stdout",
		[EXECD_STDERR] = "stderr",
		[EXECD_TERMINAL] = "terminal" };
	struct json_text t;

	begin(&t, "output");
	json_key_cstring(&t.w, "stream", names[stream]);
	json_key_base64(&t.w, "dataBase64", data, len);
	end(r, &t);
}

static void
run_json_gap(struct run *r, uint64_t events, uint64_t bytes)
{
	struct json_text t;

	begin(&t, "lost");
	json_key_u64(&t.w, "events", events);
	if (bytes > 0)
		json_key_u64(&t.w, "bytes", bytes);
	end(r, &t);
}

static void
run_json_exited(struct run *r, const struct execd_exit *how)
{
	struct json_text t;

	begin(&t, "exited");
	json_key_i64(&t.w, "exitCode", how->code);
	json_key_bool(&t.w, "timedOut", r->timed_out);
	json_key_bool(&t.w, "sandboxDenied", how->sandbox_denied);
	end(r, &t);
}

/*
 * Connects a remote command with the standard streams of execctl.
 */

#define QUEUED_MAX     (1u << 20) /* bytes of output; more pauses the client */
#define ABANDON_MS     3000	  /* wait for the end of a killed command */
#define DRAIN_MS       200	  /* what a terminal held at the exit */
#define CLIENT_LATE_MS 2000	  /* the server's own timeout comes first */

void
run_finish(struct run *r, int code)
{
	if (r->done)
		return;
	r->done = true;
	r->code = code;
}

void
run_leave(struct run *r, int code)
{
	r->left = true;
	r->ctl->ends = false;
	run_finish(r, code);
}

static void
give_up(void *arg)
{
	struct run *r = arg;

	/* While the connection is lost the kill cannot arrive. Waits until it
	 * is back or the client gives up. */
	if (execd_client_lost_ms(r->ctl->client) > 0)
		timer_set(r->ctl, &r->giving_up, ABANDON_MS);
	else
		run_finish(r, r->code);
}

void
run_abandon(struct run *r, int code)
{
	if (r->done || r->giving_up.added)
		return;
	r->code = code;
	r->giving_up.fire = give_up;
	r->giving_up.arg = r;
	timer_set(r->ctl, &r->giving_up, ABANDON_MS);
	execd_process_terminate(r->process, 0);
}

/* --- Output ------------------------------------------------------------- */

static void
set_pause(struct run *r, bool pause)
{
	if (r->pauses != pause)
		execctl_pause(r->ctl, pause);
	r->pauses = pause;
}

/* Stops reading from the server while the output is not taken. */
static void
output_changed(void *arg)
{
	struct run *r = arg;
	size_t queued = output_queued(&r->out) + output_queued(&r->err);
	int err = r->out.failed ? r->out.failed : r->err.failed;

	set_pause(r, queued > QUEUED_MAX);
	if (err < 0 && terminal_is_gone())
		run_hang_up(r);
	if (err == 0 || r->done || r->hung_up || r->giving_up.added)
		return;
	execctl_say("standard %s: %s; the command %s",
	    r->out.failed ? "output" : "error", strerror(-err),
	    r->start != NULL ? "is killed" : "goes on");
	err = err == -EPIPE ? 128 + SIGPIPE : EXIT_CTL_REFUSED;
	if (r->start != NULL)
		run_abandon(r, err);
	else
		run_leave(r, err);
}

static void
on_output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	struct run *r = arg;

	if (r->quiet_output)
		return;
	if (stream == EXECD_TERMINAL)
		screen_watch(&r->screen, data, len);
	if (r->capture != NULL)
		capture_put(r->capture, data, len);
	else if (r->ctl->json)
		run_json_output(r, stream, data, len);
	else
		output_put(
		    stream == EXECD_STDERR ? &r->err : &r->out, data, len);
	output_changed(r);
}

static void
on_gap(void *arg, uint64_t events, uint64_t bytes)
{
	struct run *r = arg;

	if (bytes > 0)
		execctl_say("%" PRIu64
			    " bytes of output are lost: they fell out "
			    "of what the server retains",
		    bytes);
	else
		execctl_say("output is lost: %" PRIu64
			    " pieces fell out of what "
			    "the server retains",
		    events);
	if (r->ctl->json)
		run_json_gap(r, events, bytes);
}

/* Without --follow, logs ends when all retained output was written. */
static void
on_caught_up(void *arg)
{
	struct run *r = arg;

	if (!r->follow)
		run_finish(r, 0);
}

/* --- The end ------------------------------------------------------------ */

static void
on_started(void *arg, const char *sandbox_type)
{
	struct run *r = arg;

	r->started = true;
	if (r->profile != NULL && strcmp(sandbox_type, "none") == 0) {
		execctl_say(
		    "the server reports no sandbox, and --sandbox %s was "
		    "asked for; the command is killed",
		    r->profile);
		run_abandon(r, EXIT_CTL_REFUSED);
		return;
	}
	execctl_tell(r->ctl, "started, sandbox %s", sandbox_type);
	if (r->remember != NULL)
		r->remember(r->ctl, r, r->start, true);
	if (r->ctl->json && r->capture == NULL)
		run_json_started(r, sandbox_type);
	run_input_update(r);
	forward_update(r);
}

/* HOST:PORT, with brackets around the address of IPv6. A look-up has no port.
 */
static void
tell_denied_host(const struct json_value *d)
{
	char host[256], rule[300], reason[64], port[32] = "";
	long long number = (long long)execd_json_number(json_get(d, "port"), 0);
	const char *by = value_string(json_get(d, "rule"), rule, sizeof(rule));
	bool address =
	    strchr(value_string(json_get(d, "host"), host, sizeof(host)),
		':') != NULL;

	if (number != 0)
		snprintf(port, sizeof(port), ":%lld", number);
	execctl_say("the command may not reach %s%s%s%s: %s%s%s",
	    address ? "[" : "", host, address ? "]" : "", port,
	    value_string(json_get(d, "reason"), reason, sizeof(reason)),
	    by[0] != '\0' ? ", by the rule " : "", by);
}

static void
tell_denied_hosts(const struct json_value *details)
{
	const struct json_value *all = json_get(details, "networkDenied");
	long long more =
	    execd_json_number(json_get(details, "networkDeniedMore"), 0);

	if (all == NULL || all->type != JSON_ARRAY)
		return;
	for (const struct json_value *d = all->first; d != NULL; d = d->next)
		tell_denied_host(d);
	if (more > 0)
		execctl_say("it was denied %lld more", more);
}

/* A deadline of the operator's is: a line on standard error names it. */
static bool
is_told_by_server(const struct execd_exit *how)
{
	static const char cause[] = "command-deadline";
	size_t len = 0;
	const char *text =
	    execd_json_string(execd_json_get(how->details, "killedBy"), &len);

	return text != NULL && len == sizeof(cause) - 1 &&
	       memcmp(text, cause, len) == 0;
}

static void
tell_shared_memory(const struct run *r)
{
	int64_t bytes = execd_process_shm_bytes(r->process);
	char size[64] = "";

	if (bytes > 0)
		snprintf(size, sizeof(size), ", which has %" PRId64 " KiB,",
		    bytes / 1024);
	execctl_say("the command had a bus error: /dev/shm of its sandbox%s "
		    "may be full",
	    size);
}

static void
tell_end(struct run *r, const struct execd_exit *how)
{
	/* The server that names the limit has written it to standard error. */
	bool oom =
	    execd_json_bool(execd_json_get(how->details, "oomKilled"), false) &&
	    execd_json_get(how->details, "limit") == NULL;

	if (how->sandbox_denied)
		execctl_say("the sandbox%s%s%s denied something that the "
			    "command tried",
		    r->profile ? " (profile " : "",
		    r->profile ? r->profile : "", r->profile ? ")" : "");
	tell_denied_hosts(how->details);
	if (r->profile && how->code == 128 + SIGBUS)
		tell_shared_memory(r);
	if (oom)
		execctl_say("the command was killed: out of memory");
	if (r->timed_out && !is_told_by_server(how))
		execctl_say(
		    "the command reached its time limit and was killed");
}

static void
on_closed(void *arg)
{
	struct run *r = arg;

	if (r->forget)
		record_end(r->ctl, execd_client_session(r->ctl->client));
	run_finish(r, r->code);
}

static void
drained(void *arg)
{
	struct run *r = arg;

	if (r->ctl->ends && !r->ctl->quiet)
		execctl_say("what the command left on the terminal ends with "
			    "its session");
	on_closed(r);
}

/* A job in the background may hold the terminal for ever, so its end is not
 * waited for, as ssh(1) does not. Once the user's terminal is gone nobody waits
 * here, and what is left can save what it has: run ends the session when it
 * leaves. */
static void
leave_terminal(struct run *r)
{
	if (!r->tty || r->hung_up || r->giving_up.added)
		return;
	r->drained.fire = drained;
	r->drained.arg = r;
	timer_set(r->ctl, &r->drained, DRAIN_MS);
}

static void
on_exited(void *arg, const struct execd_exit *how)
{
	struct run *r = arg;

	r->timed_out |= how->timed_out;
	r->denied = how->sandbox_denied;
	if (!r->quiet_output || r->follow)
		tell_end(r, how);
	if (!r->giving_up.added)
		r->code = r->timed_out ? EXIT_CTL_TIMEOUT : how->code;
	if (r->ctl->json && r->capture == NULL)
		run_json_exited(r, how);
	leave_terminal(r);
}

/* Converts the error of process/start to the exit status of a shell. */
static int
start_status(const char *message)
{
	if (strstr(message, "(os error 2)") != NULL)
		return EXIT_CTL_NOT_FOUND;
	if (strstr(message, "(os error 13)") != NULL ||
	    strstr(message, "(os error 8)") != NULL ||
	    strstr(message, "(os error 20)") != NULL)
		return EXIT_CTL_NOT_EXECUTABLE;
	return EXIT_CTL_REFUSED;
}

/*
 * Returns the PATH that the command was given. NULL: the session's, which is
 * not known here.
 */
static const char *
given_path(const struct execd_start *s)
{
	for (const char *const *v = s->env; v != NULL && *v != NULL; v++)
		if (strncmp(*v, "PATH=", 5) == 0)
			return *v;
	return NULL;
}

/* The caller owns the result. */
static char *
where_it_was_searched(const struct execd_start *s)
{
	const char *path = given_path(s);

	if (strchr(s->argv[0], '/') != NULL)
		return xstrdup("");
	return path != NULL ? xasprintf(" in %s", path)
			    : xstrdup(" in the PATH of the session");
}

/* What only a shell does itself. */
static bool
is_of_a_shell(const char *name)
{
	static const char *const names[] = { ".", "alias", "cd", "exit",
		"export", "source", "type", "ulimit", "umask", "unset" };

	for (size_t i = 0; i < nitems(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* A program's name has no blanks, but a line of a shell has. */
static const char *
line_for_a_shell(const struct execd_start *s)
{
	if (is_of_a_shell(s->argv[0]))
		return "; a line for a shell is run by: sh -c 'LINE'";
	if (s->argv[1] != NULL && strchr(s->argv[0], '=') != NULL)
		return "; -E NAME=VALUE sets a variable of the command";
	return s->argv[1] == NULL && strpbrk(s->argv[0], " |&;<>()$`") != NULL
		   ? "; a line for a shell is run by: sh -c 'LINE'"
		   : "";
}

static void
say_not_found(struct run *r, bool directory)
{
	const struct execd_start *s = r->start;
	_cleanup_free_ char *where = where_it_was_searched(s);

	if (directory)
		run_finish(
		    r, execctl_fail(r->ctl, EXIT_CTL_REFUSED,
			   "the command was not started: there is no directory "
			   "%s on the server",
			   s->cwd));
	else
		run_finish(
		    r, execctl_fail(r->ctl, EXIT_CTL_NOT_FOUND,
			   "the command was not started: %s: not found%s%s",
			   s->argv[0], where, line_for_a_shell(s)));
}

static void
directory_known(void *arg, const struct execd_answer *a)
{
	struct run *r = arg;

	if (!r->done)
		say_not_found(r, a->code == RPC_NOT_FOUND);
}

/* The kernel does not say whether it is the program or the directory. */
static void
say_why(struct run *r, const char *message)
{
	const struct execd_start *s = r->start;
	bool bare = s != NULL && s->cwd != NULL &&
		    strncmp(message, "Permission denied (", 19) == 0;
	bool no_program =
	    s != NULL && strncmp(message, "Exec format error (", 19) == 0;
	bool named = bare || no_program;

	run_finish(
	    r, execctl_fail(r->ctl, start_status(message),
		   "the command was not started: %s%s%s%s%s%s",
		   named ? s->argv[0] : "", bare ? " in " : "",
		   bare ? s->cwd : "", named ? ": " : "", message,
		   no_program ? "; a script begins with a line like #!/bin/sh"
			      : ""));
}

/* A missing program and a missing directory give the same error. */
static void
on_failed(void *arg, int code, const char *message)
{
	struct run *r = arg;

	if (r->done)
		return;
	if (execd_client_failure(r->ctl->client) == EXECD_FAILURE_TAKEN) {
		r->left = true;
		run_finish(r, execctl_fail(r->ctl, EXIT_CTL_UNKNOWN,
				  "%s; the command goes on there", message));
		return;
	}
	if (code == EXECD_CODE_LOST) {
		r->ctl->ends = false; /* the command may be running */
		run_finish(r,
		    execctl_fail(r->ctl, EXIT_CTL_UNKNOWN,
			"%s; what became of the command is unknown", message));
		return;
	}
	/* What stands behind the error says more than is found out here. */
	if (start_status(message) == EXIT_CTL_NOT_FOUND &&
	    message[strlen(message) - 1] == ')' && r->start != NULL &&
	    r->start->cwd != NULL)
		ask_path(r->ctl, "fs/getMetadata", r->start->cwd,
		    directory_known, r);
	else
		say_why(r, message);
}

static const struct execd_process_events events = { .started = on_started,
	.output = on_output,
	.gap = on_gap,
	.caught_up = on_caught_up,
	.exited = on_exited,
	.closed = on_closed,
	.failed = on_failed };

static void
deadline_passed(void *arg)
{
	struct run *r = arg;

	r->timed_out = true;
	run_abandon(r, EXIT_CTL_TIMEOUT);
}

/* --- From start to end -------------------------------------------------- */

void
run_init(struct run *r, struct execctl *ctl)
{
	*r = (struct run){ .ctl = ctl,
		.follow = true,
		.forget = true,
		.at_line_start = true };
	output_init(&r->out, ctl, STDOUT_FILENO, output_changed, r);
	output_init(&r->err, ctl, STDERR_FILENO, output_changed, r);
}

void
run_clear(struct run *r)
{
	/* Its events and the answers to its requests may still come, and they
	 * point to memory that will be gone. */
	execd_process_free(r->process);
	r->process = NULL;
	r->ctl->end.told = NULL;
	run_input_end(r);
	run_signals_end(r);
	timer_remove(r->ctl, &r->terminated);
	timer_remove(r->ctl, &r->deadline);
	timer_remove(r->ctl, &r->giving_up);
	timer_remove(r->ctl, &r->drained);
	timer_remove(r->ctl, &r->repaint);
	r->ctl->resumed = NULL;
	output_clear(&r->out);
	output_clear(&r->err);
}

/* Writes all output of the command before its exit status is returned. */
static int
drain(struct run *r)
{
	int err;

	set_pause(r, false);
	err = output_drain(&r->out);
	if (err == 0)
		err = output_drain(&r->err);
	if (err < 0 && r->code == 0)
		return EXIT_CTL_REFUSED; /* the error was reported */
	return r->code;
}

static int
stay(struct run *r)
{
	int code = run_signals_begin(r);

	r->ctl->resumed = run_repaint;
	r->ctl->notification_arg = r;
	if (code == 0)
		code = run_input_begin(r);
	if (code != 0) {
		run_abandon(r, code);
		r->input = RUN_INPUT_NONE;
	}
	if (r->timeout_ms != 0) {
		r->deadline.fire = deadline_passed;
		r->deadline.arg = r;
		timer_set(r->ctl, &r->deadline, (int64_t)r->timeout_ms);
	}
	while (!r->done)
		loop_once(r->ctl);
	forward_end(r);
	run_input_end(r);
	return drain(r);
}

static int
start_refused(struct run *r, int err)
{
	switch (err) {
	case -ENOTCONN:
		return execctl_over(r->ctl);
	case -EILSEQ:
		return execctl_fail(r->ctl, EXIT_CTL_USAGE,
		    "an argument or a variable is not UTF-8, and the protocol "
		    "has no way to send it");
	case -EINVAL:
		return execctl_fail(r->ctl, EXIT_CTL_USAGE,
		    "--cwd must be absolute, and --env must be NAME=VALUE");
	default:
		return execctl_fail(
		    r->ctl, EXIT_CTL_REFUSED, "start: %s", strerror(-err));
	}
}

int
run_start(struct run *r, const struct execd_start *start)
{
	struct execd_start s = *start;
	int err;

	r->start = start;
	/* If the server has a timeout, the local one comes later and only
	 * catches a server that does not keep its own. */
	err = execd_process_start(r->ctl->client, &s, &events, r, &r->process);
	if (err == -ENOTSUP) {
		s.timeout_ms = 0;
		r->timeout_ms = start->timeout_ms;
		err = execd_process_start(
		    r->ctl->client, &s, &events, r, &r->process);
	} else if (s.timeout_ms != 0) {
		r->timeout_ms = s.timeout_ms + CLIENT_LATE_MS;
	}
	if (err < 0)
		return start_refused(r, err);
	return stay(r);
}

int
run_attach(struct run *r, const char *process_id)
{
	r->started = true;
	r->process =
	    execd_process_attach(r->ctl->client, process_id, &events, r);
	/* It had that of another terminal. */
	if (r->input == RUN_INPUT_TTY)
		terminal_resize(r);
	return stay(r);
}

int
run_detached(struct run *r, const struct execd_start *start)
{
	int err;

	/* The caller saves the record, with nobody attached. Output is kept for
	 * those who attach later. */
	r->remember = NULL;
	r->forget = false;
	r->quiet_output = true;
	err =
	    execd_process_start(r->ctl->client, start, &events, r, &r->process);
	if (err == -ENOTSUP)
		return execctl_fail(r->ctl, EXIT_CTL_REFUSED,
		    "--timeout with --detach needs a server that announces "
		    "processTimeout");
	if (err < 0)
		return start_refused(r, err);
	while (!r->done && (!r->started || r->giving_up.added))
		loop_once(r->ctl);
	return r->started && !r->giving_up.added ? 0 : r->code;
}
