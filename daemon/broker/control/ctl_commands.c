/* SPDX-License-Identifier: ISC */
/*
 * The operator's commands: a row for each, and the function that answers it.
 */
#include "base.h"
#include "ctl_socket.h"

#include "broker_health.h"
#include "broker_state.h"
#include "conf.h"
#include "config.h"
#include "exit_code.h"
#include "frontend_child.h"
#include "group_limits.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "stats.h"

/*
 * A request of the operator: reads it, finds it in the table, records it, and
 * frames its answer.
 */

static int ctl_refuse(struct ctl_request *r, const char *code, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* Sets why the request fails, and returns -EINVAL. */
static int
ctl_refuse(struct ctl_request *r, const char *code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	r->code = code;
	return -EINVAL;
}

/* Begins the one member of an answer, an object. */
static void
answer_begin(struct json_writer *w, struct buf *b, const char *key)
{
	json_writer_init(w, b);
	json_begin(w, '{');
	json_key_begin(w, key, '{');
}

static void
answer_end(struct json_writer *w, struct buf *b)
{
	json_end(w, '}');
	json_end(w, '}');
	buf_puts(b, "\n");
}

void
ctl_write_error(struct buf *b, const char *code, const char *message)
{
	struct json_writer w;

	answer_begin(&w, b, "error");
	json_key_cstring(&w, "code", code);
	json_key_cstring(&w, "message", message);
	answer_end(&w, b);
}

static const struct ctl_command *
find_command(const char *name)
{
	const struct ctl_command *c = ctl_commands;

	while (c->name != NULL && strcmp(c->name, name) != 0)
		c++;
	return c->name != NULL ? c : NULL;
}

/* Takes a string that names something: it has no control characters and is not
 * too long. */
static int
take_string(struct ctl_request *r, const struct json_value *v, const char *key,
    char *dst, size_t size)
{
	if (v->type != JSON_STRING || v->text.len == 0 || v->text.len >= size)
		return ctl_refuse(r, "badRequest",
		    "%s: a string of 1 to %zu bytes is expected", key,
		    size - 1);
	for (size_t i = 0; i < v->text.len; i++)
		if ((unsigned char)v->text.ptr[i] < 0x20 ||
		    v->text.ptr[i] == 0x7f)
			return ctl_refuse(r, "badRequest",
			    "%s: a control character at byte %zu", key, i);
	memcpy(dst, v->text.ptr, v->text.len);
	dst[v->text.len] = '\0';
	return 0;
}

static int
take_member(struct ctl_request *r, const struct json_value *v, char *command)
{
	if (slice_equal(v->key, SLICE("command")))
		return take_string(r, v, "command", command, 32);
	if (slice_equal(v->key, SLICE("session")))
		return take_string(
		    r, v, "session", r->session, sizeof(r->session));
	if (slice_equal(v->key, SLICE("reason")))
		return take_string(
		    r, v, "reason", r->reason, sizeof(r->reason));
	if (slice_equal(v->key, SLICE("token")))
		return take_string(r, v, "token", r->token, sizeof(r->token));
	if (slice_equal(v->key, SLICE("identity")))
		return take_string(
		    r, v, "identity", r->identity, sizeof(r->identity));
	if (slice_equal(v->key, SLICE("end")) && v->type == JSON_BOOL) {
		r->end = v->boolean;
		return 0;
	}
	return ctl_refuse(r, "badRequest", "unknown key `%.*s`",
	    (int)(v->key.len < 64 ? v->key.len : 64), v->key.ptr);
}

/* Returns false, and sets r->code, unless the request has the member exactly if
 * its command takes it. */
static bool
fits(struct ctl_request *r, const char *key, bool takes, const char *value)
{
	if (takes != (value[0] != '\0'))
		ctl_refuse(r, "badRequest", "%s: `%s` %s", key, r->command,
		    takes ? "needs one" : "takes none");
	return r->code == NULL;
}

/* Checks that the request has exactly what its command takes. If it returns
 * NULL, r->code says why. */
static const struct ctl_command *
take_request(struct ctl_request *r, const struct json_value *root)
{
	static char command[32];
	const struct ctl_command *c;

	command[0] = '\0';
	if (root->type != JSON_OBJECT) {
		ctl_refuse(r, "badRequest", "a request is an object");
		return NULL;
	}
	for (const struct json_value *v = root->first; v != NULL; v = v->next)
		if (take_member(r, v, command) < 0)
			return NULL;
	r->command = command;
	c = find_command(command);
	if (c == NULL)
		ctl_refuse(r, "badRequest",
		    "command: `%s` is none of list, show, "
		    "top, kill, drain, undrain, status, reload, explain, "
		    "tokens, token-new, token-revoke, lock, unlock",
		    command);
	return c != NULL && fits(r, "session", c->session, r->session) &&
		       fits(r, "reason", c->reason, r->reason) &&
		       fits(r, "token", c->token, r->token) &&
		       fits(r, "identity", c->identity, r->identity) &&
		       (!r->end || fits(r, "end", c->end, "yes"))
		   ? c
		   : NULL;
}

/* `top' asks again and again. It is recorded once. A process of another pid
 * namespace has the pid 0 here, and each question of it is recorded. */
static bool
is_refresh(const struct ctl_request *r)
{
	static pid_t shown;
	bool top = r->command != NULL && strcmp(r->command, "top") == 0;
	bool again = top && shown != 0 && r->client->who.pid == shown;

	if (top)
		shown = r->client->who.pid;
	return again;
}

static void
record(const struct ctl_request *r)
{
	const struct ucred *who = &r->client->who;
	struct audit_event e;

	if (is_refresh(r))
		return;
	audit_begin(&e, "ctl-command");
	audit_string(&e, "command", r->command ? r->command : "");
	audit_number(&e, "uid", who->uid);
	audit_number(&e, "pid", (uint64_t)who->pid);
	if (r->session[0] != '\0')
		audit_string(&e, "target", r->session);
	if (r->token[0] != '\0')
		audit_string(&e, "token", r->token);
	if (r->identity[0] != '\0')
		audit_string(&e, "identity", r->identity);
	if (r->reason[0] != '\0')
		audit_string(&e, "reason", r->reason);
	audit_string(&e, "result",
	    r->code			     ? r->code
	    : r->client->state == CTL_HANDED ? "asked"
					     : "done");
	audit_end(&e, &r->broker->conf->audit);
}

static void
run(const struct ctl_command *c, struct ctl_request *r)
{
	struct buf *out = &r->client->out;
	struct json_writer w;

	answer_begin(&w, out, "result");
	if (c->answer(r, &w) < 0 || r->client->state == CTL_HANDED)
		out->len = 0;
	else if (r->client->state == CTL_ANSWERING)
		answer_end(&w, out);
}

void
ctl_carry_out(
    struct broker *m, struct ctl_client *client, const char *line, size_t len)
{
	struct ctl_request r = { .broker = m, .client = client };
	const struct ctl_command *c = NULL;
	struct json_doc doc;

	if (json_parse(&doc, line, len) < 0)
		ctl_refuse(&r, "badRequest", "not JSON: %s", doc.error);
	else
		c = take_request(&r, doc.root);
	if (c != NULL)
		run(c, &r);
	record(&r);
	if (r.code != NULL)
		ctl_write_error(&client->out, r.code, r.message);
	json_clear(&doc);
}

#define PROCESSES_TOLD_MAX 64 /* of `show` */

/* --- sessions in JSON ---------------------------------------------------- */

/* Writes null if the value is not known. */
static void
put_known(struct json_writer *w, const char *key, bool known, uint64_t value)
{
	json_key(w, key);
	if (known)
		json_u64(w, value);
	else
		json_null(w);
}

/* Likewise. */
static void
put_text(struct json_writer *w, const char *key, const char *text)
{
	json_key(w, key);
	if (text != NULL)
		json_cstring(w, text);
	else
		json_null(w);
}

static uint64_t
since(int64_t ms)
{
	int64_t passed = now_ms() - ms;

	return passed > 0 ? (uint64_t)passed : 0;
}

static const char *
state_name(const struct session *s)
{
	switch (s->state) {
	case SESSION_STATE_ATTACHED:
		return "attached";
	case SESSION_STATE_DETACHED:
		return "detached";
	default:
		return "ending";
	}
}

/* Whoever has a whole id and a credential of its identity can resume the
 * session. What is written here is enough to name the session, and not enough
 * to resume it. */
static void
put_id(struct json_writer *w, const struct session *s)
{
	json_key_string(w, "id", s->id, ID_LOG_CHARS);
	json_key_u64(w, "number", session_number(s));
}

static void
put_usage(struct json_writer *w, const struct session *s)
{
	struct session_usage u;

	session_usage_read(s, &u);
	put_known(w, "cpuMs", u.has_cpu, u.cpu_ms);
	put_known(w, "memoryBytes", u.has_memory, u.memory_bytes);
	put_known(w, "processes", u.has_processes, u.processes);
}

/* Of a session that its client asked to keep: how long at most, and until when
 * if it has no client now. */
static void
put_keep(struct json_writer *w, const struct session *s)
{
	bool waits = session_is_kept(s) && s->state == SESSION_STATE_DETACHED;
	int64_t left = waits ? s->until_ms - now_ms() : 0;

	put_known(w, "keepMs", session_is_kept(s),
	    s->keep.running ? s->keep.max_ms : s->keep.ms);
	put_known(w, "keepLeftMs", waits, left > 0 ? (uint64_t)left : 0);
}

static void
put_session(struct json_writer *w, const struct session *s)
{
	put_id(w, s);
	json_key_cstring(w, "identity", s->identity->name);
	json_key_cstring(w, "user", s->identity->user_name);
	put_text(w, "token", session_token_name(s));
	json_key_cstring(w, "peer", s->attachment.peer);
	json_key_cstring(w, "state", state_name(s));
	json_key_u64(w, "ageMs", since(s->opened_ms));
	put_known(w, "detachedMs", s->state == SESSION_STATE_DETACHED,
	    s->state == SESSION_STATE_DETACHED ? since(s->detached_ms) : 0);
	put_keep(w, s);
	put_known(w, "commands", s->runner.audited, s->commands.running);
	json_key_u64(w, "watchers", s->watchers.count);
	json_key_u64(w, "runner", (uint64_t)s->runner.pid);
	put_usage(w, s);
}

/* --- which session -------------------------------------------------------- */

/* Finds a session by the beginning of its id, or by `session-7`. If it returns
 * NULL, r->code says why. */
static struct session *
find_session(struct ctl_request *r)
{
	size_t len = strlen(r->session), n = 0, at;
	struct session *s, *found = NULL;
	const char *group = NULL;
	char names[256] = ""; /* of the sessions that were found */

	if (strncmp(r->session, SESSION_GROUP_PREFIX,
		strlen(SESSION_GROUP_PREFIX)) == 0)
		group = r->session;
	else if (len < CTL_ID_CHARS_MIN) {
		ctl_refuse(r, "badRequest",
		    "session `%s`: at least %d characters of its id, or "
		    "session-NUMBER",
		    r->session, CTL_ID_CHARS_MIN);
		return NULL;
	}
	TABLE_FOREACH (s, &r->broker->sessions->by_id, by_id) {
		if (group != NULL ? strcmp(s->group, group) != 0
				  : strncmp(s->id, r->session, len) != 0)
			continue;
		found = s;
		n++;
		at = strlen(names);
		snprintf(names + at, sizeof(names) - at, "%s%s",
		    at > 0 ? ", " : "", s->group);
	}
	if (n == 1)
		return found;
	if (n == 0)
		ctl_refuse(
		    r, "noSuchSession", "there is no session `%s`", r->session);
	else
		ctl_refuse(r, "ambiguousSession",
		    "session `%s`: %zu sessions begin so: %s", r->session, n,
		    names);
	return NULL;
}

/* --- list, show ----------------------------------------------------------- */

/* The loop counts each time from the beginning of its turn, and its clock is
 * coarse. */
#define CLOCK_MS 50

/* Lists the sessions that exist when their runners have answered: after a
 * reload the broker knows some only then. They are written some at a time,
 * while others come and go. */
static int
answer_list(struct ctl_request *r, struct json_writer *w)
{
	session_ask_all(r->broker->sessions);
	r->client->state = CTL_ASKING;
	ctl_step(r->client, SESSION_ANSWER_MS + CLOCK_MS);
	json_key_begin(w, "sessions", '[');
	return 0;
}

void
ctl_list_begin(const struct broker *m, struct ctl_client *c)
{
	const struct registry *sessions = m->sessions;
	const struct session *s;

	c->ids = xcalloc(sessions->by_id.count + 1, sizeof(*c->ids));
	TABLE_FOREACH (s, &sessions->by_id, by_id)
		memcpy(c->ids[c->nids++], s->id, CONTROL_SESSION_ID_MAX);
}

bool
ctl_list_more(struct broker *m, struct ctl_client *c)
{
	struct json_writer w;
	int told = 0;

	json_writer_init(&w, &c->out);
	w.comma = c->at > 0;
	while (c->at < c->nids && told++ < CTL_SESSIONS_A_TURN) {
		const struct session *s =
		    session_of_id(m->sessions, c->ids[c->at++]);

		if (s == NULL)
			continue;
		json_begin(&w, '{');
		put_session(&w, s);
		if (s->runner.version >= RUNNER_LIMITS)
			json_key_bool(&w, "answers", !session_is_silent(s));
		json_end(&w, '}');
	}
	if (c->at < c->nids)
		return true;
	buf_puts(&c->out, "]}}\n");
	return false;
}

static void
put_processes(struct json_writer *w, const struct session *s)
{
	const struct running_process *p;
	int told = 0;

	json_key_begin(w, "processIds", '[');
	TAILQ_FOREACH (p, &s->commands.processes, link)
		if (told++ < PROCESSES_TOLD_MAX)
			json_cstring(w, p->id);
	json_end(w, ']');
	json_key_bool(w, "processIdsCut", told > PROCESSES_TOLD_MAX);
}

static void
put_shown(struct json_writer *w, const struct control_commands *all)
{
	if (all == NULL) {
		json_key_optional(w, "running", NULL);
		return;
	}
	json_key_begin(w, "running", '[');
	for (uint32_t i = 0; i < all->count; i++) {
		const struct control_shown *c = &all->commands[i];

		json_begin(w, '{');
		json_key_cstring(w, "process", c->process);
		json_key_u64(w, "pid", c->pid);
		json_key_u64(w, "ageMs", c->age_ms);
		json_key_cstring(w, "command", c->command);
		json_key_bool(w, "commandCut", c->cut > 0);
		json_end(w, '}');
	}
	json_end(w, ']');
	json_key_bool(w, "runningCut", all->more);
}

static void
put_details(struct json_writer *w, const struct session *s)
{
	put_session(w, s);
	put_known(w, "endsInMs", s->ends_ms > 0,
	    s->ends_ms > now_ms() ? (uint64_t)(s->ends_ms - now_ms()) : 0);
	json_key_bool(w, "adopted", s->runner.adopted);
	put_processes(w, s);
	put_shown(w, s->commands.shown);
}

/* The session's runner says what runs, if it answers. */
static int
answer_show(struct ctl_request *r, struct json_writer *w)
{
	struct ctl_client *c = r->client;
	struct session *s = find_session(r);

	if (s == NULL)
		return -EINVAL;
	if (!session_ask_commands(s)) {
		put_details(w, s);
		return 0;
	}
	memcpy(c->shown, s->id, sizeof(c->shown));
	c->state = CTL_ASKING;
	ctl_step(c, SESSION_ANSWER_MS + CLOCK_MS);
	return 0;
}

void
ctl_show_end(const struct broker *m, struct ctl_client *c)
{
	const struct session *s = session_of_id(m->sessions, c->shown);
	struct json_writer w;

	c->out.len = 0;
	if (s == NULL) {
		ctl_write_error(&c->out, "noSuchSession",
		    "the session has ended meanwhile");
		return;
	}
	answer_begin(&w, &c->out, "result");
	put_details(&w, s);
	answer_end(&w, &c->out);
}

bool
ctl_show_waits(const struct broker *m, const struct ctl_client *c)
{
	const struct session *s = session_of_id(m->sessions, c->shown);

	return s != NULL && s->commands.shown == NULL && !s->runner.hung_up;
}

/* --- kill ----------------------------------------------------------------- */

static bool
is_ending(const struct session *s)
{
	return s->state == SESSION_STATE_LEAVING ||
	       s->state == SESSION_STATE_TERMINATING;
}

static void
end_session(struct ctl_request *r, struct session *s, const char *why)
{
	_cleanup_free_ char *reason =
	    xasprintf("ended by the operator (uid %u): %s",
		(unsigned)r->client->who.uid, why);

	log_info("session %.*s: %s", ID_LOG_CHARS, s->id, reason);
	session_end_reason(s, reason);
	session_ended_note(s);
	session_dismiss(r->broker, s);
}

static int
answer_kill(struct ctl_request *r, struct json_writer *w)
{
	struct session *s = find_session(r);

	if (s == NULL)
		return -EINVAL;
	if (is_ending(s))
		return ctl_refuse(r, "endingAlready",
		    "session `%s` is ending: %s", r->session,
		    s->end_reason ? s->end_reason
				  : "its detached-ttl was "
				    "over");
	end_session(r, s, r->reason);
	put_id(w, s);
	json_key_cstring(w, "state", state_name(s));
	return 0;
}

/* --- drain, status, reload ------------------------------------------------ */

static const char *
execd_state(const struct broker *m)
{
	return broker_is_going(m) ? "stopping"
	       : m->drain.drained ? "drained"
				  : "serving";
}

static void
put_notice(struct json_writer *w, const struct broker *m)
{
	uint64_t ms = drain_notice_ms(m);

	put_known(w, "noticeMs", ms > 0, ms);
}

static int
answer_drain(struct ctl_request *r, struct json_writer *w)
{
	if (broker_is_going(r->broker))
		return ctl_refuse(r, "stopping", "execd is stopping already");
	json_key_bool(w, "changed", drain_begin(r->broker, r->client->who.uid));
	json_key_cstring(w, "state", execd_state(r->broker));
	json_key_u64(w, "sessions", r->broker->sessions->by_id.count);
	put_notice(w, r->broker);
	return 0;
}

static int
answer_undrain(struct ctl_request *r, struct json_writer *w)
{
	if (broker_is_going(r->broker))
		return ctl_refuse(r, "stopping",
		    "execd is stopping, and that "
		    "cannot be undone");
	json_key_bool(w, "changed", drain_end(r->broker, r->client->who.uid));
	json_key_cstring(w, "state", execd_state(r->broker));
	return 0;
}

static void
put_programs(struct json_writer *w, const struct broker *m)
{
	const struct helper_process *h;

	json_key_begin(w, "programs", '{');
	json_key_u64(w, "execd", (uint64_t)spawn_root_pid());
	json_key_u64(w, "execd-broker", (uint64_t)getpid());
	put_known(w, "execd-frontend", m->frontend->pid > 0,
	    (uint64_t)m->frontend->pid);
	json_key_begin(w, "execd-keys", '[');
	TAILQ_FOREACH (h, &m->helpers->all, link)
		json_u64(w, (uint64_t)h->pid);
	json_end(w, ']');
	json_end(w, '}');
}

static void
put_census(struct json_writer *w, const struct broker *m)
{
	uint64_t attached = 0, detached = 0, ending = 0;
	const struct session *s;

	TABLE_FOREACH (s, &m->sessions->by_id, by_id) {
		attached += s->state == SESSION_STATE_ATTACHED;
		detached += s->state == SESSION_STATE_DETACHED;
		ending += s->state == SESSION_STATE_LEAVING ||
			  s->state == SESSION_STATE_TERMINATING;
	}
	json_key_begin(w, "sessions", '{');
	json_key_u64(w, "attached", attached);
	json_key_u64(w, "detached", detached);
	json_key_u64(w, "ending", ending);
	json_key_u64(w, "max", m->conf->limits.max_sessions);
	json_key_u64(w, "kept", m->sessions->nkept);
	json_key_u64(w, "maxKept", session_keep_places(m));
	json_end(w, '}');
}

static void
put_locked(struct json_writer *w, const struct conf *c)
{
	json_key_begin(w, "locked", '[');
	for (size_t i = 0; i < c->nidentities; i++)
		if (c->identities[i]->locked)
			json_cstring(w, c->identities[i]->name);
	json_end(w, ']');
}

static int
answer_status(struct ctl_request *r, struct json_writer *w)
{
	const struct broker *m = r->broker;
	const char *ill = broker_health_reason(m, now_ms());

	json_key_cstring(w, "state", execd_state(m));
	put_known(w, "drainedBy", m->drain.drained, m->drain.by);
	put_notice(w, m);
	json_key_cstring(w, "health", ill ? ill : "ok");
	json_key_cstring(w, "version", EXECD_VERSION);
	put_text(w, "configuration", m->conf->path);
	put_programs(w, m);
	put_census(w, m);
	json_key_begin(w, "listeners", '[');
	for (size_t i = 0; i < m->conf->nlisteners; i++)
		json_cstring(w, m->conf->listeners[i]->url);
	json_end(w, ']');
	json_key_begin(w, "controllers", '[');
	for (size_t i = 0; i < GROUP_CONTROLLERS; i++)
		if (group_limits_known() & 1u << i)
			json_cstring(w, group_controllers[i]);
	json_end(w, ']');
	put_locked(w, m->conf);
	json_key_bool(w, "auditFailing", audit_is_failing(&m->conf->audit));
	put_text(w, "auditFile", m->conf->audit.sinks[AUDIT_FILE].path);
	return 0;
}

/* Another broker reads the configuration. ctl_answer_reload() gets the lines
 * that it logs about it. */
static int
answer_reload(struct ctl_request *r, struct json_writer *w)
{
	const struct broker *m = r->broker;

	if (m->conf->path == NULL)
		return ctl_refuse(
		    r, "failed", "there is no configuration to reload\n");
	if (!ctl_begin_reload())
		return ctl_refuse(r, "busy",
		    "another reload is under way, and may have read the file "
		    "before it was changed: ask again\n");
	m->on->reload(r->broker);
	r->client->state = CTL_HANDED;
	ctl_step(r->client, CTL_CLIENT_MS);
	return 0;
}

/* --- named tokens --------------------------------------------------------- */

/* More do not fit into an answer. */
#define TOKENS_TOLD_MAX 2048

static void
put_token(struct json_writer *w, const struct named_token *t)
{
	json_begin(w, '{');
	json_key_cstring(w, "name", t->name);
	json_key_cstring(w, "identity", t->identity);
	put_known(
	    w, "createdMs", t->created_s > 0, (uint64_t)t->created_s * 1000);
	put_known(
	    w, "expiresMs", t->expires_s > 0, (uint64_t)t->expires_s * 1000);
	json_key_bool(
	    w, "expired", t->expires_s > 0 && time(NULL) >= t->expires_s);
	json_end(w, '}');
}

static int
answer_tokens(struct ctl_request *r, struct json_writer *w)
{
	const struct conf *c = r->broker->conf;

	json_key_begin(w, "tokens", '[');
	for (size_t i = 0; i < c->nnamed && i < TOKENS_TOLD_MAX; i++)
		put_token(w, c->named[i]);
	json_end(w, ']');
	json_key_bool(w, "tokensCut", c->nnamed > TOKENS_TOLD_MAX);
	return 0;
}

/* The file is written already, and a reload takes it. */
static int
answer_token_new(struct ctl_request *r, struct json_writer *w)
{
	const struct conf *c = r->broker->conf;

	if (conf_find_identity(c, r->identity) == NULL)
		return ctl_refuse(r, "noSuchIdentity",
		    "there is no [identity %s]", r->identity);
	if (conf_find_token(c, r->token) != NULL)
		return ctl_refuse(r, "tokenExists",
		    "there is a [token %s] already", r->token);
	return answer_reload(r, w);
}

/* A request names a token or an identity. */
static bool
is_named(const struct ctl_request *r, const struct session *s)
{
	const char *token = session_token_name(s), *of = s->identity->of;

	if (r->token[0] != '\0')
		return token != NULL && strcmp(token, r->token) == 0;
	return strcmp(s->identity->name, r->identity) == 0 ||
	       (of != NULL && strcmp(of, r->identity) == 0);
}

static void
end_sessions(struct ctl_request *r, const char *why)
{
	struct session *s;

	TABLE_FOREACH (s, &r->broker->sessions->by_id, by_id)
		if (is_named(r, s) && !is_ending(s))
			end_session(r, s, why);
}

/* The file is removed already. Until the reload nobody comes in by it, so that
 * no session begins after those that are ended. */
static int
answer_token_revoke(struct ctl_request *r, struct json_writer *w)
{
	struct named_token *t = conf_find_token(r->broker->conf, r->token);

	if (t != NULL) {
		t->revoked = true;
		log_info("[token %s]: revoked by uid %u", r->token,
		    (unsigned)r->client->who.uid);
	}
	if (r->end)
		end_sessions(r, "its token was revoked");
	return answer_reload(r, w);
}

/* --- locks ---------------------------------------------------------------- */

/* The file is there already, or is removed: for the brokers to come. */
static int
set_lock(struct ctl_request *r, struct json_writer *w, bool lock)
{
	struct identity *id = conf_find_identity(r->broker->conf, r->identity);

	if (id == NULL)
		return ctl_refuse(r, "noSuchIdentity",
		    "there is no [identity %s]", r->identity);
	if (lock && conf_find_lock(r->broker->conf, id) < 0)
		return ctl_refuse(r, "failed",
		    "execd cannot see the lock: the next reload would open it");
	id->locked = lock;
	log_info("[identity %s]: %s by uid %u", id->name,
	    lock ? "locked" : "unlocked", (unsigned)r->client->who.uid);
	if (r->end)
		end_sessions(r, "its identity was locked");
	json_key_cstring(w, "identity", id->name);
	json_key_bool(w, "locked", conf_is_locked(r->broker->conf, id));
	return 0;
}

static int
answer_lock(struct ctl_request *r, struct json_writer *w)
{
	return set_lock(r, w, true);
}

static int
answer_unlock(struct ctl_request *r, struct json_writer *w)
{
	return set_lock(r, w, false);
}

static int
answer_explain(struct ctl_request *r, struct json_writer *w)
{
	const char *text;

	json_key_begin(w, "refusals", '[');
	for (size_t i = 0; (text = audit_refusal(i)) != NULL; i++)
		json_raw(w, text, strlen(text));
	json_end(w, ']');
	return 0;
}

void
ctl_write_reloaded(struct buf *b, int code, const char *told)
{
	struct json_writer w;

	if (code != 0) {
		ctl_write_error(
		    b, code == EXIT_CONFIG ? "configuration" : "failed", told);
		return;
	}
	answer_begin(&w, b, "result");
	json_key_cstring(&w, "log", told);
	answer_end(&w, b);
}

/* --- the table ------------------------------------------------------------ */

const struct ctl_command ctl_commands[] = {
	{ .name = "list", .answer = answer_list },
	{ .name = "top", .answer = answer_list },
	{ .name = "show", .session = true, .answer = answer_show },
	{ .name = "kill",
	    .session = true,
	    .reason = true,
	    .answer = answer_kill },
	{ .name = "drain", .answer = answer_drain },
	{ .name = "undrain", .answer = answer_undrain },
	{ .name = "status", .answer = answer_status },
	{ .name = "reload", .answer = answer_reload },
	{ .name = "explain", .answer = answer_explain },
	{ .name = "tokens", .answer = answer_tokens },
	{ .name = "token-new",
	    .token = true,
	    .identity = true,
	    .answer = answer_token_new },
	{ .name = "token-revoke",
	    .token = true,
	    .end = true,
	    .answer = answer_token_revoke },
	{ .name = "lock",
	    .identity = true,
	    .end = true,
	    .answer = answer_lock },
	{ .name = "unlock", .identity = true, .answer = answer_unlock },
	{ .name = NULL },
};
