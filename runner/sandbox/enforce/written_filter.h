/* SPDX-License-Identifier: ISC */
/*
 * Macros for filters that are written by hand. They are loaded by processes
 * that run on the sandbox's memory or a copy of it, where libseccomp would have
 * to allocate.
 */
#ifndef WRITTEN_FILTER_H
#define WRITTEN_FILTER_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#define LOAD(field)                                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define PERMIT(number)                                                         \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                   \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define NATIVE AUDIT_ARCH_RISCV64
#else
#error "which audit architecture is this?"
#endif

#endif
