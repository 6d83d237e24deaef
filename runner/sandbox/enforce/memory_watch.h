/* SPDX-License-Identifier: ISC */
/*
 * Watches how much memory the processes of one pid namespace have resident,
 * where no control group counts it. The init of the namespace does this. It
 * trusts no process that it looks at, and reads only what the kernel writes.
 *
 * RLIMIT_DATA would hold each process alone, and it counts what a program only
 * reserves. The sanitizers reserve terabytes.
 */
#ifndef MEMORY_WATCH_H
#define MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct memory_watch {
	uint64_t limit_bytes;
	/*
	 * The processor time and the pids of all processes at the latest look.
	 * If neither has changed, nobody ran meanwhile, so nobody has more.
	 */
	uint64_t cpu_ns, pids;
	unsigned pause_ms; /* until the next look */
	int proc;	   /* the directory of all processes */
};

/*
 * Tells whether the kernel mounts a /proc with processes alone (Linux 5.8), and
 * lets this process do it. The caller has capabilities in its user namespace
 * and sees a /proc.
 */
bool memory_watch_is_possible(void);

/*
 * Makes a /proc of the caller's pid namespace its root directory, and opens it.
 * Nobody else sees this /proc. The caller has capabilities in its user
 * namespace, and keeps no other directory open. Returns 0 or -errno.
 */
int memory_watch_begin(struct memory_watch *w, uint64_t limit_bytes);

/*
 * Looks once. Returns true if the processes together have more than the limit.
 * Sets pause_ms.
 */
bool memory_watch_look(struct memory_watch *w);

/*
 * For tests: adds the numbers of the lines with these names, up to a NULL, to
 * *sum. Such a line is "NAME:   123 kB". Reads fd to its end. Returns false if
 * there is no such line.
 */
bool memory_watch_sum(int fd, const char *const *names, uint64_t *sum);

/*
 * For tests: the pause in milliseconds after which processes that have so much
 * can have reached the limit at the earliest.
 */
unsigned memory_watch_pause(uint64_t bytes, uint64_t limit_bytes);

#endif
