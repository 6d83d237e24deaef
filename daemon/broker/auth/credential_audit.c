/* SPDX-License-Identifier: ISC */
/*
 * Writes to the audit log what became of credentials. session_open() decides
 * about a session that cannot be recorded.
 */
#include "credential_audit.h"

#include "broker_state.h"
#include "conf.h"
#include "credential.h"

static void
begin(struct audit_event *e, const char *event, const char *peer,
    const char *proxy, const struct listener *l)
{
	audit_begin(e, event);
	audit_string(e, "peer", peer);
	if (proxy[0] != '\0')
		audit_string(e, "proxy", proxy);
	audit_string(e, "listener", l ? l->name : "");
}

void
credential_audit(struct broker *m, const struct control_authenticate *a,
    const struct listener *l, enum verdict v,
    const struct credential_finding *found)
{
	struct audit_event e;

	if (!audit_is_kept(&m->conf->audit))
		return;
	begin(&e, found->who ? "granted" : "refused", a->peer, a->proxy, l);
	if (found->who != NULL) {
		audit_string(&e, "identity", found->who->name);
		audit_string(&e, "by", found->how);
	} else {
		audit_string(&e, "reason", control_verdict_name(v));
	}
	if (found->jwt.subject[0] != '\0')
		audit_string(&e, "subject", found->jwt.subject);
	audit_end(&e, &m->conf->audit);
}

void
credential_audit_refused(
    struct broker *m, const struct control_refused *r, const struct listener *l)
{
	struct audit_event e;

	begin(&e, "refused", r->peer, r->proxy, l);
	audit_string(&e, "reason", r->reason);
	audit_end(&e, &m->conf->audit);
}
