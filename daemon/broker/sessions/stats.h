/* SPDX-License-Identifier: ISC */
/*
 * The broker's counters for the operator's /metrics (execd.conf(5), `operate`).
 * The broker has them because it knows the sessions and survives front-ends.
 */
#pragma once

#include "base.h"
#include "control.h"

struct conf;
struct broker;
struct session;

/* Tells whether a listener serves them. Then runners report their commands. */
bool stats_are_wanted(const struct conf *c);

void stats_started(
    struct broker *m, struct session *s, const struct control_started *p);
void stats_exited(
    struct broker *m, struct session *s, const struct control_exited *p);

void stats_network(
    struct broker *m, struct session *s, const struct control_network *n);

/* Collects the current values. conn is the caller's. */
void stats_collect(struct broker *m, struct control_metrics *out);

/*
 * How much of the host a session uses: processor time and memory of its runner
 * and everything that it started. Its control group knows them; without one
 * nothing is known.
 */

struct session;

struct session_usage {
	bool has_cpu, has_memory, has_processes; /* false: not known */
	uint64_t cpu_ms;
	uint64_t memory_bytes;
	uint64_t processes;
};

/* Reads the current values. Takes some ten microseconds. */
void session_usage_read(const struct session *s, struct session_usage *u);

/*
 * This module adds up what the sessions of each identity use of the host. The
 * operator reads it at /metrics. The processor time includes sessions that have
 * ended. It begins at zero with each broker.
 */

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
