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

/* Rows; whoever writes them includes <errno.h> and <seccomp.h>. */
#define ALLOW(name)                                                            \
	{                                                                      \
		.syscall = SCMP_SYS(name)                                      \
	}
#define DENY(name)                                                             \
	{                                                                      \
		.syscall = SCMP_SYS(name), .error = EACCES                     \
	}
#define ALLOW_IF(name, arg, bits, want)                                        \
	{                                                                      \
		.syscall = SCMP_SYS(name), .compare = true, .argument = arg,   \
		.mask = bits, .value = want                                    \
	}

/*
 * no_new_privs, then an allow-list: what has no row kills the process (or,
 * built with -Dsandbox-debug, is logged by name and kills then). 0 or -errno.
 */
int filter_load(const struct filter_rule *rules, size_t n);

#endif
