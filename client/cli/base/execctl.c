/* SPDX-License-Identifier: ISC */
/*
 * What the commands of execctl share: messages, the connection, and its end.
 */
#include "execctl.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "capabilities.h"
#include "url.h"

#define END_WAIT_MS  2000 /* then the server ends it on its own */
#define LOST_TELL_MS 2000 /* faster resumes are not reported */

/* --- Saying ------------------------------------------------------------- */

/* Escapes control characters: a server's text must not control the terminal. */
static void
put_line(const char *text)
{
	char line[4096];
	size_t at = 0;
	ssize_t n;

	at = (size_t)snprintf(line, sizeof(line), "execctl: ");
	for (; *text != '\0' && at + 8 < sizeof(line); text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c != 0x7f)
			line[at++] = (char)c;
		else
			at += (size_t)snprintf(
			    line + at, sizeof(line) - at, "\\x%02x", c);
	}
	/* A terminal in raw mode needs both characters. */
	line[at++] = '\r';
	line[at++] = '\n';
	if (!isatty(STDERR_FILENO)) {
		line[at - 2] = '\n';
		at--;
	}
	n = write(STDERR_FILENO, line, at);
	(void)n; /* an error cannot be reported anywhere */
}

__attribute__((format(printf, 1, 0))) static char *
format(const char *fmt, va_list ap)
{
	char *text;

	return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

void
execctl_say(const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	put_line(text ? text : "out of memory");
}

void
execctl_tell(const struct execctl *ctl, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	if (!ctl->verbose)
		return;
	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	put_line(text ? text : "out of memory");
}

int
execctl_fail(const struct execctl *ctl, int code, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	struct json_writer w;
	struct buf b;
	va_list ap;

	va_start(ap, fmt);
	text = format(fmt, ap);
	va_end(ap);
	put_line(text ? text : "out of memory");
	if (!ctl->json)
		return code;
	buf_init(&b, 1u << 20);
	json_writer_init(&w, &b);
	json_begin(&w, '{');
	json_key_cstring(&w, "error", text ? text : "");
	json_key_i64(&w, "exitCode", code);
	json_end(&w, '}');
	printf("%.*s\n", (int)b.len, (const char *)b.data);
	buf_clear(&b);
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
		return EXIT_CTL_UNKNOWN;
	default:
		return EXIT_CTL_REFUSED;
	}
}

int
execctl_over(struct execctl *ctl)
{
	return execctl_fail(ctl, exit_status(execd_client_failure(ctl->client)),
	    "%s", execd_client_error(ctl->client));
}

static void
tell_lost(void *arg)
{
	struct execctl *ctl = arg;

	ctl->told_lost = true;
	execctl_say("the connection is lost (%s); trying to resume",
	    execd_client_error(ctl->client));
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

static int
take_timeout(const struct execctl *ctl, const char *name, unsigned int *ms)
{
	const char *text = option(ctl->parsed, name);
	uint64_t value;

	if (text == NULL)
		return 0;
	if (option_duration(text, &value) < 0 || value > INT32_MAX)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--%s: `%s' is not a duration like 500ms, 10s or 2m", name,
		    text);
	*ms = (unsigned int)value;
	return 0;
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
		.client_name = ctl->client_name ? ctl->client_name : "execctl",
		.session_id = session,
		.cookie = ctl->cookie,
		.watch = watch,
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
	ctl->client = execd_client_new(&o);
	if (execd_client_connect(ctl->client) < 0)
		return execctl_over(ctl);
	execctl_tell(
	    ctl, "%s: session %s", e->url, execd_client_session(ctl->client));
	return 0;
}

static int
find_server(struct execctl *ctl)
{
	const char *url = option(ctl->parsed, "url");
	_cleanup_free_ char *error = NULL;

	if (url != NULL) {
		ctl->environment.url = xstrdup(url);
		/* With --token-file no other token is read. */
		if (option(ctl->parsed, "token-file") == NULL &&
		    execd_token_for_url(url, &ctl->environment.token, &error) <
			0)
			return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
		return 0;
	}
	if (execd_environment_find(option(ctl->parsed, "environment"),
		&ctl->environment, &error) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	return 0;
}

int
execctl_connect(struct execctl *ctl, const char *session, bool watch)
{
	const char *token_file = option(ctl->parsed, "token-file");
	_cleanup_free_ char *error = NULL;
	char *token = NULL;
	int code = ctl->environment.url ? 0 : find_server(ctl);

	if (code != 0)
		return code;
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

/* Ends the session. Otherwise the server would keep it, with a runner, until
 * its timeout. */
static void
end_session(struct execctl *ctl)
{
	bool late = false;
	struct timer timer = { .fire = end_late, .arg = &late };
	struct reply r = { 0 };

	/* Drops the sources and timers of the command, whose memory is gone. */
	TAILQ_INIT(&ctl->sources);
	TAILQ_INIT(&ctl->timers);
	execd_client_request(
	    ctl->client, "session/end", NULL, 0, 0, reply_answered, &r);
	timer_set(ctl, &timer, END_WAIT_MS);
	while (!r.done && !late && loop_once(ctl) == 0)
		continue;
	timer_remove(ctl, &timer);
	/* The client must be freed before the reply: the answer may still
	 * come. */
	execd_client_free(ctl->client);
	ctl->client = NULL;
	reply_clear(&r);
}

void
execctl_clear(struct execctl *ctl)
{
	timer_remove(ctl, &ctl->lost_timer);
	if (ctl->ends && ctl->client != NULL &&
	    execd_client_state(ctl->client) == EXECD_READY &&
	    execd_client_can(ctl->client, CAN_END_SESSION))
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
