/*
 * Every system call the front-end needs. What is not here kills it; what a
 * library only tries is answered with an error. Add a row with its reason.
 */
#include "policy.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "config.h"
#include "filter.h"
#include "util.h"

#define ALL_BITS 0xffffffff

static const struct filter_rule rules[] = {
	/* bytes */
	ALLOW(read),
	ALLOW(write),
	ALLOW(readv),
	ALLOW(writev),
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(recvfrom),
	ALLOW(sendto),
	ALLOW(close),
	ALLOW(shutdown),
	/* connections; none is ever made from here */
	ALLOW(accept4),
	ALLOW(getsockopt),
	ALLOW(setsockopt),
	ALLOW(getsockname),
	ALLOW(getpeername),
	/* events and time */
	ALLOW(epoll_wait),
	ALLOW(epoll_pwait),
	ALLOW(epoll_ctl),
	ALLOW(poll),
	ALLOW(ppoll),
	ALLOW(clock_gettime),
	ALLOW(clock_nanosleep),
	ALLOW(gettimeofday),
	ALLOW(restart_syscall),
	/* memory, never executable */
	ALLOW(brk),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW_IF(mmap, 2, PROT_EXEC, 0),
	ALLOW_IF(mprotect, 2, PROT_EXEC, 0),
	/* descriptors: flags, the reserve one, a certificate's length */
	ALLOW(lseek),
	ALLOW_IF(fcntl, 1, ALL_BITS, F_GETFL),
	ALLOW_IF(fcntl, 1, ALL_BITS, F_SETFL),
	ALLOW_IF(fcntl, 1, ALL_BITS, F_GETFD),
	ALLOW_IF(fcntl, 1, ALL_BITS, F_SETFD),
	ALLOW_IF(fcntl, 1, ALL_BITS, F_DUPFD_CLOEXEC),
	ALLOW_IF(ioctl, 1, ALL_BITS, FIONREAD),
	/* the process itself */
	ALLOW(futex),
	ALLOW(getrandom),
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
	DENY(access),
	DENY(faccessat),
	DENY(newfstatat),
	DENY(readlink),
	DENY(socket),
	DENY(connect),
	DENY(prctl),
	DENY(sysinfo),
	DENY(sched_getaffinity),
#if EXECD_SANITIZED
	/* what the sanitizers' runtime does beside the program */
	ALLOW(sigaltstack),
	ALLOW(sched_yield),
	ALLOW(getrusage),
	ALLOW(prlimit64),
	ALLOW(tgkill),
	ALLOW(getuid),
	ALLOW(uname),
	ALLOW_IF(ioctl, 1, ALL_BITS, TCGETS),
#endif
};

int
policy_load(void)
{
	return filter_load(rules, nitems(rules));
}
