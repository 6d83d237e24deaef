/* SPDX-License-Identifier: ISC */
#include "tcp_peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base.h"

/* The kernel shows this number for a user who has none in this namespace. */
#define OVERFLOW_UID 65534

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 about;
};

struct answer {
	struct nlmsghdr header;
	union {
		struct inet_diag_msg socket;
		struct nlmsgerr fault;
		uint8_t room[1024]; /* attributes follow */
	};
};

/* Returns the family, or 0. Where there is no address, it stays zero. */
static uint8_t
put_address(const union address *a, __be32 at[4], __be16 *port)
{
	if (a->any.sa_family == AF_INET) {
		*port = a->v4.sin_port;
		at[0] = a->v4.sin_addr.s_addr;
	} else if (a->any.sa_family == AF_INET6) {
		*port = a->v6.sin6_port;
		memcpy(at, &a->v6.sin6_addr, 16);
	} else {
		return 0;
	}
	return (uint8_t)a->any.sa_family;
}

/* An IPv4 address as an IPv6 socket shows it, which may be the other end of an
 * IPv4 connection. */
static void
widen(uint8_t family, const __be32 from[4], __be32 to[4])
{
	memcpy(to, from, 16);
	if (family == AF_INET) {
		to[3] = from[0];
		to[0] = to[1] = 0;
		to[2] = htonl(0xffff);
	}
}

static bool
is_same(
    uint8_t a_family, const __be32 a[4], uint8_t b_family, const __be32 b[4])
{
	__be32 wide_a[4], wide_b[4];

	widen(a_family, a, wide_a);
	widen(b_family, b, wide_b);
	return memcmp(wide_a, wide_b, sizeof(wide_a)) == 0;
}

/* The kernel looks for a listening socket where there is no connection. */
static bool
is_exact(const struct inet_diag_req_v2 *q, const struct inet_diag_msg *m)
{
	return m->id.idiag_sport == q->id.idiag_sport &&
	       m->id.idiag_dport == q->id.idiag_dport &&
	       is_same(q->sdiag_family, q->id.idiag_src, m->idiag_family,
		   m->id.idiag_src) &&
	       is_same(q->sdiag_family, q->id.idiag_dst, m->idiag_family,
		   m->id.idiag_dst);
}

/* The answer is there when the question has been sent. That of a question which
 * failed before has an earlier number. */
static int
receive(int diag, uint32_t number, struct answer *a)
{
	ssize_t n;

	do {
		n = recv(diag, a, sizeof(*a), MSG_DONTWAIT);
		if (n < 0)
			return -errno;
		if ((size_t)n < sizeof(a->header))
			return -EBADMSG;
	} while (a->header.nlmsg_seq != number);
	if (a->header.nlmsg_type == NLMSG_ERROR)
		return (size_t)n >= NLMSG_LENGTH(sizeof(a->fault)) &&
			       a->fault.error < 0
			   ? a->fault.error
			   : -EBADMSG;
	return a->header.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
		       (size_t)n >= NLMSG_LENGTH(sizeof(a->socket))
		   ? 0
		   : -EBADMSG;
}

/* Asks for the socket of this host that has these two addresses and, unless it
 * is NULL, this cookie. */
static int
ask(int diag, const union address *its, const union address *others,
    const uint32_t cookie[2], struct inet_diag_msg *m)
{
	static const uint32_t any[2] = { INET_DIAG_NOCOOKIE,
		INET_DIAG_NOCOOKIE };
	static uint32_t number;
	struct question q = {
		.header = { .nlmsg_len = sizeof(q),
		    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		    .nlmsg_flags = NLM_F_REQUEST,
		    .nlmsg_seq = ++number },
		.about = { .sdiag_protocol = IPPROTO_TCP },
	};
	struct inet_diag_sockid *id = &q.about.id;
	struct answer a;
	int err;

	q.about.sdiag_family =
	    put_address(its, id->idiag_src, &id->idiag_sport);
	if (q.about.sdiag_family == 0 ||
	    q.about.sdiag_family !=
		put_address(others, id->idiag_dst, &id->idiag_dport))
		return -EAFNOSUPPORT;
	memcpy(id->idiag_cookie, cookie ? cookie : any, sizeof(any));
	if (send(diag, &q, sizeof(q), MSG_DONTWAIT) < 0)
		return -errno;
	err = receive(diag, number, &a);
	if (err < 0)
		return err == -ESTALE ? -ENOENT : err;
	*m = a.socket;
	return is_exact(&q.about, m) ? 0 : -ENOENT;
}

/* Asks for the socket fd itself. Nobody can name another one by its cookie, and
 * the kernel finds it in its own network namespace alone. */
static int
ask_self(int diag, int fd, const union address *its,
    const union address *others, struct inet_diag_msg *m)
{
	uint32_t cookie[2];
	uint64_t number;
	socklen_t len = sizeof(number);

	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &number, &len) < 0)
		return -errno;
	cookie[0] = (uint32_t)number;
	cookie[1] = (uint32_t)(number >> 32);
	return ask(diag, its, others, cookie, m);
}

int
tcp_peer_open(int listening)
{
	union address its = { 0 }, nobody = { 0 };
	socklen_t len = sizeof(its);
	struct inet_diag_msg m;
	_cleanup_close_ int diag =
	    socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int err;

	if (diag < 0 || getsockname(listening, &its.any, &len) < 0)
		return -errno;
	nobody.any.sa_family = its.any.sa_family;
	err = ask_self(diag, listening, &its, &nobody, &m);
	return err < 0 ? err : steal_fd(&diag);
}

/*
 * The other end is asked about first, and this one after it. While this one is
 * established no other socket can have the other end's address: a connection
 * that began meanwhile would be another one here, with another cookie.
 */
int
tcp_peer_uid(int diag, int fd, uid_t *uid)
{
	union address here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);
	struct inet_diag_msg its = { 0 }, own = { 0 };
	int err;

	if (getsockname(fd, &here.any, &here_len) < 0 ||
	    getpeername(fd, &there.any, &there_len) < 0)
		return -errno;
	err = ask(diag, &there, &here, NULL, &its);
	if (err == 0)
		err = ask_self(diag, fd, &here, &there, &own);
	if (err < 0)
		return err;
	if (its.idiag_state != TCP_ESTABLISHED ||
	    own.idiag_state != TCP_ESTABLISHED || its.idiag_inode == 0)
		return -ENOTCONN;
	if (its.idiag_uid == 0 || its.idiag_uid == OVERFLOW_UID)
		return -EPERM;
	*uid = its.idiag_uid;
	return 0;
}
