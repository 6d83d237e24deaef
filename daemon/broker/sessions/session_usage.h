/* SPDX-License-Identifier: ISC */
/*
 * What a session uses of the host: processor time and memory of its runner and
 * of all that it started. Its control group knows; where there is none, the
 * processes are added up from proc(5).
 */
#ifndef SESSION_USAGE_H
#define SESSION_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct cgroup;
struct session;

struct session_usage {
	bool has_cpu, has_memory, has_processes; /* else not known */
	uint64_t cpu_ms;
	uint64_t memory_bytes;
	uint64_t processes;
};

/* Finds the directories above all sessions' groups: those that the broker
 * before has left with root, or those of the first group that is made. */
void session_usage_init(void);
void session_usage_learn(const struct cgroup *group);

/* As it is now. Takes some ten microseconds. */
void session_usage_read(const struct session *s, struct session_usage *u);

#endif
