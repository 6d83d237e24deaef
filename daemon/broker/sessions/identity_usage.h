/* SPDX-License-Identifier: ISC */
/*
 * This module adds up what the sessions of each identity use of the host. The
 * operator reads it at /metrics. The processor time includes sessions that have
 * ended. It begins at zero with each broker.
 */
#ifndef IDENTITY_USAGE_H
#define IDENTITY_USAGE_H

#include "control.h"

struct broker;
struct session;

/* An earlier broker opened the session. What it used until now was counted by
 * that broker. */
void identity_usage_adopt(struct broker *m, struct session *s);

/* The runner of the session has ended, and root still keeps what is known of
 * it. */
void identity_usage_end(struct broker *m, struct session *s);

/* Fills in the identities and how many are left out. Reads so many sessions at
 * most, because everybody waits meanwhile; if there are more, each answer has
 * the next ones, and the latest values of the others. */
#define IDENTITY_USAGE_READ_MAX 256
void identity_usage_collect(struct broker *m, struct control_metrics *out);

#endif
