/* SPDX-License-Identifier: ISC */
/*
 * The commands execctl run and execctl shell.
 */
#include <sys/sysmacros.h>

#include "base.h"
#include "capabilities.h"
#include "cmd.h"
#include "run.h"
#include "terminal_modes.h"

const struct option_row run_options[] = {
	{ "tty", 't', NULL,
	    "on a terminal, with this one in raw mode; -tt: also without one" },
	{ "no-stdin", 'n', NULL, "the command gets no input" },
	{ "interactive", 'i', NULL,
	    "nothing: the command gets input unless -n is given" },
	{ "cwd", 'C', "DIRECTORY", "where it runs (the home directory)" },
	{ "env", 'E', "NAME=VALUE", "a variable; NAME alone: its value here" },
	{ "inherit", 0, "WHAT", "the server's variables: core, all or none" },
	{ "timeout", 'T', "TIME", "kill the command then; the status is 124" },
	{ "sandbox", 's', "PROFILE", "read-only or workspace-write" },
	{ "network", 0, NULL, "let the sandbox have the network" },
	{ "allow-host", 0, "HOST[:PORT]",
	    "the command reaches these hosts and no others" },
	{ "forward", 'L', "[PORT:]PORT",
	    "a port here leads to a port of the command's loopback" },
	{ "detach", 'd', NULL, "start it, print its session and exit" },
	{ "keep", 0, "TIME",
	    "with -d: keep the session so long after the end (10m)" },
	{ "capture", 0, NULL,
	    "after the end, write at most 10 KiB and 256 lines" },
	{ "parallel", 0, "N",
	    "with -e A,B,...: on so many servers at a time (8)" },
	{ 0 },
};

const struct option_row shell_options[] = {
	{ "cwd", 'C', "DIRECTORY", "where it runs (the home directory)" },
	{ "env", 'E', "NAME=VALUE", "a variable; NAME alone: its value here" },
	{ "sandbox", 's', "PROFILE", "read-only or workspace-write" },
	{ "network", 0, NULL, "let the sandbox have the network" },
	{ "allow-host", 0, "HOST[:PORT]",
	    "the shell reaches these hosts and no others" },
	{ "forward", 'L', "[PORT:]PORT",
	    "a port here leads to a port of the shell's loopback" },
	{ 0 },
};

/* The parameters of a start, and the memory they use. */
struct job {
	struct execd_start start;
	char *cwd;
	char **env;	    /* owned, with its strings */
	const char **hosts; /* owned */
	uint8_t modes[TERMINAL_MODES_MAX];
	struct buf sandbox;
};

static void
job_clear(struct job *j)
{
	for (size_t i = 0; j->env != NULL && j->env[i] != NULL; i++)
		free(j->env[i]);
	free(j->env);
	free(j->hosts);
	free(j->cwd);
	buf_clear(&j->sandbox);
}

/* --- From options to start ---------------------------------------------- */

extern char **environ;

/* A name or NAME=VALUE, beside NAME=VALUE. */
static bool
is_same_name(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return strncmp(a, b, len) == 0 && b[len] == '=';
}

static bool
is_given(const struct execctl *ctl, const char *variable)
{
	const char *given;

	for (size_t i = 0; (given = option_nth(ctl->parsed, "env", i)) != NULL;
	     i++)
		if (is_same_name(given, variable))
			return true;
	return false;
}

static bool
is_locale(const char *variable)
{
	return strncmp(variable, "LANG=", 5) == 0 ||
	       strncmp(variable, "LC_", 3) == 0;
}

/* The user reads what the command writes, so his language travels, as with
 * ssh on Debian (SendEnv). Returns how many variables there are. */
static size_t
add_locale(struct execctl *ctl, char **to)
{
	const char *inherit = option(ctl->parsed, "inherit");
	size_t n = 0;

	if (inherit != NULL && strcmp(inherit, "none") == 0)
		return 0;
	for (char **v = environ; *v != NULL; v++) {
		if (!is_locale(*v) || is_given(ctl, *v))
			continue;
		if (to != NULL)
			to[n] = xstrdup(*v);
		n++;
	}
	return n;
}

static int
take_env(struct execctl *ctl, struct job *j)
{
	const char *given;
	size_t n = 0, to;

	while (option_nth(ctl->parsed, "env", n) != NULL)
		n++;
	j->env = xcalloc(n + add_locale(ctl, NULL) + 1, sizeof(*j->env));
	to = add_locale(ctl, j->env);
	for (size_t i = 0; i < n; i++) {
		given = option_nth(ctl->parsed, "env", i);
		if (given[0] == '=' || given[0] == '\0')
			return execctl_fail(ctl, EXIT_CTL_USAGE,
			    "--env: `%s' has no name", given);
		if (strchr(given, '=') != NULL)
			j->env[to++] = xstrdup(given);
		else if (getenv(given) != NULL)
			j->env[to++] = xasprintf("%s=%s", given, getenv(given));
		else
			return execctl_fail(ctl, EXIT_CTL_USAGE,
			    "--env: %s is not set here", given);
	}
	j->start.env = (const char *const *)j->env;
	return 0;
}

static int
take_inherit(struct execctl *ctl, struct job *j)
{
	static const char *const names[] = { [EXECD_INHERIT_CORE] = "core",
		[EXECD_INHERIT_ALL] = "all",
		[EXECD_INHERIT_NONE] = "none" };
	const char *given = option(ctl->parsed, "inherit");

	for (size_t i = 0; given != NULL && i < nitems(names); i++) {
		if (strcmp(given, names[i]) != 0)
			continue;
		j->start.inherit = (enum execd_inherit)i;
		given = NULL;
	}
	if (given == NULL)
		return 0;
	return execctl_fail(ctl, EXIT_CTL_USAGE,
	    "--inherit: `%s' is not core, all or none", given);
}

/* A server that knows no lists would give the command all of the network. */
static int
take_hosts(struct execctl *ctl, struct job *j)
{
	size_t n = 0;

	while (option_nth(ctl->parsed, "allow-host", n) != NULL)
		n++;
	if (n == 0)
		return 0;
	if (!execd_client_can(ctl->client, CAN_NETWORK))
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "--allow-host: this server cannot hold a command to a list "
		    "of hosts (it does not announce processNetwork)");
	j->hosts = xcalloc(n + 1, sizeof(*j->hosts));
	for (size_t i = 0; i < n; i++)
		j->hosts[i] = option_nth(ctl->parsed, "allow-host", i);
	j->start.allow_hosts = j->hosts;
	return 0;
}

static int
take_sandbox(struct execctl *ctl, struct job *j)
{
	const char *profile = option(ctl->parsed, "sandbox");
	bool network = option(ctl->parsed, "network") != NULL;

	buf_init(&j->sandbox, 1u << 20);
	if (profile == NULL && network)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--network means nothing without --sandbox");
	if (network && j->hosts != NULL)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--network is all of it, and --allow-host a part: use one");
	if (profile == NULL)
		return 0;
	network |= j->hosts != NULL;
	if (!sandbox_profile_write(&j->sandbox, profile, j->cwd, network))
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--sandbox: `%s' is neither read-only nor workspace-write",
		    profile);
	buf_put_u8(&j->sandbox, '\0');
	j->start.sandbox = (const char *)j->sandbox.data;
	return 0;
}

/* Reads the options and connects: the home directory is known only then. */
static int
job_init(struct job *j, struct execctl *ctl, const char *const *argv)
{
	const char *cwd = option(ctl->parsed, "cwd");
	int code;

	*j = (struct job){ .start.argv = argv,
		.start.hold_output = option(ctl->parsed, "detach") == NULL };
	code = take_duration(ctl, "timeout", UINT64_MAX, &j->start.timeout_ms);
	if (code == 0)
		code = take_env(ctl, j);
	if (code == 0)
		code = take_inherit(ctl, j);
	if (code == 0)
		code = execctl_connect(ctl, NULL, false);
	if (code != 0)
		return code;
	j->cwd = remote_path(ctl, cwd ? cwd : "");
	j->start.cwd = j->cwd;
	code = take_hosts(ctl, j);
	return code == 0 ? take_sandbox(ctl, j) : code;
}

static void
take_terminal(struct execctl *ctl, struct job *j)
{
	struct execd_start *s = &j->start;
	unsigned int rows, cols;

	s->tty = true;
	s->term = getenv("TERM") ? getenv("TERM") : "dumb";
	s->modes_len = terminal_modes(j->modes);
	s->modes = s->modes_len > 0 ? j->modes : NULL;
	if (!terminal_size(&rows, &cols))
		return;
	s->rows = rows;
	s->cols = cols;
	if (!execd_client_can(ctl->client, CAN_RESIZE) &&
	    (rows != 24 || cols != 80))
		execctl_say(
		    "the server cannot set a terminal's size: the command "
		    "sees 80x24, and this one has %ux%u",
		    cols, rows);
}

/* --- Standard input ----------------------------------------------------- */

static bool
is_null(int fd)
{
	struct stat st;

	/* A closed descriptor gives no input either. */
	if (fstat(fd, &st) < 0)
		return true;
	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* Without closeStdin a command that reads until the end of its input would wait
 * forever. It therefore gets no input, and the user is told if there was
 * some. */
static int
choose_input(struct execctl *ctl, struct run *r, struct execd_start *s)
{
	if (s->tty && isatty(STDIN_FILENO))
		r->input = RUN_INPUT_TTY;
	else if (option(ctl->parsed, "no-stdin") || is_null(STDIN_FILENO))
		r->input = RUN_INPUT_NONE;
	else if (s->tty || execd_client_can(ctl->client, CAN_CLOSE_STDIN))
		r->input = RUN_INPUT_PIPE;
	else if (!isatty(STDIN_FILENO))
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "this server cannot close a command's standard input (it "
		    "does not announce processCloseStdin), and there is some: "
		    "use --no-stdin, or cp it there first");
	else
		execctl_tell(ctl,
		    "the server cannot close a command's standard "
		    "input: the command gets none");
	s->pipe_stdin = r->input == RUN_INPUT_PIPE && !s->tty;
	return 0;
}

/* --- Records ------------------------------------------------------------ */

static char *
join(const char *const *argv)
{
	struct buf b;

	buf_init(&b, 4096);
	for (size_t i = 0; argv[i] != NULL && !b.failed; i++)
		buf_printf(&b, "%s%.400s", i > 0 ? " " : "", argv[i]);
	b.failed = false;
	b.limit++;
	buf_put_u8(&b, '\0');
	return (char *)b.data;
}

static void
remember(struct execctl *ctl, const struct run *r, const struct execd_start *s,
    bool attached)
{
	_cleanup_free_ char *command = join(s->argv);
	struct record record = {
		.session = (char *)(uintptr_t)execd_client_session(ctl->client),
		.process = (char *)(uintptr_t)execd_process_id(r->process),
		.url = ctl->environment.url,
		.environment = ctl->environment.name,
		.command = command,
		.cookie = (char *)(uintptr_t)execd_client_cookie(ctl->client),
		.tty = s->tty,
		.kept = r->kept_ms > 0,
		.pid = attached ? getpid() : 0,
		.started_ms = record_now_ms(),
		.lives_ms = r->kept_ms > 0 ? r->kept_ms
					   : execd_client_resume_ms(ctl->client)
	};

	record_write(ctl, &record);
}

/* --- A session that is kept ----------------------------------------------- */

/* Behind the end of the command, so that somebody can come and look. */
#define KEEP_MS 600000

/* What the server granted; max_ms 0: nothing. */
struct kept {
	int64_t ms, max_ms;
};

static int
ask_to_keep(struct execctl *ctl, uint64_t ms, struct kept *kept)
{
	struct json_text params;
	struct reply r;
	int code = 0;

	object_begin(&params);
	json_key_u64(&params.w, "keepMs", ms);
	json_key_bool(&params.w, "whileRunning", true);
	call(ctl, "session/keep", &params, EXECD_REPEAT, &r);
	if (r.code != 0)
		code = execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "the command was not started, because its session would "
		    "not be kept: %s; --keep none starts it all the same",
		    r.message);
	kept->ms = execd_json_number(json_get(r.result, "keepMs"), 0);
	kept->max_ms = execd_json_number(json_get(r.result, "maxMs"), 0);
	reply_clear(&r);
	return code;
}

/* The server is asked before the command starts. If it does not keep the
 * session, no command runs, because nobody would find it again. */
static int
keep_session(struct execctl *ctl, struct kept *kept)
{
	const char *given = option(ctl->parsed, "keep");
	uint64_t ms = KEEP_MS;
	int code = 0;

	*kept = (struct kept){ 0 };
	if (given != NULL && strcmp(given, "none") == 0)
		return 0;
	if (given != NULL)
		code = take_duration(ctl, "keep", UINT64_MAX, &ms);
	if (code != 0)
		return code;
	if (execd_client_can(ctl->client, CAN_KEEP_SESSION))
		return ask_to_keep(ctl, ms, kept);
	if (given == NULL)
		return 0;
	return execctl_fail(ctl, EXIT_CTL_REFUSED,
	    "--keep: this server keeps no session for longer (it does not "
	    "announce sessionKeep)");
}

/* "10 minutes", or another unit of which there are whole ones. */
static void
write_span(char *text, size_t cap, int64_t ms)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = { { "hour", 3600000 }, { "minute", 60000 },
		{ "second", 1000 }, { "millisecond", 1 } };
	size_t i = 0;

	while (ms % units[i].ms != 0)
		i++;
	snprintf(text, cap, "%lld %s%s", (long long)(ms / units[i].ms),
	    units[i].name, ms == units[i].ms ? "" : "s");
}

static void
say_kept(const struct execctl *ctl, const struct kept *kept)
{
	char until[64], span[64];
	time_t end = time(NULL) + (time_t)(kept->max_ms / 1000);
	struct tm tm;

	if (ctl->quiet)
		return;
	if (kept->max_ms == 0) {
		execctl_say("the server keeps the session for a minute or two "
			    "only, as any session without a client");
		return;
	}
	strftime(
	    until, sizeof(until), "%Y-%m-%d %H:%M:%S", localtime_r(&end, &tm));
	write_span(span, sizeof(span), kept->ms);
	execctl_say("the session is kept until the command has ended and %s "
		    "more, at most until %s",
	    span, until);
}

/* --- The commands ------------------------------------------------------- */

static int
print_capture(struct run *r, int code)
{
	struct execctl *ctl = r->ctl;
	struct json_text line;
	struct buf text;
	bool truncated;

	buf_init(&text, CAPTURE_BYTES + 256);
	truncated = capture_text(r->capture, &text);
	object_begin(&line);
	json_key_i64(&line.w, "exitCode", code);
	json_key_bool(&line.w, "timedOut", r->timed_out);
	json_key_bool(&line.w, "sandboxDenied", r->denied);
	json_key_bool(&line.w, "truncated", truncated);
	json_key_u64(&line.w, "bytes", r->capture->bytes);
	json_key_u64(
	    &line.w, "lines", r->capture->lines + !r->capture->ends_line);
	json_key_string(&line.w, "output", (const char *)text.data, text.len);
	json_end(&line.w, '}');
	buf_puts(&line.buf, "\n");
	if (ctl->json)
		output_put(&r->out, line.buf.data, line.buf.len);
	else
		output_put(&r->out, text.data, text.len);
	if (output_drain(&r->out) < 0 && code == 0)
		code = EXIT_CTL_REFUSED;
	buf_clear(&text);
	buf_clear(&line.buf);
	return code;
}

static int
run_attached(struct execctl *ctl, struct run *r, struct job *j)
{
	struct capture capture;
	int code;

	capture_init(&capture, CAPTURE_BYTES, CAPTURE_LINES);
	if (option(ctl->parsed, "capture") != NULL)
		r->capture = &capture;
	code = run_start(r, &j->start);
	if (r->capture != NULL && r->started)
		code = print_capture(r, code);
	r->capture = NULL;
	capture_clear(&capture);
	return code;
}

static int
run_and_leave(struct execctl *ctl, struct run *r, struct job *j)
{
	struct kept kept;
	int code;

	j->start.pipe_stdin = false;
	code = keep_session(ctl, &kept);
	if (code == 0)
		code = run_detached(r, &j->start);
	if (code != 0)
		return code;
	ctl->ends = false;
	r->kept_ms = kept.max_ms;
	remember(ctl, r, &j->start, false);
	say_kept(ctl, &kept);
	if (!ctl->json)
		printf("%s\n", execd_client_session(ctl->client));
	return output_drain(&r->out) < 0 ? EXIT_CTL_REFUSED : 0;
}

static int
run_job(struct execctl *ctl, struct job *j)
{
	struct run r;
	int code;

	if (option(ctl->parsed, "detach") != NULL &&
	    strncasecmp(ctl->environment.url, "ask:", 4) == 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--detach: the server of %s ends with execctl",
		    ctl->environment.url);
	run_init(&r, ctl);
	r.tty = j->start.tty;
	r.profile = option(ctl->parsed, "sandbox");
	r.remember = remember;
	code = choose_input(ctl, &r, &j->start);
	if (code == 0)
		code = forward_begin(&r);
	if (code == 0 && option(ctl->parsed, "detach") != NULL)
		code = run_and_leave(ctl, &r, j);
	else if (code == 0)
		code = run_attached(ctl, &r, j);
	forward_end(&r);
	run_clear(&r);
	return code;
}

int
cmd_run(struct execctl *ctl)
{
	const char *environment = option(ctl->parsed, "environment");
	bool tty = option(ctl->parsed, "tty") != NULL;
	struct job j = { 0 };
	int code = 0;

	if (option(ctl->parsed, "parallel") != NULL ||
	    (environment != NULL && strchr(environment, ',') != NULL))
		return run_many(ctl);
	if (option(ctl->parsed, "keep") != NULL &&
	    option(ctl->parsed, "detach") == NULL)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--keep is for a command that goes on without execctl: "
		    "use --detach");

	if (option(ctl->parsed, "detach") != NULL &&
	    option(ctl->parsed, "forward") != NULL)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--forward ends with execctl, and --detach ends it now");
	if (tty && option(ctl->parsed, "detach") == NULL &&
	    option_nth(ctl->parsed, "tty", 1) == NULL && !isatty(STDIN_FILENO))
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--tty needs a terminal as standard input, and it is none; "
		    "-tt gives the command one all the same");
	code = job_init(&j, ctl, (const char *const *)ctl->parsed->arguments);
	if (code == 0 && tty)
		take_terminal(ctl, &j);
	if (code == 0)
		code = run_job(ctl, &j);
	job_clear(&j);
	return code;
}

int
cmd_shell(struct execctl *ctl)
{
	const char *argv[] = { NULL, "-l", NULL };
	char path[4096];
	struct job j = { 0 };
	int code;

	if (!isatty(STDIN_FILENO))
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "a shell needs a terminal as standard input, and it is "
		    "none; execctl run needs no terminal");
	code = job_init(&j, ctl, argv);
	if (code == 0) {
		const struct json_value *shell =
		    json_get(execd_client_info(ctl->client), "shell");

		argv[0] =
		    value_string(json_get(shell, "path"), path, sizeof(path));
		if (argv[0][0] == '\0')
			argv[0] = "/bin/sh";
		take_terminal(ctl, &j);
		code = run_job(ctl, &j);
	}
	job_clear(&j);
	return code;
}
