/* SPDX-License-Identifier: ISC */
/*
 * The commands attach, watch, logs, wait, kill and ps. They find a command that
 * was started before by its record.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "run.h"

const struct option_row attach_options[] = {
	{ "process", 'p', "ID", "this process of the session" },
	{ "no-stdin", 'n', NULL, "send it no input" },
	{ 0 },
};

const struct option_row logs_options[] = {
	{ "process", 'p', "ID", "this process of the session" },
	{ "follow", 'f', NULL, "stay until the command has ended" },
	{ 0 },
};

const struct option_row kill_options[] = {
	{ "process", 'p', "ID", "this process of the session" },
	{ "signal", 's', "NAME", "INT, TERM (unless given), KILL, HUP, ..." },
	{ 0 },
};

/* --- Finding it --------------------------------------------------------- */

/* Without a record the session must be named in full, with its process. */
static int
without_record(struct execctl *ctl, struct record *r, const char *name)
{
	const char *process = option(ctl->parsed, "process");

	if (process == NULL)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "there is no record of a session `%s' (execctl ps lists "
		    "them); without one, --process is needed",
		    name);
	r->session = xstrdup(name);
	r->process = xstrdup(process);
	return 0;
}

/* Chooses the server: the command line decides, else the record. */
static int
choose_server(struct execctl *ctl, const struct record *r)
{
	_cleanup_free_ char *error = NULL;

	if (option(ctl->parsed, "url") || option(ctl->parsed, "environment") ||
	    r->url == NULL)
		return 0;
	ctl->cookie = r->cookie; /* of that URL alone */
	if (r->environment == NULL) {
		ctl->environment.url = xstrdup(r->url);
		if (execd_token_for_url(
			r->url, &ctl->environment.token, &error) < 0)
			return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
		return 0;
	}
	if (execd_environment_find(r->environment, &ctl->environment, &error) <
	    0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	return 0;
}

static int
find_session(struct execctl *ctl, struct record *r)
{
	const char *name = ctl->parsed->arguments[0];
	int err = record_find(name, r);

	if (err == -EEXIST)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "more than one session begins with `%s'", name);
	if (err < 0)
		return without_record(ctl, r, name);
	if (option(ctl->parsed, "process") != NULL) {
		free(r->process);
		r->process = xstrdup(option(ctl->parsed, "process"));
	}
	return choose_server(ctl, r);
}

/* --- Going on with it --------------------------------------------------- */

/* Saves in the record whether this execctl is attached. */
static void
take_over(struct execctl *ctl, struct record *r, bool attached)
{
	if (r->url == NULL)
		return;
	r->pid = attached ? getpid() : 0;
	record_write(ctl, r);
}

static int
follow(struct execctl *ctl, struct record *record, struct run *r)
{
	int code;

	/* A command that only reads may watch while another execctl is
	 * attached. Otherwise it attaches, because a watcher does not keep a
	 * session alive. */
	if (r->reads && record_attached(record))
		r->read_only = true;
	if (r->read_only)
		r->forget = false;
	code = execctl_connect(ctl, record->session, r->read_only);

	/* A session that is gone never comes back. */
	if (code != 0 && ctl->client != NULL &&
	    execd_client_failure(ctl->client) == EXECD_FAILURE_SESSION &&
	    strstr(execd_client_error(ctl->client), "unknown session"))
		record_remove(record->session);
	if (code != 0)
		return code;
	r->tty = record->tty;
	if (!r->read_only)
		take_over(ctl, record, true);
	code = run_attach(r, record->process);
	if (!r->read_only && r->left)
		take_over(ctl, record, false);
	return code;
}

static enum run_input
attach_input(struct execctl *ctl, const struct record *record)
{
	if (option(ctl->parsed, "no-stdin") != NULL)
		return RUN_INPUT_NONE;
	if (record->tty)
		return isatty(STDIN_FILENO) ? RUN_INPUT_TTY : RUN_INPUT_NONE;
	return isatty(STDIN_FILENO) ? RUN_INPUT_PIPE : RUN_INPUT_NONE;
}

/* Follows the session that the command line names, as r says. Clears r.
 * Returns the exit code. */
static int
with_session(struct execctl *ctl, struct run *r, bool input)
{
	struct record record = { 0 };
	int code = find_session(ctl, &record);

	if (input)
		r->input = attach_input(ctl, &record);
	if (code == 0)
		code = follow(ctl, &record, r);
	run_clear(r);
	record_clear(&record);
	return code;
}

int
cmd_attach(struct execctl *ctl)
{
	struct run r;

	run_init(&r, ctl);
	return with_session(ctl, &r, true);
}

int
cmd_watch(struct execctl *ctl)
{
	struct run r;

	run_init(&r, ctl);
	r.read_only = true;
	return with_session(ctl, &r, false);
}

int
cmd_logs(struct execctl *ctl)
{
	struct run r;

	run_init(&r, ctl);
	r.follow = option(ctl->parsed, "follow") != NULL;
	r.forget = false;
	r.reads = true;
	return with_session(ctl, &r, false);
}

int
cmd_wait(struct execctl *ctl)
{
	struct run r;

	run_init(&r, ctl);
	r.quiet_output = true;
	r.reads = true;
	return with_session(ctl, &r, false);
}

/* --- kill --------------------------------------------------------------- */

static int
signal_number(const char *name)
{
	for (int sig = 1; sig < 32; sig++)
		if (sigabbrev_np(sig) && !strcmp(sigabbrev_np(sig), name))
			return sig;
	return 0;
}

static void
nothing(void *arg, int code, const char *message)
{
}

/* Sends the signal over a connection of its own. */
static int
kill_remote(struct execctl *ctl, struct record *record, const char *name)
{
	static const struct execd_process_events none = { .failed = nothing };
	struct execd_process *p;
	struct reply r;
	int err, code = execctl_connect(ctl, record->session, false);

	if (code != 0)
		return code;
	p = execd_process_attach(ctl->client, record->process, &none, NULL);
	err = strcmp(name, "KILL") == 0 ? execd_process_terminate(p, 0)
					: execd_process_signal(p, name);
	if (err < 0)
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "the server cannot send SIG%s (it does not announce "
		    "processSignalTarget); INT and KILL work",
		    name);
	/* The server answers requests in order, so this answer means that the
	 * signal was sent. */
	call(ctl, "environment/status", NULL, EXECD_REPEAT, &r);
	if (r.code != 0)
		code = call_failed(ctl, &r, "kill");
	reply_clear(&r);
	return code;
}

int
cmd_kill(struct execctl *ctl)
{
	const char *name = option(ctl->parsed, "signal");
	struct record record = { 0 };
	int sig, code;

	name = name == NULL ? "TERM" : name;
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	sig = signal_number(name);
	if (sig == 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--signal: there is no signal `%s'", name);
	code = find_session(ctl, &record);
	/* Another execctl is attached to the session. It passes the signal
	 * on. */
	if (code == 0 && record_attached(&record) && sig != SIGKILL &&
	    sig != SIGSTOP) {
		if (kill((pid_t)record.pid, sig) < 0)
			code = execctl_fail(ctl, EXIT_CTL_REFUSED,
			    "execctl %" PRId64 ": %s", record.pid,
			    strerror(errno));
	} else if (code == 0 && record_attached(&record)) {
		code = execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "execctl %" PRId64 " is attached to the session, and "
		    "SIG%s would end that one only; send TERM or INT",
		    record.pid, name);
	} else if (code == 0) {
		code = kill_remote(ctl, &record, name);
	}
	record_clear(&record);
	return code;
}

/* --- ps ----------------------------------------------------------------- */

static void
print_age(int64_t started_ms)
{
	struct timespec now;
	int64_t s;

	clock_gettime(CLOCK_REALTIME, &now);
	s = now.tv_sec - started_ms / 1000;
	if (s < 0)
		s = 0;
	if (s < 3600)
		printf("%02" PRId64 ":%02" PRId64 "    ", s / 60, s % 60);
	else
		printf("%" PRId64 "h%02" PRId64 "m  ", s / 3600, s / 60 % 60);
}

static void
print_json(const struct record *r)
{
	struct json_text t;

	object_begin(&t);
	json_key_cstring(&t.w, "session", r->session);
	json_key_cstring(&t.w, "process", r->process);
	json_key_cstring(&t.w, "url", r->url);
	json_key_cstring(&t.w, "command", r->command);
	json_key_bool(&t.w, "tty", r->tty);
	json_key_i64(&t.w, "startedMs", r->started_ms);
	json_key(&t.w, "attachedPid");
	if (record_attached(r))
		json_i64(&t.w, r->pid);
	else
		json_null(&t.w);
	object_print(&t);
}

static void
print_record(void *arg, const struct record *r)
{
	struct execctl *ctl = arg;
	char state[32] = "left";

	if (ctl->json) {
		print_json(r);
		return;
	}
	if (record_attached(r))
		snprintf(state, sizeof(state), "pid %" PRId64, r->pid);
	printf("%-12.12s  ", r->session);
	print_age(r->started_ms);
	printf("%-11s  %s\n", state, r->command);
}

int
cmd_ps(struct execctl *ctl)
{
	int err;

	if (!ctl->json && !ctl->quiet)
		puts("SESSION       AGE      ATTACHED     COMMAND");
	err = record_each(print_record, ctl);
	if (err < 0)
		return execctl_fail(
		    ctl, EXIT_CTL_REFUSED, "records: %s", strerror(-err));
	return 0;
}
