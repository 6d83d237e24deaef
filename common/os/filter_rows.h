/* SPDX-License-Identifier: ISC */
/*
 * Rows of a filter's table (filter.h), and those that more than one program of
 * the daemon needs. What only one needs stands in its own policy.c, with its
 * reason.
 */
#ifndef FILTER_ROWS_H
#define FILTER_ROWS_H

#include <errno.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "config.h"
#include "filter.h"

#define FILTER_ALL_BITS 0xffffffff

/* Messages on a channel, and the log. */
#define FILTER_CHANNEL                                                         \
	ALLOW(recvmsg), ALLOW(sendmsg), ALLOW(write), ALLOW(close),            \
	    ALLOW(poll), ALLOW(ppoll), ALLOW(restart_syscall)

/* Memory, never executable. */
#define FILTER_MEMORY                                                          \
	ALLOW(brk), ALLOW(munmap), ALLOW(mremap), ALLOW(madvise),              \
	    ALLOW_IF(mmap, 2, PROT_EXEC, 0),                                   \
	    ALLOW_IF(mprotect, 2, PROT_EXEC, 0)

/* The process itself: random bytes, time and locks of libraries, its end. */
#define FILTER_SELF                                                            \
	ALLOW(getrandom), ALLOW(futex), ALLOW(clock_gettime),                  \
	    ALLOW(gettimeofday), ALLOW(getpid), ALLOW(gettid),                 \
	    ALLOW(rt_sigreturn), ALLOW(rt_sigaction), ALLOW(rt_sigprocmask),   \
	    ALLOW(exit), ALLOW(exit_group)

/* Tried by libraries, to no avail. */
#define FILTER_TRIED                                                           \
	DENY(open), DENY(openat), DENY(newfstatat), DENY(readlink),            \
	    DENY(sysinfo)

/* What the sanitizers' runtime does beside the program. */
#define FILTER_SANITIZER                                                       \
	ALLOW(sigaltstack), ALLOW(sched_yield), ALLOW(getrusage),              \
	    ALLOW(prlimit64), ALLOW(tgkill), ALLOW(getuid), ALLOW(uname),      \
	    ALLOW_IF(ioctl, 1, FILTER_ALL_BITS, TCGETS)

#endif
