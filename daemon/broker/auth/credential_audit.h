/* SPDX-License-Identifier: ISC */
/*
 * Writes to the audit log what became of credentials.
 */
#ifndef CREDENTIAL_AUDIT_H
#define CREDENTIAL_AUDIT_H

#include "control.h"

struct credential_finding;
struct listener;
struct broker;

/* Records a verdict and what credential_verify() found. l is NULL if the
 * listener was closed meanwhile. */
void credential_audit(struct broker *m, const struct control_authenticate *a,
    const struct listener *l, enum verdict v,
    const struct credential_finding *found);

/* Records a refusal in TLS, which the front-end reports. */
void credential_audit_refused(struct broker *m, const struct control_refused *r,
    const struct listener *l);

#endif
