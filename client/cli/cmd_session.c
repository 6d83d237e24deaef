/* SPDX-License-Identifier: ISC */
/*
 * The commands attach, watch, logs, wait and kill. They find a command that
 * was started before by its record, or ask the server for its session.
 */

#include "base.h"
#include "cmd.h"
#include "run.h"

/* How long a session is waited for that another client has. A server that
 * probes that client answers when it knows. */
#define PATIENCE_MS 1000

const struct option_row attach_options[] = {
	{ "process", 'p', "ID", "this process of the session" },
	{ "no-stdin", 'n', NULL, "send it no input" },
	{ "steal", 0, NULL, "take the session over from who has it" },
	{ 0 },
};

const struct option_row wait_options[] = {
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
	{ "signal", 's', "NAME",
	    "INT, TERM (unless given), KILL, 9, ...; also as -INT or -9" },
	{ 0 },
};

/* --- Finding it --------------------------------------------------------- */

/* A whole id is a UUID, with every server. */
#define SESSION_ID_CHARS 36

/* A session of which there is no record may have been opened from elsewhere. */
static int
without_record(struct execctl *ctl, struct record *r, const char *name)
{
	const char *process = option(ctl->parsed, "process");

	if (process != NULL)
		r->process = xstrdup(process);
	if (process == NULL || strlen(name) < SESSION_ID_CHARS)
		return session_find(ctl, name, &r->session);
	r->session = xstrdup(name);
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
	return option(ctl->parsed, "url") ||
		       option(ctl->parsed, "environment") || r->url == NULL
		   ? 0
		   : record_choose_server(ctl, r);
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

/* Says who has the session, and how to have it. */
static int
attached_elsewhere(struct execctl *ctl, const struct record *record)
{
	const char *session = ctl->parsed->arguments[0];
	char peer[256], here[64] = "";
	bool known = session_holder(ctl, record->session, peer, sizeof(peer));

	if (record_attached(record))
		snprintf(here, sizeof(here), ", execctl %" PRId64 " here",
		    record->pid);
	if (ctl->steal)
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "the session is attached to another client%s%s%s, and this "
		    "server does not let clients take a session over (it does "
		    "not announce sessionTakeOver)",
		    known ? ", " : "", peer, here);
	/* A server that does not say who it is can do neither. */
	if (!known)
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "the session is attached to another client%s", here);
	return execctl_fail(ctl, EXIT_CTL_REFUSED,
	    "the session is attached to another client, %s%s; "
	    "`execctl watch %s' shows it, `execctl attach --steal %s' takes "
	    "it over",
	    peer, here, session, session);
}

/* A command that only reads can do so beside the client that has the session.
 */
static int
open_session(struct execctl *ctl, const struct record *record, struct run *r)
{
	int code;

	ctl->patience_ms = PATIENCE_MS;
	code = execctl_open(ctl, record->session, r->read_only);
	if (code != -ENOTCONN)
		return code;
	switch (execd_client_failure(ctl->client)) {
	case EXECD_FAILURE_ATTACHED:
		if (!r->reads || r->read_only)
			return attached_elsewhere(ctl, record);
		execd_client_free(ctl->client);
		ctl->client = NULL;
		r->read_only = true;
		return execctl_connect(ctl, record->session, true);
	case EXECD_FAILURE_SESSION:
		/* A session that is gone never comes back. */
		if (strstr(execd_client_error(ctl->client),
			"unknown session") != NULL)
			record_remove(record->session);
		return execctl_over(ctl);
	default:
		return execctl_over(ctl);
	}
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

/* Follows the command as r says. */
static int
follow(struct execctl *ctl, struct record *record, struct run *r, bool input)
{
	int code;

	/* A command that only reads may watch while another execctl is
	 * attached. Otherwise it attaches, because a watcher does not keep a
	 * session alive. */
	if (r->reads && record_attached(record))
		r->read_only = true;
	code = open_session(ctl, record, r);
	if (code == 0 && record->process == NULL)
		code =
		    session_newest_process(ctl, &record->process, &record->tty);
	if (code != 0)
		return code;
	if (r->read_only)
		r->forget = false;
	if (input)
		r->input = attach_input(ctl, record);
	r->tty = record->tty;
	if (!r->read_only)
		take_over(ctl, record, true);
	code = run_attach(r, record->process);
	if (!r->read_only && r->left)
		take_over(ctl, record, false);
	return code;
}

/* Follows the session that the command line names, as r says. Clears r.
 * Returns the exit code. */
static int
with_session(struct execctl *ctl, struct run *r, bool input)
{
	struct record record = { 0 };
	int code = find_session(ctl, &record);

	if (code == 0)
		code = follow(ctl, &record, r, input);
	run_clear(r);
	record_clear(&record);
	return code;
}

int
cmd_attach(struct execctl *ctl)
{
	struct run r;

	run_init(&r, ctl);
	ctl->steal = option(ctl->parsed, "steal") != NULL;
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
	char number[8];

	for (int sig = 1; sig < 32; sig++) {
		snprintf(number, sizeof(number), "%d", sig);
		if (sigabbrev_np(sig) &&
		    (strcmp(sigabbrev_np(sig), name) == 0 ||
			strcmp(number, name) == 0))
			return sig;
	}
	return 0;
}

static void
nothing(void *arg, int code, const char *message)
{
}

/* The answers to a signal do not say whether there was still something to be
 * killed. Nothing is read: the number is past all output. */
static int
check_running(struct execctl *ctl, const char *process)
{
	struct json_text params;
	struct reply r;
	int code = 0;

	object_begin(&params);
	json_key_string(&params.w, "processId", process, strlen(process));
	json_key_u64(&params.w, "afterSeq", INT64_MAX);
	call(ctl, "process/read", &params, EXECD_REPEAT, &r);
	if (r.code != 0)
		code = call_failed(ctl, &r, "kill");
	else if (execd_json_bool(json_get(r.result, "exited"), false))
		code = execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "the command has ended already; `execctl wait' tells how");
	reply_clear(&r);
	return code;
}

/* Sends the signal over a connection of its own. */
static int
kill_remote(struct execctl *ctl, struct record *record, const char *name)
{
	static const struct execd_process_events none = { .failed = nothing };
	struct execd_process *p;
	struct reply r;
	int err, code = execctl_connect(ctl, record->session, false);

	if (code == 0 && record->process == NULL)
		code =
		    session_newest_process(ctl, &record->process, &record->tty);
	if (code == 0)
		code = check_running(ctl, record->process);
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
	name = sigabbrev_np(sig);
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
