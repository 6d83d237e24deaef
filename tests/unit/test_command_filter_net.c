/* SPDX-License-Identifier: ISC */
/*
 * command_filter: which sockets each setting of the network permits, by every
 * family and type.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "command_filter.h"
#include "command_filter_child.h"
#include "util.h"

/* What the next child expects of sockets. */
static struct command_filter_options network;

static bool
may_name(long family, long type, long protocol)
{
	bool stream = type == SOCK_STREAM || type == SOCK_SEQPACKET;

	bool ip = network.network || network.loopback;

	if (family == AF_UNIX && network.network && network.unix_allow)
		return true;
	if (family == AF_UNIX && type == SOCK_DGRAM)
		return network.own_unix;
	if (family == AF_UNIX)
		return stream && (network.unix_allow || network.own_unix);
	if (family == AF_NETLINK)
		return ip && protocol == 0;
	return ip && (family == AF_INET || family == AF_INET6) &&
	       (type == SOCK_STREAM || type == SOCK_DGRAM);
}

static bool
may_pair(long family, long type)
{
	return family == AF_UNIX &&
	       (type == SOCK_STREAM || type == SOCK_SEQPACKET ||
		   (network.network && network.unix_allow) ||
		   (type == SOCK_DGRAM && network.own_unix));
}

/* Both calls; `high` are bits that do not count. */
static int
one_kind(long family, long type, long protocol, long high)
{
	int pair[2] = { -1, -1 };
	long t = type | SOCK_CLOEXEC | high, fd;

	EITHER(!may_name(family, type, protocol),
	    (fd = syscall(SYS_socket, family | high, t, protocol | high)));
	close((int)fd);
	EITHER(!may_pair(family, type),
	    syscall(SYS_socketpair, family | high, t, protocol, pair));
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static int
one_family(long family)
{
	static const long protocols[] = { 0, 1, 16, 1l << 31 };

	for (long type = 0; type <= 15; type++)
		for (size_t i = 0; i < nitems(protocols); i++)
			if (one_kind(family, type, protocols[i], 0) != 0 ||
			    one_kind(family, type, protocols[i], HIGH) != 0) {
				dprintf(2, "family %ld type %ld protocol %ld\n",
				    family, type, protocols[i]);
				return 1;
			}
	return 0;
}

static int
families(void)
{
	for (long family = 0; family < 64; family++)
		if (one_family(family) != 0)
			return 1;
	for (int bit = 6; bit < 32; bit++)
		if (one_family(1l << bit | AF_UNIX) != 0)
			return 1;
	return 0;
}

static int
named_calls(void)
{
	bool refused =
	    !network.network && !network.loopback && !network.unix_allow;

	EITHER(refused, syscall(SYS_connect, -1, NULL, 0));
	EITHER(refused, syscall(SYS_bind, -1, NULL, 0));
	EITHER(refused, syscall(SYS_listen, -1, 0));
	EITHER(refused, syscall(SYS_accept, -1, NULL, NULL));
	EITHER(refused, syscall(SYS_accept4, -1, NULL, NULL, 0));
	return 0;
}

static void
test_network(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		network = (struct command_filter_options){ .network = i & 1,
			.unix_allow = i & 2 };
		assert_int_equal(run(&network, families), 0);
		assert_int_equal(run(&network, named_calls), 0);
	}
}

/*
 * With and without the proxy, which makes others for datagrams: in a
 * network namespace of its own, and in that of the host.
 */
static void
test_proxy(void **state)
{
	for (unsigned i = 0; i < 8; i++) {
		network = (struct command_filter_options){ .loopback = i & 4,
			.network = !(i & 4),
			.own_unix = i & 1,
			.unix_allow = i & 2 };
		assert_int_equal(run(&network, families), 0);
		assert_int_equal(run(&network, named_calls), 0);
	}
}

/* Why the table has no UNIX SOCK_RAW. */
static void
test_raw_is_datagram(void **state)
{
	int pair[2], type;
	socklen_t len = sizeof(type);

	assert_int_equal(socketpair(AF_UNIX, SOCK_RAW, 0, pair), 0);
	assert_int_equal(
	    getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &type, &len), 0);
	assert_int_equal(type, SOCK_DGRAM);
	close(pair[0]);
	close(pair[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_proxy),
		cmocka_unit_test(test_raw_is_datagram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
