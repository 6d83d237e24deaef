/*
 * Sessions and their processes in the audit log. A runner is trusted to speak
 * for its own session and for no other: whose it is, the monitor adds.
 */
#include "session_audit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "monitor.h"
#include "util.h"

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

int
session_audit(struct monitor *m, const struct session *s, const char *event,
    const char *peer, const char *reason)
{
	struct audit_event e;

	begin(&e, s, event);
	if (peer != NULL)
		audit_string(&e, "peer", peer);
	if (reason != NULL)
		audit_string(&e, "reason", reason);
	return end(&e, &m->conf->audit);
}

static int
report_started(struct monitor *m, const struct session *s,
    const uint8_t *packet, size_t len)
{
	struct control_started started;
	struct audit_event e;

	if (control_get(packet, len, RUNNER_REPORT_STARTED, &started) < 0)
		return -EBADMSG;
	begin(&e, s, "process-started");
	audit_string(&e, "process", started.process);
	audit_number(&e, "pid", started.pid);
	audit_string(&e, "cwd", started.cwd);
	audit_string(&e, "command", started.command);
	audit_flag(&e, "commandCut", started.command_cut);
	audit_flag(&e, "sandboxed", started.sandboxed);
	audit_flag(&e, "tty", started.tty);
	return end(&e, &m->conf->audit);
}

static int
report_exited(struct monitor *m, const struct session *s, const uint8_t *packet,
    size_t len)
{
	struct control_exited exited;
	struct audit_event e;

	if (control_get(packet, len, RUNNER_REPORT_EXITED, &exited) < 0)
		return -EBADMSG;
	begin(&e, s, "process-exited");
	audit_string(&e, "process", exited.process);
	if (exited.signal > 0)
		audit_number(&e, "signal", exited.signal);
	else
		audit_number(&e, "code", exited.code);
	audit_flag(&e, "terminated", exited.terminated);
	audit_flag(&e, "sandboxDenied", exited.denied);
	return end(&e, &m->conf->audit);
}

int
session_audit_report(struct monitor *m, const struct session *s,
    const uint8_t *packet, size_t len)
{
	switch (control_peek(packet, len)) {
	case RUNNER_REPORT_STARTED:
		return s->audited ? report_started(m, s, packet, len)
				  : -EBADMSG;
	case RUNNER_REPORT_EXITED:
		return s->audited ? report_exited(m, s, packet, len) : -EBADMSG;
	default:
		return -EBADMSG;
	}
}
