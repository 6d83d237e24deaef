/* SPDX-License-Identifier: ISC */
/*
 * Writes sessions, and what is done in them, to the audit log.
 */
#include "base.h"
#include "session_registry.h"

#include "broker_state.h"
#include "conf.h"
#include "frontend_child.h"
#include "netproxy_message.h"
#include "stats.h"

/* How often a failing log is tried again. */
#define RETRY_MS   1000
#define WAITING_MS 100 /* while records wait for it */

static void
begin(struct audit_event *e, const struct session *s, const char *event)
{
	char id[ID_LOG_CHARS + 1];

	snprintf(id, sizeof(id), "%.*s", ID_LOG_CHARS, s->id);
	audit_begin(e, event);
	audit_string(e, "session", id);
	audit_string(e, "identity", s->identity->name);
	audit_string(e, "user", s->identity->user_name);
}

static int
end(struct audit_event *e, struct audit_rules *audit)
{
	int err = audit_end(e, audit);

	return audit->required ? err : 0;
}

static void
put_origin(struct audit_event *e, const struct origin *from)
{
	audit_string(e, "peer", from->peer);
	if (from->proxy[0] != '\0')
		audit_string(e, "proxy", from->proxy);
}

int
session_audit(struct broker *m, const struct session *s, const char *event,
    const struct origin *from, const char *reason)
{
	struct audit_event e;

	if (!audit_is_kept(&m->conf->audit))
		return 0;
	begin(&e, s, event);
	if (from != NULL)
		put_origin(&e, from);
	if (reason != NULL)
		audit_string(&e, "reason", reason);
	return end(&e, &m->conf->audit);
}

void
session_audit_refused(struct broker *m, struct identity *identity,
    const struct origin *from, const struct control_session *answer)
{
	const char *reason = answer->reason;
	struct audit_event e;

	if (answer->result == SESSION_UNKNOWN)
		reason = "unknown session id";
	else if (answer->result == SESSION_ATTACHED)
		reason = "attached to another connection";
	else if (answer->result == SESSION_SILENT)
		reason = "its runner has not answered yet";
	identity->usage.denials++;
	audit_begin(&e, "session-refused");
	audit_string(&e, "identity", identity->name);
	audit_string(&e, "user", identity->user_name);
	put_origin(&e, from);
	audit_string(&e, "reason", reason);
	audit_end(&e, &m->conf->audit);
}

int
session_audit_recorded(struct broker *m, const struct session *s,
    const char *process, const char *path)
{
	struct audit_event e;

	begin(&e, s, "tty-recorded");
	audit_string(&e, "process", process);
	audit_string(&e, "file", path);
	return end(&e, &m->conf->audit);
}

/* --- reports of the runner ---------------------------------------------- */

static void
put_policy(
    struct audit_event *e, const char *key, const struct control_policy *p)
{
	static const char *const types[] = { "managed", "disabled",
		"external" };
	bool asked = strcmp(key, "asked") == 0;

	json_key(&e->json, key);
	if (!p->there) {
		json_null(&e->json);
		return;
	}
	json_begin(&e->json, '{');
	if (asked)
		audit_string(e, "type", types[p->type]);
	audit_string(e, "fileSystem", p->files ? "restricted" : "unrestricted");
	audit_string(e, "network", control_reach_name(p->network));
	json_end(&e->json, '}');
}

/* The start of this command could not be recorded: the command ends, and
 * nothing else. */
static void
end_unrecorded(
    struct broker *m, struct session *s, const struct audit_start *start)
{
	struct control_audit_state command = { .works = !m->audit_stopped };

	if (s->runner.hung_up || !s->runner.audited)
		return;
	memcpy(command.process, start->process, sizeof(command.process));
	session_send_command(s, RUNNER_COMMAND_AUDIT_STATE, &command, NULL, 0);
}

static void
start_unrecorded(const struct audit_start *start)
{
	struct session *s = session_of_id(broker.sessions, start->session);

	if (s != NULL && broker.conf->audit.required)
		end_unrecorded(&broker, s, start);
}

/* --- running commands --------------------------------------------------- */

/* More than a session can have. A runner that was taken over may report any
 * number. */
#define RUNNING_MAX 65536

static int
note_started(struct session *s, const char *id)
{
	struct running_process *p;
	size_t len = strlen(id) + 1;

	if (s->commands.running >= RUNNING_MAX)
		return -EBADMSG;
	p = xmalloc(sizeof(*p) + len);
	memcpy(p->id, id, len);
	TAILQ_INSERT_TAIL(&s->commands.processes, p, link);
	return 0;
}

static struct running_process *
find_running(const struct session *s, const char *id)
{
	struct running_process *p;

	TAILQ_FOREACH (p, &s->commands.processes, link)
		if (strcmp(p->id, id) == 0)
			return p;
	return NULL;
}

int
session_audit_running(struct session *s, const union runner_report *r)
{
	if (!s->runner.adopted)
		return -EBADMSG;
	/* A command of the previous broker's time is recorded already. */
	if (find_running(s, r->running.process) != NULL)
		return 0;
	s->commands.running++;
	return note_started(s, r->running.process);
}

static void
note_exited(struct session *s, const char *id)
{
	struct running_process *p = find_running(s, id);

	if (p == NULL)
		return;
	TAILQ_REMOVE(&s->commands.processes, p, link);
	free(p);
}

int
session_audit_started(struct session *s, const union runner_report *r)
{
	const struct control_started *started = &r->started;
	struct audit_start start;
	struct audit_event e;

	if (started->asked.type > 2 || started->asked.network >= REACHES ||
	    started->enforced.network >= REACHES ||
	    note_started(s, started->process) < 0)
		return -EBADMSG;
	stats_started(&broker, s, started);
	begin(&e, s, "process-started");
	audit_string(&e, "peer", s->attachment.peer);
	audit_string(&e, "process", started->process);
	audit_number(&e, "pid", started->pid);
	audit_string(&e, "cwd", started->cwd);
	audit_flag(&e, "cwdCut", started->cwd_cut);
	audit_string(&e, "command", started->command);
	audit_flag(&e, "commandCut", started->command_cut);
	audit_number(&e, "redacted", started->redacted);
	audit_flag(&e, "tty", started->tty);
	audit_flag(&e, "sandboxed", started->sandboxed);
	put_policy(&e, "asked", &started->asked);
	put_policy(&e, "enforced", &started->enforced);
	audit_number(&e, "landlockAbi", started->landlock_abi);
	audit_flag(&e, "landlockOnly", started->landlock_only);
	snprintf(e.start.session, sizeof(e.start.session), "%s", s->id);
	snprintf(
	    e.start.process, sizeof(e.start.process), "%s", started->process);
	start = e.start;
	if (end(&e, &broker.conf->audit) < 0)
		end_unrecorded(&broker, s, &start);
	return 0;
}

static void
record_exited(
    struct broker *m, struct session *s, const struct control_exited *exited)
{
	const char *cause = control_cause_name(exited->cause);
	struct audit_event e;

	stats_exited(m, s, exited);
	begin(&e, s, "process-exited");
	audit_string(&e, "process", exited->process);
	if (exited->signal > 0)
		audit_number(&e, "signal", exited->signal);
	else
		audit_number(&e, "code", exited->code);
	if (cause != NULL)
		audit_string(&e, "killedBy", cause);
	audit_flag(&e, "terminated", exited->terminated);
	audit_flag(&e, "sandboxDenied", exited->denied);
	audit_number(&e, "memoryKills", exited->memory_kills);
	audit_number(&e, "forksDenied", exited->forks_denied);
	audit_number(&e, "outputBytes", exited->output_bytes);
	audit_number(&e, "durationMs", exited->duration_ms);
	audit_number(&e, "userMs", exited->user_ms);
	audit_number(&e, "systemMs", exited->system_ms);
	audit_number(&e, "maxRssBytes", exited->max_rss_bytes);
	/* The start is recorded and the command is over, so nothing can be
	 * stopped. session_audit_watch() stops what would come next. */
	end(&e, &m->conf->audit);
}

int
session_audit_exited(struct session *s, const union runner_report *r)
{
	if (r->exited.cause >= END_CAUSES)
		return -EBADMSG;
	note_exited(s, r->exited.process);
	record_exited(&broker, s, &r->exited);
	return 0;
}

int
session_audit_limited(struct session *s, const union runner_report *r)
{
	struct audit_event e;

	begin(&e, s, "limit-acted");
	audit_string(&e, "process", r->limited.process);
	audit_string(&e, "limit", r->limited.limit);
	end(&e, &broker.conf->audit);
	return 0;
}

/* A killed runner did not report the commands that ended with it. Every
 * recorded start gets an end. */
void
session_audit_processes_ended(struct broker *m, struct session *s)
{
	struct control_exited exited = {
		.signal = SIGKILL, .terminated = true, .cause = END_SESSION
	};
	struct running_process *p;

	while ((p = TAILQ_FIRST(&s->commands.processes)) != NULL) {
		TAILQ_REMOVE(&s->commands.processes, p, link);
		snprintf(exited.process, sizeof(exited.process), "%s", p->id);
		record_exited(m, s, &exited);
		free(p);
	}
}

int
session_audit_file(struct session *s, const union runner_report *r)
{
	const struct control_file *file = &r->file;
	struct audit_event e;

	begin(&e, s, "file-operation");
	audit_string(&e, "operation", file->operation);
	audit_string(&e, "path", file->path);
	if (file->destination[0] != '\0')
		audit_string(&e,
		    strcmp(file->operation, "fs/symlink") == 0 ? "target"
							       : "destination",
		    file->destination);
	audit_flag(&e, "pathCut", file->cut);
	audit_flag(&e, "sandboxed", file->sandboxed);
	end(&e, &broker.conf->audit);
	return 0; /* it is done; session_audit_watch() stops the next one */
}

int
session_audit_http(struct session *s, const union runner_report *r)
{
	const struct control_http *http = &r->http;
	struct audit_event e;

	begin(&e, s, "http-request");
	audit_string(&e, "method", http->method);
	audit_flag(&e, "methodCut", http->method_cut);
	audit_string(&e, "url", http->url);
	audit_flag(&e, "urlCut", http->url_cut);
	audit_number(&e, "redacted", http->redacted);
	end(&e, &broker.conf->audit);
	return 0; /* it is done; session_audit_watch() stops the next one */
}

int
session_audit_network(struct session *s, const union runner_report *r)
{
	const struct control_network *n = &r->network;
	struct audit_event e;

	if (n->protocol >= NETPROXY_PROTOCOLS ||
	    n->source >= NETPROXY_SOURCES || n->reason >= NETPROXY_REASONS)
		return -EBADMSG;
	stats_network(&broker, s, n);
	if (n->counted)
		return 0;
	begin(&e, s, n->allowed ? "network-allowed" : "network-denied");
	if (n->protocol != NETPROXY_REQUEST)
		audit_string(&e, "process", n->process);
	audit_string(&e, "host", n->host);
	audit_number(&e, "port", n->port);
	audit_string(&e, "protocol", netproxy_protocol_name(n->protocol));
	audit_string(&e, "decidedBy", netproxy_decider_name(n->source));
	audit_string(&e, "reason",
	    netproxy_reason_name(n->allowed ? NETPROXY_LISTED : n->reason));
	if (n->rule[0] != '\0')
		audit_string(&e, "rule", n->rule);
	audit_number(&e, "unrecorded", n->unrecorded);
	end(&e, &broker.conf->audit);
	return 0;
}

/* --- commands to the runner --------------------------------------------- */

static void
put_patterns(char text[CONTROL_PATTERNS_MAX], const struct strings *patterns)
{
	char *at = text;

	for (size_t i = 0; i < patterns->count; i++)
		at = stpcpy(stpcpy(at, patterns->items[i]), "\n");
}

void
session_audit_configure(struct broker *m, struct session *s)
{
	const struct audit_rules *audit = &m->conf->audit;
	struct control_audit command = { 0 };
	struct control_audit_state state = { .works = false };

	if (!audit_is_kept(audit) && !stats_are_wanted(m->conf))
		return;
	s->runner.audited = true;
	command.files = s->identity->audit_files == AUDIT_FILES_UNSET
			    ? audit->files
			    : s->identity->audit_files;
	put_patterns(command.redact_names, &audit->redact_names);
	put_patterns(command.redact_values, &audit->redact_values);
	session_send_command(s, RUNNER_COMMAND_AUDIT, &command, NULL, 0);
	if (m->audit_stopped)
		session_send_command(
		    s, RUNNER_COMMAND_AUDIT_STATE, &state, NULL, 0);
}

int64_t
session_audit_watch(struct broker *m, int64_t now)
{
	struct audit_rules *audit = &m->conf->audit;
	struct control_audit_state state = { .works = false };
	bool failing, waiting;
	struct session *s;

	audit->unrecorded = start_unrecorded;
	if ((audit_is_failing(audit) || audit_is_waiting(audit)) &&
	    now >= m->audit_retry_ms) {
		audit_retry(audit, now);
		m->audit_retry_ms =
		    now + (audit_is_waiting(audit) ? WAITING_MS : RETRY_MS);
	}
	failing = audit_is_failing(audit);
	waiting = audit_is_waiting(audit);
	if ((failing && audit->required) != m->audit_stopped) {
		m->audit_stopped = !m->audit_stopped;
		state.works = !m->audit_stopped;
		TABLE_FOREACH (s, &m->sessions->by_id, by_id)
			if (s->runner.audited && !s->runner.hung_up)
				session_send_command(s,
				    RUNNER_COMMAND_AUDIT_STATE, &state, NULL,
				    0);
		session_spare_drop_all(m);
		m->frontend->ping_ms = now; /* it hears of it at once */
	}
	return failing || waiting ? m->audit_retry_ms : -1;
}
