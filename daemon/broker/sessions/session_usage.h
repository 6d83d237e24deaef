/* SPDX-License-Identifier: ISC */
/*
 * How much of the host a session uses: processor time and memory of its runner
 * and everything that it started. Its control group knows them. Without one,
 * they are added up over the processes in proc(5).
 */
#ifndef SESSION_USAGE_H
#define SESSION_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct cgroup;
struct session;

struct session_usage {
	bool has_cpu, has_memory, has_processes; /* false: not known */
	uint64_t cpu_ms;
	uint64_t memory_bytes;
	uint64_t processes;
};

/* Finds the directories above the groups of all sessions: those that the
 * previous broker left with root, or those of the first group that is made. */
void session_usage_init(void);
void session_usage_learn(const struct cgroup *group);

/* Reads the current values. Takes some ten microseconds. */
void session_usage_read(const struct session *s, struct session_usage *u);

#endif
