/* SPDX-License-Identifier: ISC */
/* Who is at the other end of a TCP connection of this host. As root a client
 * has another user; else it has one's own. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tcp_peer.h"

#define SOMEBODY 4711

struct place {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t len;
};

struct connection {
	int client, accepted;
};

static uid_t
its_uid(void)
{
	return geteuid() == 0 ? SOMEBODY : geteuid();
}

static struct place
place(const char *text, uint16_t port)
{
	struct place p = { .len = sizeof(p.v6) };

	p.v6.sin6_family = AF_INET6;
	p.v6.sin6_port = port;
	if (inet_pton(AF_INET6, text, &p.v6.sin6_addr) == 1)
		return p;
	p.len = sizeof(p.v4);
	p.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
	assert_int_equal(inet_pton(AF_INET, text, &p.v4.sin_addr), 1);
	return p;
}

/* Port 0: any. The port that it has is put into *port. */
static int
bound(const char *text, uint16_t *port)
{
	struct place p = place(text, *port);
	int fd = socket(p.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, &p.any, p.len), 0);
	assert_int_equal(getsockname(fd, &p.any, &p.len), 0);
	*port = p.any.sa_family == AF_INET ? p.v4.sin_port : p.v6.sin6_port;
	return fd;
}

static int
listening(const char *text, uint16_t *port)
{
	int fd;

	*port = 0;
	fd = bound(text, port);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* `from` is where the client's socket is bound, `to` how it names the server.
 * The kernel gives a socket to the user of its file system. */
static struct connection
connected(int server, uid_t uid, const char *from, uint16_t *from_port,
    const char *to, uint16_t port)
{
	struct place p = place(to, port);
	struct connection c;

	setfsuid(uid);
	c.client = bound(from, from_port);
	setfsuid(geteuid());
	assert_int_equal(connect(c.client, &p.any, p.len), 0);
	c.accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(c.accepted >= 0);
	return c;
}

static void
end(struct connection c)
{
	if (c.client >= 0)
		close(c.client);
	close(c.accepted);
}

static int
uid_of(int diag, int fd)
{
	uid_t uid = 12345;
	int err = tcp_peer_uid(diag, fd, &uid);

	if (err < 0)
		assert_int_equal(uid, 12345);
	return err < 0 ? err : (int)uid;
}

struct server {
	int listening, diag;
	uint16_t port;
};

static struct server
serve(const char *text)
{
	struct server s;

	s.listening = listening(text, &s.port);
	s.diag = tcp_peer_open(s.listening);
	assert_true(s.diag >= 0);
	return s;
}

static void
stop(struct server s)
{
	close(s.listening);
	close(s.diag);
}

static struct connection
come(const struct server *s, uid_t uid)
{
	uint16_t any = 0;

	return connected(
	    s->listening, uid, "127.0.0.1", &any, "127.0.0.1", s->port);
}

static void
test_addresses(void **state)
{
	static const struct {
		const char *server, *from, *to;
	} rows[] = {
		{ "127.0.0.1", "127.0.0.1", "127.0.0.1" },
		{ "127.0.0.1", "127.0.0.9", "127.0.0.1" },
		{ "127.0.0.1", "::ffff:127.0.0.1", "::ffff:127.0.0.1" },
		{ "127.7.7.7", "::ffff:127.0.0.9", "::ffff:127.7.7.7" },
		{ "::1", "::1", "::1" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint16_t any = 0;
		struct connection c;
		struct server s;

		if (strcmp(rows[i].to, "::1") == 0 &&
		    access("/proc/net/if_inet6", F_OK) < 0)
			continue;
		s = serve(rows[i].server);
		c = connected(s.listening, its_uid(), rows[i].from, &any,
		    rows[i].to, s.port);
		assert_int_equal(uid_of(s.diag, c.accepted), its_uid());
		end(c);
		stop(s);
	}
}

static void
test_root_is_nobody(void **state)
{
	struct connection c;
	struct server s;

	if (geteuid() != 0)
		skip();
	s = serve("127.0.0.1");
	c = come(&s, 0);
	assert_int_equal(uid_of(s.diag, c.accepted), -EPERM);
	end(c);
	c = come(&s, 65534);
	assert_int_equal(uid_of(s.diag, c.accepted), -EPERM);
	end(c);
	stop(s);
}

/* The bytes of such a client are still there to be read. */
static void
test_who_has_closed_has_no_user(void **state)
{
	const struct linger now = { .l_onoff = 1 };
	struct server s = serve("127.0.0.1");
	struct connection c = come(&s, its_uid());
	char byte;

	assert_int_equal(send(c.client, "x", 1, 0), 1);
	close(c.client);
	c.client = -1;
	assert_int_equal(uid_of(s.diag, c.accepted), -ENOTCONN);
	assert_int_equal(recv(c.accepted, &byte, 1, 0), 1);
	end(c);

	c = come(&s, its_uid());
	assert_int_equal(send(c.client, "x", 1, 0), 1);
	assert_int_equal(shutdown(c.client, SHUT_WR), 0);
	assert_int_equal(uid_of(s.diag, c.accepted), -ENOTCONN);
	end(c);

	c = come(&s, its_uid());
	assert_int_equal(send(c.client, "x", 1, 0), 1);
	assert_int_equal(
	    setsockopt(c.client, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(c.client);
	c.client = -1;
	assert_int_equal(uid_of(s.diag, c.accepted), -ENOTCONN);
	end(c);
	stop(s);
}

/* Somebody else connects from the port of a connection that was reset. */
static void
test_the_next_one_with_that_address(void **state)
{
	const struct linger now = { .l_onoff = 1 };
	struct server s = serve("127.0.0.1");
	uint16_t port = 0;
	struct connection first, next;

	first = connected(
	    s.listening, its_uid(), "127.0.0.1", &port, "127.0.0.1", s.port);
	assert_int_equal(
	    setsockopt(first.client, SOL_SOCKET, SO_LINGER, &now, sizeof(now)),
	    0);
	close(first.client);
	first.client = -1;
	next = connected(
	    s.listening, its_uid(), "127.0.0.1", &port, "127.0.0.1", s.port);
	assert_true(uid_of(s.diag, first.accepted) < 0);
	assert_int_equal(uid_of(s.diag, next.accepted), its_uid());
	end(next);
	end(first);
	stop(s);
}

static void
test_what_is_no_connection(void **state)
{
	struct server s = serve("127.0.0.1");
	int pair[2];

	assert_int_equal(uid_of(s.diag, s.listening), -ENOTCONN);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(uid_of(s.diag, pair[0]), -EAFNOSUPPORT);
	close(pair[0]);
	close(pair[1]);
	stop(s);
}

static void
raise_loopback(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
}

/* This connection has the addresses of one in the first namespace. */
static void
look_from_another_namespace(const struct server *s, uint16_t from)
{
	uint16_t port = s->port;
	int fd;
	struct connection c;

	raise_loopback();
	fd = bound("127.0.0.1", &port);
	assert_int_equal(listen(fd, 1), 0);
	c = connected(fd, SOMEBODY, "127.0.0.1", &from, "127.0.0.1", port);
	assert_int_equal(uid_of(s->diag, c.accepted), -ENOENT);
	assert_int_equal(tcp_peer_open(s->listening), -ENOENT);
	assert_true(tcp_peer_open(fd) >= 0);
}

static void
test_another_network_namespace(void **state)
{
	struct connection c;
	struct server s;
	uint16_t from = 0;
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	s = serve("127.0.0.1");
	c = connected(
	    s.listening, SOMEBODY, "127.0.0.1", &from, "127.0.0.1", s.port);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNET) < 0)
			_exit(77);
		look_from_another_namespace(&s, from);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	end(c);
	stop(s);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_root_is_nobody),
		cmocka_unit_test(test_who_has_closed_has_no_user),
		cmocka_unit_test(test_the_next_one_with_that_address),
		cmocka_unit_test(test_what_is_no_connection),
		cmocka_unit_test(test_another_network_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
