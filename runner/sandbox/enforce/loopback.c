/* SPDX-License-Identifier: ISC */
#include "loopback.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>

/* Any route that somebody adds later comes before the refusing ones. */
#define LAST_METRIC 0x7fffffff
#define BACKLOG	    128

/* --- the interface ------------------------------------------------------ */

struct link_up {
	struct nlmsghdr header;
	struct ifinfomsg link;
};

struct refusing_route {
	struct nlmsghdr header;
	struct rtmsg route;
	struct rtattr metric_header;
	uint32_t metric;
};

struct new_address {
	struct nlmsghdr header;
	struct ifaddrmsg address;
	struct rtattr local_header;
	uint32_t local; /* network order */
};

int
loopback_ask(int fd, const void *request, size_t len)
{
	_Alignas(struct nlmsghdr) char room[512];
	const struct nlmsghdr *h = (const void *)room;
	const struct nlmsgerr *e = NLMSG_DATA(h);
	ssize_t n;

	if (send(fd, request, len, 0) < 0)
		return -errno;
	do
		n = recv(fd, room, sizeof(room), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(*e)) ||
	    h->nlmsg_type != NLMSG_ERROR)
		return -EBADMSG;
	return e->error;
}

static int
bring_up(int fd)
{
	const struct link_up m = {
		.header = { .nlmsg_len = sizeof(m),
		    .nlmsg_type = RTM_SETLINK,
		    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.link = { .ifi_family = AF_UNSPEC,
		    .ifi_index = LOOPBACK_INDEX,
		    .ifi_flags = IFF_UP,
		    .ifi_change = IFF_UP },
	};

	return loopback_ask(fd, &m, sizeof(m));
}

static int
refuse_others(int fd, unsigned char family)
{
	const struct refusing_route m = {
		.header = { .nlmsg_len = sizeof(m),
		    .nlmsg_type = RTM_NEWROUTE,
		    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.route = { .rtm_family = family,
		    .rtm_table = RT_TABLE_MAIN,
		    .rtm_protocol = RTPROT_BOOT,
		    .rtm_scope = RT_SCOPE_UNIVERSE,
		    .rtm_type = RTN_PROHIBIT },
		.metric_header = { .rta_len = RTA_LENGTH(sizeof(m.metric)),
		    .rta_type = RTA_PRIORITY },
		.metric = LAST_METRIC,
	};

	return loopback_ask(fd, &m, sizeof(m));
}

/* Without these routes other addresses are out of reach all the same. */
static void
refuse_everything_else(int fd)
{
	static const unsigned char families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < nitems(families); i++) {
		int err = refuse_others(fd, families[i]);

		if (err < 0 && err != -EAFNOSUPPORT && err != -EOPNOTSUPP)
			log_warn(err, "a route that refuses other addresses; "
				      "commands are told that there is none");
	}
}

int
loopback_prepare(const char **step)
{
	_cleanup_close_ int fd =
	    socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int err;

	*step = "bringing up its loopback interface";
	if (fd < 0)
		return -errno;
	err = bring_up(fd);
	if (err < 0)
		return err;
	refuse_everything_else(fd);
	return 0;
}

/* On a loopback interface the kernel makes all addresses of the prefix local.
 */
int
loopback_add_names(void)
{
	const struct new_address m = {
		.header = { .nlmsg_len = sizeof(m),
		    .nlmsg_type = RTM_NEWADDR,
		    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.address = { .ifa_family = AF_INET,
		    .ifa_prefixlen = LOOPBACK_NAMES_BITS,
		    .ifa_scope = RT_SCOPE_UNIVERSE,
		    .ifa_index = LOOPBACK_INDEX },
		.local_header = { .rta_len = RTA_LENGTH(sizeof(m.local)),
		    .rta_type = IFA_LOCAL },
		.local = htonl(LOOPBACK_NAMES + 1),
	};
	_cleanup_close_ int fd =
	    socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? -errno : loopback_ask(fd, &m, sizeof(m));
}

/* --- sockets that leave the namespace ----------------------------------- */

static bool
is_loopback(const struct loopback_socket *s)
{
	uint32_t v4;

	if (s->ipv6)
		return memcmp(s->address, &in6addr_loopback,
			   sizeof(in6addr_loopback)) == 0;
	memcpy(&v4, s->address, sizeof(v4));
	return s->address[0] == 127 ||
	       (ntohl(v4) ^ LOOPBACK_NAMES) >> (32 - LOOPBACK_NAMES_BITS) == 0;
}

static bool
is_described(const struct loopback_socket *s)
{
	return (s->type == SOCK_STREAM || s->type == SOCK_DGRAM) &&
	       (!s->listens || (s->type == SOCK_STREAM && s->bound)) &&
	       (!s->bound || is_loopback(s));
}

static int
bind_to(int fd, const struct loopback_socket *s)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
		.sin_port = htons(s->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(s->port) };
	int err;

	memcpy(&v4.sin_addr, s->address, sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, s->address, sizeof(v6.sin6_addr));
	err = s->ipv6 ? bind(fd, (struct sockaddr *)&v6, sizeof(v6))
		      : bind(fd, (struct sockaddr *)&v4, sizeof(v4));
	return err < 0 ? -errno : 0;
}

int
loopback_socket(const struct loopback_socket *s)
{
	const int yes = 1;
	_cleanup_close_ int fd = -1;
	int err;

	if (!is_described(s))
		return -EINVAL;
	fd = socket(s->ipv6 ? AF_INET6 : AF_INET,
	    s->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (s->listens &&
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0)
		return -errno;
	err = s->bound ? bind_to(fd, s) : 0;
	if (err < 0)
		return err;
	if (s->listens && listen(fd, BACKLOG) < 0)
		return -errno;
	return steal_fd(&fd);
}

int
loopback_sockets(const struct loopback_socket *s, size_t n, int *fds)
{
	size_t made = 0;
	int fd = 0;

	while (made < n && (fd = loopback_socket(&s[made])) >= 0)
		fds[made++] = fd;
	if (fd >= 0)
		return 0;
	while (made > 0)
		close(fds[--made]);
	return fd;
}
