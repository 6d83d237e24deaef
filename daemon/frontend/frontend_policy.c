/* SPDX-License-Identifier: ISC */
/*
 * The system calls that the front-end needs. Any other call kills it, except
 * those that libraries only try, which fail with an error. A new row needs a
 * reason.
 */
#include "frontend_policy.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "filter_rows.h"
#include "util.h"

static const struct filter_rule rules[] = {
	FILTER_CHANNEL,
	FILTER_MEMORY,
	FILTER_SELF,
	FILTER_TRIED,
	/* bytes of clients */
	ALLOW(read),
	ALLOW(readv),
	ALLOW(writev),
	ALLOW(recvfrom),
	ALLOW(sendto),
	ALLOW(shutdown),
	/* connections; the front-end accepts them and never makes one */
	ALLOW(accept4),
	ALLOW(getsockopt),
	ALLOW(setsockopt),
	ALLOW(getsockname),
	ALLOW(getpeername),
	ALLOW_IF(socketpair, 0, FILTER_ALL_BITS, AF_UNIX),
	DENY(socket),
	DENY(connect),
	/* events and time */
	ALLOW(epoll_wait),
	ALLOW(epoll_pwait),
	ALLOW(epoll_ctl),
	ALLOW(clock_nanosleep),
	/* descriptors: their flags, the reserve, the size of a certificate */
	ALLOW(lseek),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_GETFL),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_SETFL),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_GETFD),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_SETFD),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_DUPFD_CLOEXEC),
	ALLOW_IF(ioctl, 1, FILTER_ALL_BITS, FIONREAD),
	/* tried by libraries, but not needed */
	DENY(access),
	DENY(faccessat),
	DENY(prctl),
	DENY(sched_getaffinity),
#if EXECD_SANITIZED
	FILTER_SANITIZER,
#endif
};

int
policy_load(void)
{
	return filter_load(rules, nitems(rules));
}
