/* SPDX-License-Identifier: ISC */
/*
 * Groups of rows for filter tables (filter.h) that several programs of the
 * daemon need. Rows that only one program needs are in its own policy file,
 * with the reason.
 */
#pragma once

#include <errno.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "config.h"
#include "filter.h"

#define FILTER_ALL_BITS 0xffffffff

/* Messages on a channel, and the log. */
#define FILTER_CHANNEL                                                         \
	ALLOW(recvmsg), ALLOW(sendmsg), ALLOW(sendto), ALLOW(write),           \
	    ALLOW(close), ALLOW(poll), ALLOW(ppoll), ALLOW(restart_syscall)

/* Memory that is not executable. */
#define FILTER_MEMORY                                                          \
	ALLOW(brk), ALLOW(munmap), ALLOW(mremap), ALLOW(madvise),              \
	    ALLOW_IF(mmap, 2, PROT_EXEC, 0),                                   \
	    ALLOW_IF(mprotect, 2, PROT_EXEC, 0)

/* The process itself: random bytes, time, locks of libraries, and exit. */
#define FILTER_SELF                                                            \
	ALLOW(getrandom), ALLOW(futex), ALLOW(clock_gettime),                  \
	    ALLOW(gettimeofday), ALLOW(getpid), ALLOW(gettid),                 \
	    ALLOW(rt_sigreturn), ALLOW(rt_sigaction), ALLOW(rt_sigprocmask),   \
	    ALLOW(exit), ALLOW(exit_group)

/* System calls that libraries try, but do not need. */
#define FILTER_TRIED                                                           \
	DENY(open), DENY(openat), DENY(newfstatat), DENY(readlink),            \
	    DENY(sysinfo)

/* System calls of the runtime of the sanitizers. */
#define FILTER_SANITIZER                                                       \
	ALLOW(sigaltstack), ALLOW(sched_yield), ALLOW(getrusage),              \
	    ALLOW(prlimit64), ALLOW(tgkill), ALLOW(getuid), ALLOW(uname),      \
	    ALLOW_IF(ioctl, 1, FILTER_ALL_BITS, TCGETS)
