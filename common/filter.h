/*
 * Load a system-call policy that stands as a table (libseccomp). Filters are
 * inherited and only add up: the monitor never loads one.
 */
#ifndef FILTER_H
#define FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row: a call, perhaps only when (argument & mask) == value. */
struct filter_rule {
	int syscall; /* SCMP_SYS(name) */
	int error;   /* 0: allowed; else this errno instead */
	bool compare;
	unsigned argument;
	uint64_t mask, value;
};

/*
 * no_new_privs, then an allow-list: what has no row kills the process (or,
 * built with -Dsandbox-debug, is logged by name and kills then). 0 or -errno.
 */
int filter_load(const struct filter_rule *rules, size_t n);

#endif
