/* SPDX-License-Identifier: ISC */
/*
 * The command ps: asks each server that is known which sessions it has. Only
 * they are listed, with what the records tell of them.
 */
#include "base.h"
#include "cmd.h"
#include "run.h"

const struct option_row ps_options[] = {
	{ "all", 'a', NULL, "also commands that have ended, and all sessions" },
	{ 0 },
};

/* A server that does not answer must not hide what others say for long. */
#define CONNECT_MS 3000

/* A session of a server, or of a record. */
struct row {
	struct row *next; /* in ps.rows */
	char *session;	  /* all strings are owned */
	char *url;
	char *peer;    /* of the client that has it, or had it; NULL: unknown */
	bool attached; /* a client has it */
	bool waits;    /* it is kept until a command has ended */
	bool kept;     /* its client asked for more time */
	bool told;     /* session/list has it; else it only exists */
	int64_t age_ms; /* -1: unknown */
	int64_t ends_in_ms;
	int64_t exit_code; /* -1: unknown, or it runs */
};

/* A server that was asked. */
struct asked {
	struct asked *next; /* in ps.servers */
	char *url;
	bool listed, failed;
};

struct ps {
	struct execctl *ctl;
	struct row *rows;
	struct asked *servers;
	const char *url, *own; /* of the server that is asked now */
	bool all;
	int code;
};

/* --- what servers say ------------------------------------------------------
 */

static struct asked *
server_of(struct ps *ps, const char *url)
{
	struct asked *a = ps->servers;

	while (a != NULL && strcmp(a->url, url) != 0)
		a = a->next;
	if (a != NULL)
		return a;
	a = xcalloc(1, sizeof(*a));
	a->url = xstrdup(url);
	a->next = ps->servers;
	return ps->servers = a;
}

static struct row *
find_row(const struct ps *ps, const char *session)
{
	struct row *row = ps->rows;

	while (row != NULL && strcmp(row->session, session) != 0)
		row = row->next;
	return row;
}

static struct row *
add_row(struct ps *ps, const char *session, size_t len)
{
	struct row *row = xcalloc(1, sizeof(*row)), **end = &ps->rows;

	row->session = xstrndup(session, len);
	row->url = xstrdup(ps->url);
	row->age_ms = row->ends_in_ms = row->exit_code = -1;
	while (*end != NULL)
		end = &(*end)->next;
	return *end = row;
}

static bool
take_session(void *arg, const struct json_value *v)
{
	struct ps *ps = arg;
	char peer[256];
	size_t n = 0;
	const char *id = execd_json_string(json_get(v, "sessionId"), &n);
	_cleanup_free_ char *session = id ? xstrndup(id, n) : NULL;
	struct row *row;

	if (session == NULL || strcmp(session, ps->own) == 0 ||
	    find_row(ps, session) != NULL)
		return true;
	row = add_row(ps, id, n);
	row->told = true;
	row->peer =
	    xstrdup(value_string(json_get(v, "peer"), peer, sizeof(peer)));
	row->attached = json_is(json_get(v, "state"), "attached");
	row->waits = execd_json_bool(json_get(v, "whileRunning"), false);
	row->kept = execd_json_number(json_get(v, "keepMs"), -1) >= 0;
	row->age_ms = execd_json_number(json_get(v, "ageMs"), -1);
	row->ends_in_ms = execd_json_number(json_get(v, "endsInMs"), -1);
	return true;
}

/* Reports why a server cannot be asked. Each server is reported once. */
static void
cannot_ask(struct ps *ps, struct execctl *to, const char *url)
{
	struct asked *a = server_of(ps, url);

	if (!a->failed)
		execctl_say("%s; what it keeps is not listed, and forgotten "
			    "when it cannot be there any more",
		    execd_client_error(to->client));
	a->failed = true;
	ps->code = EXIT_CTL_REFUSED;
}

/* Takes all sessions of a server that is connected. */
static void
take_sessions(struct ps *ps, struct execctl *to, const char *url)
{
	bool incomplete;
	int err;

	ps->url = url;
	ps->own = to->ends ? execd_client_session(to->client) : "";
	err = sessions_each(to, take_session, ps, &incomplete);
	if (err > 0)
		ps->code = err;
	if (err == 0 && incomplete)
		execctl_say("%s: some sessions have not answered yet since "
			    "execd began anew",
		    url);
	server_of(ps, url)->listed = err == 0;
}

/* Watches the session. A server that cannot be watched has its session resumed
 * for a moment instead. */
static enum execd_failure
open_session(struct execctl *to, const char *session)
{
	int code = execctl_open(to, session, true);

	if (code == -ENOTCONN &&
	    execd_client_failure(to->client) == EXECD_FAILURE_PROTOCOL) {
		execd_client_free(to->client);
		to->client = NULL;
		code = execctl_open(to, session, false);
	}
	return code == 0	   ? EXECD_FAILURE_NONE
	       : code == -ENOTCONN ? execd_client_failure(to->client)
				   : EXECD_FAILURE_USAGE;
}

/* Whether the session of a record is still there is asked by its id: behind one
 * URL there may be several hosts. */
static void
ask_about(struct ps *ps, struct execctl *to, const struct record *r)
{
	enum execd_failure failure;

	if (to->environment.connect_timeout_ms == 0)
		to->environment.connect_timeout_ms = CONNECT_MS;
	to->patience_ms = 1;
	ps->url = r->url;
	failure = open_session(to, r->session);
	if (failure == EXECD_FAILURE_NONE) {
		take_sessions(ps, to, r->url);
		if (find_row(ps, r->session) == NULL)
			add_row(ps, r->session, strlen(r->session));
		return;
	}
	if (failure == EXECD_FAILURE_SESSION &&
	    strstr(execd_client_error(to->client), "unknown session"))
		record_remove(r->session);
	else if (failure == EXECD_FAILURE_SESSION ||
		 failure == EXECD_FAILURE_ATTACHED)
		add_row(ps, r->session, strlen(r->session))->attached =
		    strstr(execd_client_error(to->client),
			"already attached") != NULL;
	else if (to->client != NULL) {
		cannot_ask(ps, to, r->url);
		record_missed(ps->ctl, r);
	} else
		ps->code = EXIT_CTL_USAGE;
}

/* How a command ended that nobody follows. Nothing is read: the number is past
 * all output. A server that cannot be watched is not asked. */
static void
ask_how_it_ended(struct row *row, const struct record *r, struct execctl *to)
{
	struct json_text params;
	struct reply reply;

	if (record_choose_server(to, r) != 0 ||
	    execctl_open(to, r->session, true) != 0)
		return;
	object_begin(&params);
	json_key_cstring(&params.w, "processId", r->process);
	json_key_u64(&params.w, "afterSeq", INT64_MAX);
	call(to, "process/read", &params, EXECD_REPEAT, &reply);
	if (reply.code == 0 &&
	    execd_json_bool(json_get(reply.result, "exited"), false))
		row->exit_code =
		    execd_json_number(json_get(reply.result, "exitCode"), -1);
	reply_clear(&reply);
}

static void
look_for_end(void *arg, const struct record *r)
{
	struct ps *ps = arg;
	struct row *row = find_row(ps, r->session);
	struct execctl to;

	if (row == NULL || row->attached || !row->told)
		return;
	execctl_init(&to, ps->ctl->parsed);
	to.quiet = true;
	to.environment.connect_timeout_ms = CONNECT_MS;
	ask_how_it_ended(row, r, &to);
	execctl_clear(&to);
}

/* Tells whether the command line wants to hear of this server. */
static bool
is_chosen(const struct execctl *ctl, const struct record *r)
{
	const char *url = option(ctl->parsed, "url");
	const char *name = option(ctl->parsed, "environment");

	if (url != NULL)
		return strcmp(url, r->url) == 0;
	return name == NULL ||
	       (r->environment != NULL && strcmp(name, r->environment) == 0);
}

static void
visit_record(void *arg, const struct record *r)
{
	struct ps *ps = arg;
	struct execctl to;

	if (!is_chosen(ps->ctl, r) || find_row(ps, r->session) != NULL)
		return;
	if (server_of(ps, r->url)->failed) {
		record_missed(ps->ctl, r);
		return;
	}
	execctl_init(&to, ps->ctl->parsed);
	to.quiet = true;
	if (record_choose_server(&to, r) == 0)
		ask_about(ps, &to, r);
	else
		ps->code = EXIT_CTL_USAGE;
	execctl_clear(&to);
}

/* The server of the command line, or the default: sessions that were begun
 * elsewhere are there. */
static void
ask_chosen(struct ps *ps)
{
	struct execctl to;
	int code;

	execctl_init(&to, ps->ctl->parsed);
	to.quiet = true;
	if (execctl_find_server(&to) == 0 &&
	    !url_starts_program(to.environment.url) &&
	    !server_of(ps, to.environment.url)->listed &&
	    !server_of(ps, to.environment.url)->failed) {
		if (to.environment.connect_timeout_ms == 0)
			to.environment.connect_timeout_ms = CONNECT_MS;
		code = execctl_open(&to, NULL, false);
		if (code == 0)
			take_sessions(ps, &to, to.environment.url);
		else if (code == -ENOTCONN)
			cannot_ask(ps, &to, to.environment.url);
		else
			ps->code = code;
	}
	execctl_clear(&to);
}

/* --- what is written ------------------------------------------------------ */

static void
print_time(int64_t ms)
{
	int64_t s = ms / 1000;

	if (ms < 0)
		printf("%-7s  ", "-");
	else if (s < 3600)
		printf("%02" PRId64 ":%02" PRId64 "    ", s / 60, s % 60);
	else
		printf("%" PRId64 "h%02" PRId64 "m  ", s / 3600, s / 60 % 60);
}

static int64_t
age_of(const struct row *row, const struct record *r)
{
	int64_t ms;

	if (r == NULL)
		return row->age_ms;
	ms = record_now_ms() - r->started_ms;
	return ms < 0 ? 0 : ms;
}

/* A command of ours for which the session does not wait any more. */
static bool
has_ended(const struct row *row, const struct record *r)
{
	return r != NULL &&
	       (r->ended || row->exit_code >= 0 ||
		   (r->kept && row->told && row->kept && !row->waits));
}

static void
print_json(const struct row *row, const struct record *r)
{
	struct json_text t;

	object_begin(&t);
	json_key_cstring(&t.w, "session", row->session);
	json_key_cstring(&t.w, "url", row->url);
	if (r != NULL) {
		json_key_cstring(&t.w, "process", r->process);
		json_key_cstring(&t.w, "command", r->command);
		json_key_bool(&t.w, "tty", r->tty);
		json_key_i64(&t.w, "startedMs", r->started_ms);
	}
	json_key_cstring(&t.w, "state",
	    has_ended(row, r) ? "ended"
	    : row->attached   ? "attached"
			      : "left");
	json_key(&t.w, "attachedPid");
	if (r != NULL && record_attached(r))
		json_i64(&t.w, r->pid);
	else
		json_null(&t.w);
	json_key(&t.w, "exitCode");
	if (row->exit_code >= 0)
		json_i64(&t.w, row->exit_code);
	else
		json_null(&t.w);
	if (row->peer != NULL)
		json_key_cstring(&t.w, "peer", row->peer);
	json_key(&t.w, "endsInMs");
	if (row->ends_in_ms >= 0)
		json_i64(&t.w, row->ends_in_ms);
	else
		json_null(&t.w);
	object_print(&t);
}

static void
print_row(struct ps *ps, const struct row *row, const struct record *r)
{
	char state[64] = "left";

	if (ps->ctl->json) {
		print_json(row, r);
		return;
	}
	if (r != NULL && record_attached(r))
		snprintf(state, sizeof(state), "pid %" PRId64, r->pid);
	else if (row->attached)
		snprintf(state, sizeof(state), "elsewhere");
	else if (row->exit_code >= 0)
		snprintf(
		    state, sizeof(state), "ended: %" PRId64, row->exit_code);
	else if (has_ended(row, r))
		snprintf(state, sizeof(state), "ended");
	printf("%-12.12s  ", row->session);
	print_time(age_of(row, r));
	printf("%-11s  ", state);
	print_time(row->ends_in_ms);
	printf("%s\n", r != NULL ? r->command : "-");
}

struct printed {
	struct ps *ps;
	const struct row *row;
	bool found;
};

static void
print_record(void *arg, const struct record *r)
{
	struct printed *p = arg;

	if (strcmp(r->session, p->row->session) != 0)
		return;
	p->found = true;
	if (p->ps->all || !r->ended)
		print_row(p->ps, p->row, r);
}

/* Of sessions that were begun elsewhere, those that are kept for a command are
 * what somebody may look for. */
static void
print_rows(struct ps *ps)
{
	if (!ps->ctl->json && !ps->ctl->quiet)
		puts("SESSION       AGE      ATTACHED     ENDS IN  COMMAND");
	for (const struct row *row = ps->rows; row != NULL; row = row->next) {
		struct printed p = { ps, row, false };

		record_each(print_record, &p);
		if (!p.found && (ps->all || row->waits))
			print_row(ps, row, NULL);
	}
}

static void
clear(struct ps *ps)
{
	struct asked *a;
	struct row *row;

	while ((row = ps->rows) != NULL) {
		ps->rows = row->next;
		free(row->session);
		free(row->url);
		free(row->peer);
		free(row);
	}
	while ((a = ps->servers) != NULL) {
		ps->servers = a->next;
		free(a->url);
		free(a);
	}
}

int
cmd_ps(struct execctl *ctl)
{
	struct ps ps = { .ctl = ctl,
		.all = option(ctl->parsed, "all") != NULL };
	int err = record_each(visit_record, &ps);

	if (err == 0)
		ask_chosen(&ps);
	if (err == 0)
		err = record_each(look_for_end, &ps);
	if (err == 0)
		print_rows(&ps);
	clear(&ps);
	if (err < 0)
		return execctl_fail(
		    ctl, EXIT_CTL_REFUSED, "records: %s", strerror(-err));
	return ps.code;
}
