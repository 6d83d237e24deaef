/* SPDX-License-Identifier: ISC */
#include "netproxy_sockets.h"

#include <netinet/in.h>

#include "redirect.h"
#include "sandbox.h"
#include "session.h"

#define DNS_PORT   53
#define BLOCK_BITS REDIRECT_BLOCK_BITS
#define FIRST_NAME 2 /* in its block; before it comes the resolver */

/* What is refused at once. What else waits causes the next event. */
#define REFUSE_MAX 1024

_Static_assert(NETPROXY_PORTS_MAX <= LOOPBACK_SOCKETS_MAX &&
		   LOOPBACK_SOCKETS_MAX <= SANDBOX_FDS_MAX,
    "the listeners of a name come with one answer");
_Static_assert(NETPROXY_NAMES_MAX <= NETPROXY_REDIRECTED_MAX &&
		   FIRST_NAME + NETPROXY_REDIRECTED_MAX < 1 << BLOCK_BITS,
    "the names of a list fit into its block");

static struct loopback_socket
at(uint32_t address, uint16_t port, uint8_t type)
{
	const uint32_t network = htonl(address);
	struct loopback_socket s = { .type = type,
		.bound = true,
		.listens = type == SOCK_STREAM,
		.port = port };

	memcpy(s.address, &network, sizeof(network));
	return s;
}

int
netproxy_sockets_make(
    struct network *n, struct sandbox *sandbox, unsigned block, uint16_t *port)
{
	uint32_t resolver = LOOPBACK_NAMES + (block << BLOCK_BITS) + 1;
	const struct loopback_socket wanted[] = {
		at(INADDR_LOOPBACK, 0, SOCK_STREAM),
		at(resolver, DNS_PORT, SOCK_DGRAM),
		at(resolver, REDIRECT_PORT, SOCK_STREAM),
	};
	size_t count = block == 0 ? 1 : n->list.transparent ? 3 : 2;
	struct sockaddr_in in = { 0 };
	socklen_t len = sizeof(in);
	int fds[nitems(wanted)] = { -1, -1, -1 };
	int err = sandbox_sockets(sandbox, wanted, count, fds);

	if (err < 0)
		return err;
	n->listener = fds[0];
	n->resolver = fds[1];
	n->redirected = fds[2];
	n->resolver_address = block == 0 ? 0 : resolver;
	if (getsockname(n->listener, (struct sockaddr *)&in, &len) < 0)
		return -errno;
	*port = ntohs(in.sin_port);
	return 0;
}

unsigned
netproxy_sockets_block(const struct network *n)
{
	return n->resolver_address == 0
		   ? 0
		   : (n->resolver_address - LOOPBACK_NAMES) >> BLOCK_BITS;
}

int
netproxy_sockets_name(struct network *n, const struct netproxy_name *asked,
    uint32_t *address, int fds[NETPROXY_PORTS_MAX])
{
	struct loopback_socket wanted[NETPROXY_PORTS_MAX];
	struct sandbox *sandbox = n->process->process.sandbox;
	int err;

	*address = 0;
	if (n->resolver < 0)
		return -EINVAL;
	if (n->names == NETPROXY_NAMES_MAX)
		return -ENOSPC;
	if (sandbox == NULL)
		return -ESTALE;
	*address = n->resolver_address - 1 + FIRST_NAME + n->names;
	for (uint32_t i = 0; i < asked->nports; i++)
		wanted[i] = at(*address, asked->ports[i], SOCK_STREAM);
	/* A failure uses an address up, so there are not many. */
	n->names++;
	err = sandbox_sockets(sandbox, wanted, asked->nports, fds);
	if (err < 0)
		*address = 0;
	return err;
}

/* Returns false if no connection waits. */
static bool
reset_one(int listener)
{
	const struct linger reset = { .l_onoff = 1 };
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (client < 0)
		return false;
	setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(client);
	return true;
}

unsigned
netproxy_sockets_refuse(const struct network *n)
{
	const int listeners[] = { n->listener, n->redirected };
	unsigned refused = 0;
	char byte;

	for (size_t i = 0; i < nitems(listeners) && listeners[i] >= 0; i++) {
		set_nonblock(listeners[i]);
		while (refused < REFUSE_MAX && reset_one(listeners[i]))
			refused++;
	}
	while (n->resolver >= 0 && refused < REFUSE_MAX &&
	       recv(n->resolver, &byte, 1, MSG_DONTWAIT) >= 0)
		refused++;
	return refused;
}

void
netproxy_sockets_close(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}
