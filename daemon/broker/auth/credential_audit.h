/* SPDX-License-Identifier: ISC */
/*
 * What became of credentials in the audit log.
 */
#ifndef CREDENTIAL_AUDIT_H
#define CREDENTIAL_AUDIT_H

#include "control.h"

struct credential_finding;
struct listener;
struct broker;

/* A verdict, and what credential_verify() found; l: NULL if it is closed by
 * now. */
void credential_audit(struct broker *m, const struct control_authenticate *a,
    const struct listener *l, enum verdict v,
    const struct credential_finding *found);

/* In TLS, as the front-end tells. */
void credential_audit_refused(struct broker *m, const struct control_refused *r,
    const struct listener *l);

#endif
