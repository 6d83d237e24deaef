/* SPDX-License-Identifier: ISC */
/*
 * Every system call the front-end needs. What is not here kills it; what a
 * library only tries is answered with an error. Add a row with its reason.
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
	/* connections; none is ever made from here */
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
	/* descriptors: flags, the reserve one, a certificate's length */
	ALLOW(lseek),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_GETFL),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_SETFL),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_GETFD),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_SETFD),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_DUPFD_CLOEXEC),
	ALLOW_IF(ioctl, 1, FILTER_ALL_BITS, FIONREAD),
	/* tried by libraries, to no avail */
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
