/* SPDX-License-Identifier: ISC */
#include "execctl.h"

#include <sys/signalfd.h>

#include "capabilities.h"
#include "path_uri.h"
#include "url.h"
#include "utf8.h"

/*
 * The event loop of execctl: the client, a few descriptors and a few timers.
 */

#define OBJECT_MAX  (64u << 20) /* bytes */
#define SOURCES_MAX 96		/* forward.c has up to 72 */

void
source_set(struct execctl *ctl, struct source *s, int fd, short events)
{
	s->fd = fd;
	s->events = events;
	if (s->added)
		return;
	s->added = true;
	TAILQ_INSERT_TAIL(&ctl->sources, s, link);
}

void
source_remove(struct execctl *ctl, struct source *s)
{
	if (!s->added)
		return;
	s->added = false;
	TAILQ_REMOVE(&ctl->sources, s, link);
}

void
timer_set(struct execctl *ctl, struct timer *t, int64_t after_ms)
{
	t->at_ms = now_ms() + after_ms;
	if (t->added)
		return;
	t->added = true;
	TAILQ_INSERT_TAIL(&ctl->timers, t, link);
}

void
timer_remove(struct execctl *ctl, struct timer *t)
{
	if (!t->added)
		return;
	t->added = false;
	TAILQ_REMOVE(&ctl->timers, t, link);
}

int
signals_watch(struct execctl *ctl, struct source *s, const sigset_t *set)
{
	int fd;

	sigprocmask(SIG_BLOCK, set, NULL);
	fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return execctl_fail(
		    ctl, EXIT_CTL_REFUSED, "signalfd: %s", strerror(errno));
	source_set(ctl, s, fd, POLLIN);
	return 0;
}

int
signals_take(const struct source *s)
{
	struct signalfd_siginfo info;

	return read(s->fd, &info, sizeof(info)) == sizeof(info)
		   ? (int)info.ssi_signo
		   : 0;
}

sigset_t
signals_that_end(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return set;
}

static int
next_timer(const struct execctl *ctl)
{
	const struct timer *t;
	int64_t next = INT64_MAX, now = now_ms();

	TAILQ_FOREACH (t, &ctl->timers, link)
		if (t->at_ms < next)
			next = t->at_ms;
	if (next == INT64_MAX)
		return -1;
	if (next <= now)
		return 0;
	return next - now > 60000 ? 60000 : (int)(next - now);
}

static void
fire_timers(struct execctl *ctl)
{
	struct timer *t, *next;
	int64_t now = now_ms();

	TAILQ_FOREACH_SAFE (t, &ctl->timers, link, next) {
		if (t->at_ms > now)
			continue;
		timer_remove(ctl, t);
		t->fire(t->arg);
		return; /* the callback may have removed `next` */
	}
}

static struct source *
find_source(struct execctl *ctl, int fd)
{
	struct source *s;

	TAILQ_FOREACH (s, &ctl->sources, link)
		if (s->fd == fd && s->events != 0)
			return s;
	return NULL;
}

/* Finds sources by descriptor: a callback may have removed one since
 * poll(2). */
static void
hand_out(struct execctl *ctl, const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct source *s =
		    fds[i].revents ? find_source(ctl, fds[i].fd) : NULL;

		if (s != NULL)
			s->ready(s->arg);
	}
}

int
loop_once(struct execctl *ctl)
{
	struct pollfd fds[EXECD_POLL_MAX + SOURCES_MAX];
	int timeout_ms = next_timer(ctl);
	size_t clients = 0, n;
	struct source *s;

	if (ctl->client != NULL)
		clients = execd_client_prepare(ctl->client, fds, &timeout_ms);
	n = clients;
	TAILQ_FOREACH (s, &ctl->sources, link)
		if (s->events != 0 && n < nitems(fds))
			fds[n++] =
			    (struct pollfd){ .fd = s->fd, .events = s->events };
	if (poll(fds, (nfds_t)n, timeout_ms) < 0) {
		if (errno != EINTR)
			return -errno;
		n = clients = 0;
	}
	hand_out(ctl, fds + clients, n - clients);
	fire_timers(ctl);
	if (ctl->client == NULL)
		return 0;
	return execd_client_dispatch(ctl->client, fds, clients);
}

/*
 * Requests that wait for their answer, and helpers for their params and
 * results.
 */

/* Stores the answer in the reply; arg is the struct reply. */
static void
reply_answered(void *arg, const struct execd_answer *a)
{
	struct reply *r = arg;

	r->done = true;
	r->code = a->code;
	if (a->code != 0) {
		r->message = xstrdup(a->message);
		return;
	}
	/* The answer is freed after this callback, so it is copied. */
	r->text = xstrndup(a->text, a->text_len);
	r->parsed = true;
	if (json_parse(&r->doc, r->text, a->text_len) == 0)
		r->result = json_get(r->doc.root, "result");
}

void
object_begin(struct json_text *t)
{
	json_text_init(t, OBJECT_MAX);
	json_begin(&t->w, '{');
}

void
params_begin(struct json_text *t, const char *key, const char *path)
{
	object_begin(t);
	json_key_path(&t->w, key, path);
	files_sandbox_add(&t->w);
}

void
object_print(struct json_text *t)
{
	json_end(&t->w, '}');
	printf("%.*s\n", (int)t->buf.len, (const char *)t->buf.data);
	buf_clear(&t->buf);
}

static void
send_request(struct execctl *ctl, const char *method, struct json_text *params,
    unsigned int flags, execd_answer_fn *fn, void *arg)
{
	json_end(&params->w, '}');
	execd_client_request(ctl->client, method,
	    (const char *)params->buf.data, params->buf.len, flags, fn, arg);
	buf_clear(&params->buf);
}

void
ask(struct execctl *ctl, const char *method, struct json_text *params,
    execd_answer_fn *fn, void *arg)
{
	send_request(ctl, method, params, EXECD_REPEAT, fn, arg);
}

void
ask_path(struct execctl *ctl, const char *method, const char *path,
    execd_answer_fn *fn, void *arg)
{
	struct json_text params;

	params_begin(&params, "path", path);
	ask(ctl, method, &params, fn, arg);
}

void
call(struct execctl *ctl, const char *method, struct json_text *params,
    unsigned int flags, struct reply *r)
{
	*r = (struct reply){ 0 };
	if (params != NULL)
		send_request(ctl, method, params, flags, reply_answered, r);
	else
		execd_client_request(
		    ctl->client, method, NULL, 0, flags, reply_answered, r);
	/* This ends: the client answers all requests before it is over. */
	while (!r->done)
		loop_once(ctl);
}

void
call_path(
    struct execctl *ctl, const char *method, const char *path, struct reply *r)
{
	struct json_text params;

	params_begin(&params, "path", path);
	call(ctl, method, &params, EXECD_REPEAT, r);
}

void
reply_clear(struct reply *r)
{
	if (r->parsed)
		json_clear(&r->doc);
	free(r->text);
	free(r->message);
	*r = (struct reply){ 0 };
}

int
call_failed(struct execctl *ctl, const struct reply *r, const char *what)
{
	if (execd_client_state(ctl->client) == EXECD_OVER)
		return execctl_over(ctl);
	return execctl_fail(ctl,
	    r->code == EXECD_CODE_LOST ? EXIT_CTL_UNKNOWN : EXIT_CTL_REFUSED,
	    "%s: %s", what, r->message);
}

const char *
value_string(const struct json_value *v, char *dst, size_t cap)
{
	size_t n = 0;
	const char *s = execd_json_string(v, &n);

	if (n >= cap)
		n = cap - 1;
	if (s != NULL)
		memcpy(dst, s, n);
	dst[s ? n : 0] = '\0';
	return dst;
}

char *
uri_path(const struct json_value *v)
{
	struct json_doc doc = { 0 };
	struct path_uri uri;
	char error[128];
	char *path = NULL;

	if (v != NULL && v->type == JSON_STRING &&
	    path_uri_parse(&uri, &doc, v->text, error, sizeof(error)) == 0 &&
	    uri.path != NULL)
		path = xstrdup(uri.path);
	json_clear(&doc);
	return path;
}

bool
url_starts_program(const char *url)
{
	return strncasecmp(url, "ask:", 4) == 0 ||
	       strncasecmp(url, "stdio:", 6) == 0;
}

char *
remote_path(const struct execctl *ctl, const char *path)
{
	_cleanup_free_ char *home = NULL;

	if (path[0] == '/')
		return xstrdup(path);
	home =
	    uri_path(json_get(execd_client_info(ctl->client), "userHomeDir"));
	if (path[0] == '\0' || strcmp(path, "~") == 0)
		return xstrdup(home ? home : "/");
	if (strncmp(path, "~/", 2) == 0)
		path += 2;
	return xasprintf("%s/%s", home ? home : "", path);
}

/*
 * Server paths on the command line.
 */

const char *
server_path_part(const char *argument)
{
	const char *colon = strchr(argument, ':');

	/* A colon after a slash belongs to the path: ./a:b and /a:b are
	 * local. */
	if (colon == NULL || memchr(argument, '/', (size_t)(colon - argument)))
		return NULL;
	return colon + 1;
}

static bool
is_chosen(const struct execctl *ctl, const char *name)
{
	return ctl->environment.name != NULL &&
	       strcmp(ctl->environment.name, name) == 0;
}

int
server_path_choose(struct execctl *ctl, const char *argument)
{
	const char *path = server_path_part(argument);
	_cleanup_free_ char *name =
	    xstrndup(argument, (size_t)(path - argument) - 1);
	_cleanup_free_ char *error = NULL;

	if (name[0] == '\0' || is_chosen(ctl, name))
		return 0;
	if (ctl->environment.url != NULL)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "`%s' is on another server; one command takes paths of "
		    "one server",
		    argument);
	if (execd_environment_find(name, &ctl->environment, &error) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	return 0;
}

int
server_path_take(struct execctl *ctl, const char **argument)
{
	const char *path = server_path_part(*argument);
	int code;

	if (path == NULL)
		return 0;
	code = server_path_choose(ctl, *argument);
	*argument = path;
	return code;
}

/*
 * What the commands of execctl share: messages, the connection, and its end.
 */

#define END_WAIT_MS  2000 /* then the server ends it on its own */
#define LOST_TELL_MS 2000 /* faster resumes are not reported */

/* --- Saying ------------------------------------------------------------- */

/* Escapes control characters: a server's text must not control the terminal. */
static void
put_line(const char *text)
{
	struct buf line;
	ssize_t n;

	buf_init(&line, SIZE_MAX);
	buf_printf(&line, "execctl: ");
	/* The longest path, escaped, and why. */
	utf8_escape(&line, text, strnlen(text, 5 * PATH_MAX));
	/* A terminal in raw mode needs both characters. */
	buf_printf(&line, isatty(STDERR_FILENO) ? "\r\n" : "\n");
	n = write(STDERR_FILENO, line.data, line.len);
	(void)n; /* an error cannot be reported anywhere */
	buf_clear(&line);
}

void
execctl_say(const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	put_line(text);
}

void
execctl_tell(const struct execctl *ctl, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	if (!ctl->verbose)
		return;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	put_line(text);
}

int
execctl_fail(const struct execctl *ctl, int code, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	struct json_text t;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	put_line(text);
	if (!ctl->json)
		return code;
	object_begin(&t);
	json_key_cstring(&t.w, "error", text);
	json_key_i64(&t.w, "exitCode", code);
	object_print(&t);
	return code;
}

/* --- The connection ----------------------------------------------------- */

static int
exit_status(enum execd_failure failure)
{
	switch (failure) {
	case EXECD_FAILURE_USAGE:
	case EXECD_FAILURE_CERTIFICATE:
	case EXECD_FAILURE_AUTH:
		return EXIT_CTL_USAGE;
	case EXECD_FAILURE_SESSION:
	case EXECD_FAILURE_LOST:
	case EXECD_FAILURE_TAKEN:
		return EXIT_CTL_UNKNOWN;
	default:
		return EXIT_CTL_REFUSED;
	}
}

/* Names both keys, the place of the old one, and what to do, as ssh(1) does. */
static void
warn_of_another_key(const struct execctl *ctl, const char *key)
{
	const struct execd_environment *e = &ctl->environment;
	_cleanup_free_ char *place =
	    execd_environment_place(e->name, "server-key");

	execctl_say("WARNING: THE KEY OF THE SERVER HAS CHANGED!");
	execctl_say("Somebody may be between you and the server, or the server "
		    "has a new key.");
	execctl_say("Its key is %s,", key);
	execctl_say(
	    "and %s expects %s.", place ? place : e->name, e->server_key);
	execctl_say("If whoever runs the server says that the new key is "
		    "right: 'execctl environments remove %s', and add it "
		    "again, or write the new key there.",
	    e->name);
}

int
execctl_over(struct execctl *ctl)
{
	const char *key = execd_client_server_key(ctl->client);

	if (execd_client_failure(ctl->client) == EXECD_FAILURE_CERTIFICATE &&
	    key != NULL && ctl->environment.name != NULL)
		warn_of_another_key(ctl, key);
	return execctl_fail(ctl, exit_status(execd_client_failure(ctl->client)),
	    "%s", execd_client_error(ctl->client));
}

static void
tell_lost(void *arg)
{
	struct execctl *ctl = arg;

	ctl->told_lost = true;
	execctl_say("the connection is lost (%s); trying to resume for %u s",
	    execd_client_error(ctl->client),
	    execd_client_resume_ms(ctl->client) / 1000);
}

/* The first connection will be tried again. A user who waits is told at once
 * what for. */
static void
tell_waiting(struct execctl *ctl)
{
	if (ctl->attempts++ == 1 && !ctl->quiet)
		execctl_say(
		    "%s; trying again", execd_client_error(ctl->client));
}

static void
on_state(void *arg, enum execd_state state)
{
	struct execctl *ctl = arg;

	if (state == EXECD_CONNECTING)
		tell_waiting(ctl);
	timer_remove(ctl, &ctl->lost_timer);
	ctl->lost_timer.fire = tell_lost;
	ctl->lost_timer.arg = ctl;
	if (state == EXECD_RESUMING) {
		execctl_tell(ctl, "lost: %s", execd_client_error(ctl->client));
		if (!ctl->quiet)
			timer_set(ctl, &ctl->lost_timer, LOST_TELL_MS);
	} else if (state == EXECD_READY && ctl->told_lost) {
		ctl->told_lost = false;
		execctl_say("resumed");
	}
	if (state == EXECD_READY && ctl->resumed != NULL)
		ctl->resumed(ctl->notification_arg);
}

static void
on_notification(void *arg, const char *method, const struct json_value *params)
{
	struct execctl *ctl = arg;

	if (ctl->on_notification != NULL)
		ctl->on_notification(ctl->notification_arg, method, params);
}

static void
on_request(
    void *arg, uint64_t id, const char *method, const struct json_value *params)
{
	struct execctl *ctl = arg;

	ctl->on_request(ctl->notification_arg, id, method, params);
}

int
take_duration(
    const struct execctl *ctl, const char *name, uint64_t max_ms, uint64_t *ms)
{
	const char *text = option(ctl->parsed, name);
	uint64_t value;

	if (text == NULL)
		return 0;
	if (option_duration(text, &value) < 0 || value > max_ms)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--%s: `%s' is not a duration like 500ms, 10s or 1m30s",
		    name, text);
	*ms = value;
	return 0;
}

static int
take_timeout(const struct execctl *ctl, const char *name, unsigned int *ms)
{
	uint64_t value = *ms;
	int code = take_duration(ctl, name, INT32_MAX, &value);

	*ms = (unsigned int)value;
	return code;
}

/* Warns if anybody on the network could read the token. */
static void
warn_of_plain_token(const struct execctl *ctl)
{
	struct endpoint e;
	const char *why;

	if (ctl->environment.token == NULL || ctl->quiet)
		return;
	if (endpoint_parse(&e, ctl->environment.url, &why) == 0 &&
	    e.kind == ENDPOINT_WS && !endpoint_is_local(&e))
		execctl_say(
		    "the token goes to %s unencrypted; wss:// encrypts it",
		    e.host);
	endpoint_clear(&e);
}

static int
connect_client(struct execctl *ctl, const char *session, bool watch)
{
	const struct parsed *p = ctl->parsed;
	const struct execd_environment *e = &ctl->environment;
	struct execd_options o = { .url = e->url,
		.token = e->token,
		.ca_file = option(p, "ca") ? option(p, "ca") : e->ca_file,
		.certificate_file = option(p, "certificate")
					? option(p, "certificate")
					: e->certificate_file,
		.key_file = option(p, "key") ? option(p, "key") : e->key_file,
		.server_key = e->server_key,
		.client_name = ctl->client_name ? ctl->client_name : "execctl",
		.session_id = session,
		.cookie = ctl->cookie,
		.watch = watch,
		.take_over = ctl->steal,
		.attached_timeout_ms = ctl->patience_ms,
		.connect_timeout_ms = e->connect_timeout_ms,
		.initialize_timeout_ms = e->initialize_timeout_ms,
		.silence_timeout_ms = e->silence_timeout_ms,
		.on_state = on_state,
		.on_notification = on_notification,
		.on_request = ctl->on_request ? on_request : NULL,
		.arg = ctl };
	int code = take_timeout(ctl, "connect-timeout", &o.connect_timeout_ms);

	if (code == 0)
		code =
		    take_timeout(ctl, "resume-timeout", &o.resume_timeout_ms);
	if (code == 0)
		code =
		    take_timeout(ctl, "silence-timeout", &o.silence_timeout_ms);
	if (code != 0)
		return code;
	if (option(p, "connect-timeout") != NULL)
		o.initialize_timeout_ms = o.connect_timeout_ms;
	ctl->ends = session == NULL;
	ctl->attempts = 0;
	ctl->client = execd_client_new(&o);
	if (execd_client_connect(ctl->client) < 0)
		return -ENOTCONN;
	execctl_tell(
	    ctl, "%s: session %s", e->url, execd_client_session(ctl->client));
	return 0;
}

/* Chooses the server of the command line or of the variables, or the default.
 */
static int
find_server(struct execctl *ctl, char **error)
{
	const char *url = option(ctl->parsed, "url");

	if (url == NULL)
		return execd_environment_find(
		    option(ctl->parsed, "environment"), &ctl->environment,
		    error);
	ctl->environment.url = xstrdup(url);
	/* With --token-file no other token is read. */
	return option(ctl->parsed, "token-file") != NULL
		   ? 0
		   : execd_token_for_url(url, &ctl->environment.token, error);
}

int
execctl_find_server(struct execctl *ctl)
{
	_cleanup_free_ char *error = NULL;

	return find_server(ctl, &error);
}

int
execctl_connect(struct execctl *ctl, const char *session, bool watch)
{
	int code = execctl_open(ctl, session, watch);

	return code == -ENOTCONN ? execctl_over(ctl) : code;
}

int
execctl_open(struct execctl *ctl, const char *session, bool watch)
{
	const char *token_file = option(ctl->parsed, "token-file");
	_cleanup_free_ char *error = NULL;
	char *token = NULL;

	if (ctl->environment.url == NULL && find_server(ctl, &error) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	if (token_file != NULL) {
		if (execd_token_read(token_file, &token, &error) < 0)
			return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
		free(ctl->environment.token);
		ctl->environment.token = token;
	}
	warn_of_plain_token(ctl);
	return connect_client(ctl, session, watch);
}

void
execctl_init(struct execctl *ctl, const struct parsed *parsed)
{
	*ctl = (struct execctl){ .parsed = parsed };
	TAILQ_INIT(&ctl->sources);
	TAILQ_INIT(&ctl->timers);
	ctl->json = option(parsed, "json") != NULL;
	ctl->quiet = option(parsed, "quiet") != NULL;
	ctl->verbose = option(parsed, "verbose") != NULL;
}

static void
end_late(void *arg)
{
	*(bool *)arg = true;
}

static void
end_answered(void *arg, const struct execd_answer *a)
{
	struct execctl *ctl = arg;

	ctl->end.answered = true;
	ctl->end.done = a->code == 0;
	/* The connection may end in what was read with the answer. */
	execd_client_ended(ctl->client);
	if (ctl->end.told != NULL)
		ctl->end.told(ctl->end.arg);
}

bool
execctl_end_session(struct execctl *ctl)
{
	if (!ctl->ends || !execd_client_can(ctl->client, CAN_END_SESSION))
		return false;
	if (!ctl->end.asked)
		execd_client_request(
		    ctl->client, "session/end", NULL, 0, 0, end_answered, ctl);
	ctl->end.asked = true;
	return true;
}

/* Ends the session. Otherwise the server would keep it, with a runner, until
 * its timeout. */
static void
end_session(struct execctl *ctl)
{
	bool late = false;
	struct timer timer = { .fire = end_late, .arg = &late };

	/* Drops the sources and timers of the command, whose memory is gone. */
	TAILQ_INIT(&ctl->sources);
	TAILQ_INIT(&ctl->timers);
	if (!execctl_end_session(ctl))
		return;
	timer_set(ctl, &timer, END_WAIT_MS);
	while (!ctl->end.answered && !late && loop_once(ctl) == 0)
		continue;
	timer_remove(ctl, &timer);
}

void
execctl_clear(struct execctl *ctl)
{
	timer_remove(ctl, &ctl->lost_timer);
	ctl->end.told = NULL;
	if (ctl->client != NULL && !ctl->end.answered &&
	    execd_client_state(ctl->client) == EXECD_READY)
		end_session(ctl);
	execd_client_free(ctl->client);
	ctl->client = NULL;
	execd_environment_clear(&ctl->environment);
}

void
execctl_pause(struct execctl *ctl, bool pause)
{
	ctl->pausing += pause ? 1 : (unsigned int)-1;
	execd_client_pause(ctl->client, ctl->pausing > 0);
}
