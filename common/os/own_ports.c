/* SPDX-License-Identifier: ISC */
/* Which addresses lead to execd itself. */
#include "own_ports.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/mman.h>

/* OWN_PORTS_MAX ports; 0: the place is free. NULL: nothing is guarded. */
static const uint16_t *guarded;

/* A question for the route to one address. */
struct route_question {
	struct nlmsghdr header;
	struct rtmsg route;
	struct rtattr to_header;
	uint8_t to[16];
};

/* An address of either family, as netlink takes it. */
struct host_address {
	unsigned char family;
	uint8_t bytes[16];
	size_t len;
};

/* --- the ports ---------------------------------------------------------- */

int
own_ports_share(void)
{
	_cleanup_close_ int fd =
	    memfd_create("execd-own-ports", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* Who reads from it must not meet its end. */
	if (fd < 0 || ftruncate(fd, OWN_PORTS_MAX * sizeof(*guarded)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -errno;
	return steal_fd(&fd);
}

int
own_ports_take(int fd)
{
	void *p;

	if (guarded != NULL)
		return 0;
	p = mmap(NULL, OWN_PORTS_MAX * sizeof(*guarded), PROT_READ, MAP_SHARED,
	    fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	guarded = p;
	return 0;
}

bool
own_ports_guards(void)
{
	return guarded != NULL;
}

static bool
has_port(const uint16_t ports[OWN_PORTS_MAX], uint16_t port)
{
	for (size_t i = 0; i < OWN_PORTS_MAX; i++)
		if (ports[i] == port)
			return true;
	return false;
}

static bool
is_guarded(uint16_t port)
{
	for (size_t i = 0; guarded != NULL && i < OWN_PORTS_MAX; i++)
		if (__atomic_load_n(&guarded[i], __ATOMIC_RELAXED) == port)
			return true;
	return false;
}

/*
 * Others read meanwhile, and a port that stays is guarded at every moment: its
 * place is left as it is.
 */
int
own_ports_set(int fd, const uint16_t ports[OWN_PORTS_MAX])
{
	uint16_t now[OWN_PORTS_MAX], port;
	size_t next = 0;

	if (pread(fd, now, sizeof(now), 0) != sizeof(now))
		return -EIO;
	for (size_t i = 0; i < OWN_PORTS_MAX; i++) {
		if (now[i] != 0 && has_port(ports, now[i]))
			continue;
		while (next < OWN_PORTS_MAX && has_port(now, ports[next]))
			next++;
		port = next < OWN_PORTS_MAX ? ports[next] : 0;
		if (port == now[i])
			continue;
		now[i] = port;
		if (pwrite(fd, &now[i], sizeof(now[i]),
			(off_t)(i * sizeof(now[i]))) != sizeof(now[i]))
			return -EIO;
	}
	return 0;
}

/* --- the addresses ------------------------------------------------------ */

int
own_ports_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

static void
take_v4(struct host_address *a, const void *bytes)
{
	a->family = AF_INET;
	a->len = 4;
	memcpy(a->bytes, bytes, 4);
}

/* Returns the port, or 0 if the address is of another family. */
static uint16_t
read_host(const struct sockaddr *from, struct host_address *a)
{
	const struct sockaddr_in *v4 = (const void *)from;
	const struct sockaddr_in6 *v6 = (const void *)from;

	if (from->sa_family == AF_INET) {
		take_v4(a, &v4->sin_addr);
		return ntohs(v4->sin_port);
	}
	if (from->sa_family != AF_INET6)
		return 0;
	if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		take_v4(a, v6->sin6_addr.s6_addr + 12);
	} else {
		a->family = AF_INET6;
		a->len = 16;
		memcpy(a->bytes, &v6->sin6_addr, 16);
	}
	return ntohs(v6->sin6_port);
}

/* Who connects to the address of nobody reaches this host (ip(7)). */
static bool
is_unspecified(const struct host_address *a)
{
	static const uint8_t zero[16];

	return memcmp(a->bytes, zero, a->len) == 0;
}

static int
ask_route(int fd, const struct host_address *a, void *room, size_t size)
{
	struct route_question q = {
		.header = { .nlmsg_type = RTM_GETROUTE,
		    .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = a->family,
		    .rtm_dst_len = (unsigned char)(a->len * 8) },
		.to_header = { .rta_len = (unsigned short)RTA_LENGTH(a->len),
		    .rta_type = RTA_DST },
	};
	ssize_t n;

	memcpy(q.to, a->bytes, a->len);
	q.header.nlmsg_len =
	    (uint32_t)(offsetof(struct route_question, to) + a->len);
	if (sendto(fd, &q, q.header.nlmsg_len, 0, NULL, 0) < 0)
		return -errno;
	do
		n = recvfrom(fd, room, size, 0, NULL, NULL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (int)n;
}

/*
 * Tells whether the kernel delivers what is sent there to this host: loopback,
 * an address of an interface, or a prefix that somebody made local. Where there
 * is no route, nobody is reached.
 */
static bool
is_this_host(int fd, const struct host_address *a)
{
	_Alignas(struct nlmsghdr) char room[4096] = { 0 };
	const struct nlmsghdr *h = (const void *)room;
	const struct rtmsg *route = NLMSG_DATA(h);
	const struct nlmsgerr *e = NLMSG_DATA(h);
	int n = is_unspecified(a) ? 0 : ask_route(fd, a, room, sizeof(room));

	if (n < (int)NLMSG_LENGTH(sizeof(*route)))
		return true;
	if (h->nlmsg_type == NLMSG_ERROR)
		return n < (int)NLMSG_LENGTH(sizeof(*e)) ||
		       (e->error != -ENETUNREACH && e->error != -EHOSTUNREACH);
	return h->nlmsg_type != RTM_NEWROUTE || route->rtm_type == RTN_LOCAL;
}

bool
own_ports_has(int fd, const struct sockaddr *address)
{
	struct host_address a = { .family = AF_UNSPEC };
	uint16_t port = read_host(address, &a);

	return port != 0 && is_guarded(port) && is_this_host(fd, &a);
}
