/* SPDX-License-Identifier: ISC */
/*
 * System-call policies, compiled by libseccomp; load one that stands as a
 * table. Filters are inherited and only add up: root never loads one.
 *
 * Sources: seccomp(2), seccomp_rule_add(3), seccomp_export_bpf(3).
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

/* A program as seccomp(2) takes it. */
struct sock_filter;
struct filter_program {
	struct sock_filter *code; /* owned */
	unsigned short len;	  /* instructions */
};

/* Adds a policy's rules to a scmp_filter_ctx. 0 or libseccomp's -errno. */
typedef int (*filter_fill)(void *ctx, const void *policy);

/*
 * What has no rule gets `otherwise` (SCMP_ACT_*), a foreign calling convention
 * kills. 0 and the whole program, or -errno and nothing to clear: -ENOMEM,
 * -EMFILE, -ENFILE, -EIO; -EOPNOTSUPP or -EINVAL when libseccomp finds no
 * SECCOMP_RET_KILL_PROCESS (Linux 4.14). Beyond 10 s of processor time the
 * process is killed (SIGPROF).
 */
int filter_compile(struct filter_program *p, uint32_t otherwise,
    filter_fill fill, const void *policy);
void filter_program_clear(struct filter_program *p);

/*
 * no_new_privs, then an allow-list: what has no row kills the process (or,
 * built with -Dsandbox-debug, is logged by name and kills then). 0 or -errno.
 */
int filter_load(const struct filter_rule *rules, size_t n);

/*
 * no_new_privs, then a deny-list: what has no row is allowed, a row with an
 * errno answers it, and a row without one kills the process. 0 or -errno.
 */
int filter_load_denied(const struct filter_rule *rules, size_t n);

#endif
