/*
 * Sessions and their processes in the audit log.
 */
#ifndef SESSION_AUDIT_H
#define SESSION_AUDIT_H

#include <stddef.h>
#include <stdint.h>

struct monitor;
struct session;

/* What became of a session; peer and reason may be NULL. 0, or -errno if it
 * must not go on. */
int session_audit(struct monitor *m, const struct session *s, const char *event,
    const char *peer, const char *reason);

/* What its runner says of a process. 0, -EBADMSG (no such report, or none was
 * asked for), or another -errno if the session must not go on. */
int session_audit_report(struct monitor *m, const struct session *s,
    const uint8_t *packet, size_t len);

#endif
