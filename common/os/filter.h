/* SPDX-License-Identifier: ISC */
/*
 * System-call filters, compiled by libseccomp, and filters that are loaded from
 * a table. Children inherit filters, and filters can only be added; the program
 * of root therefore never loads one.
 *
 * Sources: seccomp(2), seccomp_rule_add(3), seccomp_export_bpf(3).
 */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base.h"

/* One row: a system call. With `compare`, the row applies only if (argument &
 * mask) == value. */
struct filter_rule {
	int syscall; /* SCMP_SYS(name) */
	int error;   /* 0: allowed; else the call fails with this errno */
	bool compare;
	unsigned argument;
	uint64_t mask, value;
};

/* Rows of a table. Files that use them include <errno.h> and <seccomp.h>. */
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

/* A filter in the form that seccomp(2) takes. */
struct sock_filter;
struct filter_program {
	struct sock_filter *code; /* owned */
	unsigned short len;	  /* instructions */
};

/* Adds the rules of a policy to a scmp_filter_ctx. Returns 0 or the -errno of
 * libseccomp. */
typedef int (*filter_fill)(void *ctx, const void *policy);

/*
 * Compiles a filter. System calls without a rule get the action `otherwise`
 * (SCMP_ACT_*), and calls of a foreign architecture kill the process. Returns 0
 * and a program, which the caller ends with filter_program_clear(), or -errno
 * and nothing to clear: -ENOMEM, -EMFILE, -ENFILE, -EIO, and -EOPNOTSUPP or
 * -EINVAL if libseccomp finds no SECCOMP_RET_KILL_PROCESS (Linux 4.14). If
 * compiling takes more than 10 s of processor time, the process is killed by
 * SIGPROF.
 */
int filter_compile(struct filter_program *p, uint32_t otherwise,
    filter_fill fill, const void *policy);
void filter_program_clear(struct filter_program *p);

/*
 * Sets no_new_privs and loads an allow-list. A system call without a row kills
 * the process. A build with -Dsandbox-debug first logs its name. Returns 0 or
 * -errno.
 */
int filter_load(const struct filter_rule *rules, size_t n);

/*
 * Sets no_new_privs and loads a deny-list. A system call without a row is
 * allowed. A row with an errno makes the call fail with it, and a row without
 * one kills the process. Returns 0 or -errno.
 */
int filter_load_denied(const struct filter_rule *rules, size_t n);

/*
 * Macros for filters that are written by hand. They are loaded by processes
 * that run on the sandbox's memory or a copy of it, where libseccomp would have
 * to allocate.
 */
#define FILTER_LOAD(field)                                                     \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define FILTER_PERMIT(number)                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                   \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define FILTER_KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

#if defined(__x86_64__)
#define FILTER_NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_NATIVE AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define FILTER_NATIVE AUDIT_ARCH_RISCV64
#else
#error "which audit architecture is this?"
#endif
