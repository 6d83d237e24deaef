/* SPDX-License-Identifier: ISC */
/*
 * An execd-netproxy that asks without an end about its list, and reads no
 * answer.
 */
#include <errno.h>
#include <poll.h>

#include "control_limits.h"
#include "netproxy_message.h"
#include "seqpacket.h"

int
main(void)
{
	static uint8_t bytes[NETPROXY_MESSAGE_MAX];
	struct pollfd channel = { .fd = CONTROL_FD, .events = POLLOUT };
	union netproxy_message m;
	int fds[SEQPACKET_FDS_MAX], err = 0;
	size_t nfds;
	ssize_t n;
	struct buf b;

	poll(&(struct pollfd){ .fd = CONTROL_FD, .events = POLLIN }, 1, -1);
	n = seqpacket_recv(CONTROL_FD, bytes, sizeof(bytes), fds, &nfds);
	if (n <= 0 || netproxy_get(bytes, (size_t)n, &m) != NETPROXY_OPEN)
		return 1;
	m.ask = (struct netproxy_ask){ .list = m.open.list,
		.target = { .host = "a.example", .port = 80 } };
	buf_init(&b, sizeof(bytes));
	netproxy_put(&b, NETPROXY_ASK, &m);
	while (err == 0 || err == -EAGAIN) {
		poll(&channel, 1, -1);
		err = seqpacket_send(CONTROL_FD, b.data, b.len, NULL, 0);
	}
	return 0;
}
