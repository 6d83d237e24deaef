/*
 * Every system call the key process needs once it has its keys: it hears one
 * channel, computes, and answers there.
 */
#include "policy.h"

#include <errno.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "config.h"
#include "filter.h"
#include "util.h"

static const struct filter_rule rules[] = {
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(write), /* the log */
	ALLOW(close), /* what a hostile message brings */
	ALLOW(poll),
	ALLOW(ppoll),
	ALLOW(restart_syscall),
	/* memory, never executable */
	ALLOW(brk),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW_IF(mmap, 2, PROT_EXEC, 0),
	ALLOW_IF(mprotect, 2, PROT_EXEC, 0),
	/* random bytes, time and locks of libcrypto */
	ALLOW(getrandom),
	ALLOW(futex),
	ALLOW(clock_gettime),
	ALLOW(gettimeofday),
	ALLOW(getpid),
	ALLOW(gettid),
	ALLOW(rt_sigreturn),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigprocmask),
	ALLOW(exit),
	ALLOW(exit_group),
	/* tried by libraries, to no avail */
	DENY(open),
	DENY(openat),
	DENY(newfstatat),
	DENY(readlink),
	DENY(sysinfo),
#if EXECD_SANITIZED
	ALLOW(sigaltstack),
	ALLOW(sched_yield),
	ALLOW(getrusage),
	ALLOW(prlimit64),
	ALLOW(tgkill),
	ALLOW(getuid),
	ALLOW(uname),
	ALLOW_IF(ioctl, 1, 0xffffffff, TCGETS),
#endif
};

int
policy_load(void)
{
	return filter_load(rules, nitems(rules));
}
