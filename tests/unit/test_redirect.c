/* SPDX-License-Identifier: ISC */
/*
 * redirect: the kernel's part of the way for programs that know no proxy, in a
 * network namespace of its own. Skipped where no such namespace, or no
 * nf_tables, can be had.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "loopback.h"
#include "redirect.h"
#include "userns.h"

#define SKIPPED		 77
#define SO_ORIGINAL_DST_ 80 /* linux/netfilter_ipv4.h */

static struct sockaddr_in
at(const char *address, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
	return in;
}

static int
bound(int type, const char *address, uint16_t port)
{
	const struct sockaddr_in in = at(address, port);
	int fd = socket(AF_INET, type, 0);

	assert_int_equal(bind(fd, (const void *)&in, sizeof(in)), 0);
	if (type == SOCK_STREAM && port != 0)
		assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* Returns 0 or the errno. */
static int
goes(int fd, const char *address, uint16_t port)
{
	const struct sockaddr_in in = at(address, port);

	return connect(fd, (const void *)&in, sizeof(in)) == 0 ? 0 : errno;
}

/* Accepts, and tells what was meant. */
static void
is_meant(int listener, const char *address, uint16_t port)
{
	struct sockaddr_in meant = { 0 }, wanted = at(address, port);
	socklen_t len = sizeof(meant);
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

	assert_true(fd >= 0);
	assert_int_equal(
	    getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST_, &meant, &len), 0);
	assert_int_equal(meant.sin_addr.s_addr, wanted.sin_addr.s_addr);
	assert_int_equal(meant.sin_port, wanted.sin_port);
	close(fd);
}

static void
check_ways(void)
{
	int listener = bound(SOCK_STREAM, "198.18.5.1", REDIRECT_PORT);
	int other = bound(SOCK_STREAM, "198.18.6.1", REDIRECT_PORT);
	int own = bound(SOCK_STREAM, "127.0.0.1", 5432);
	int everywhere = bound(SOCK_STREAM, "0.0.0.0", 5433);

	/* A name, on any port; whoever connects. */
	assert_int_equal(
	    goes(socket(AF_INET, SOCK_STREAM, 0), "198.18.5.7", 22), 0);
	is_meant(listener, "198.18.5.7", 22);
	assert_int_equal(
	    goes(bound(SOCK_STREAM, "198.18.5.1", 0), "198.18.6.9", 80), 0);
	is_meant(other, "198.18.6.9", 80);
	/* An address, from a block; also a port on which somebody listens. */
	assert_int_equal(
	    goes(bound(SOCK_STREAM, "198.18.5.1", 0), "93.184.216.34", 5433),
	    0);
	is_meant(listener, "93.184.216.34", 5433);
	/* From nobody's block there is no listener. */
	assert_int_equal(
	    goes(socket(AF_INET, SOCK_STREAM, 0), "93.184.216.34", 443),
	    ECONNREFUSED);
	/* A source of the loopback leads nowhere else, and is told at once. */
	assert_int_equal(
	    goes(bound(SOCK_STREAM, "127.0.0.1", 0), "93.184.216.34", 443),
	    EACCES);
	assert_int_equal(
	    goes(bound(SOCK_STREAM, "127.0.0.1", 0), "198.18.5.7", 22),
	    ECONNREFUSED);
	/* The listener itself, and what is its own. */
	assert_int_equal(
	    goes(socket(AF_INET, SOCK_STREAM, 0), "198.18.5.1", REDIRECT_PORT),
	    0);
	is_meant(listener, "198.18.5.1", REDIRECT_PORT);
	assert_int_equal(
	    goes(socket(AF_INET, SOCK_STREAM, 0), "127.0.0.1", 5432), 0);
	assert_true(accept(own, NULL, NULL) >= 0);
	assert_int_equal(
	    goes(socket(AF_INET, SOCK_STREAM, 0), "127.0.0.9", 5433), 0);
	assert_true(accept(everywhere, NULL, NULL) >= 0);
	/* What is not TCP is as it was. */
	assert_int_equal(
	    goes(socket(AF_INET, SOCK_DGRAM, 0), "93.184.216.34", 53), EACCES);
	assert_int_equal(
	    goes(bound(SOCK_DGRAM, "198.18.5.1", 0), "93.184.216.34", 53),
	    EACCES);
}

static void
check_datagrams(void)
{
	int resolver = bound(SOCK_DGRAM, "198.18.5.1", 53);
	int asker = socket(AF_INET, SOCK_DGRAM, 0);
	char byte;

	assert_int_equal(goes(asker, "198.18.5.1", 53), 0);
	assert_int_equal(send(asker, "x", 1, 0), 1);
	assert_int_equal(recv(resolver, &byte, 1, 0), 1);
}

static int
run(void)
{
	const char *step;
	int err;

	if (userns_enter_new(NULL, &step) < 0 || unshare(CLONE_NEWNET) < 0 ||
	    loopback_prepare(&step) < 0 || loopback_add_names() < 0)
		return SKIPPED;
	err = redirect_prepare();
	if (err == -EOPNOTSUPP || err == -EPROTONOSUPPORT || err == -ENOENT)
		return SKIPPED;
	assert_int_equal(err, 0);
	check_ways();
	check_datagrams();
	return 0;
}

static void
test_ways(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(redirect_is_possible(redirect_try(-1), 10000), 1);
}

/* A kernel that has not answered yet has not said no. */
static void
test_no_answer_yet(void **state)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(redirect_is_possible(ends[0], 0), -ETIMEDOUT);
	assert_int_equal(pipe(ends), 0);
	close(ends[1]);
	assert_int_equal(redirect_is_possible(ends[0], 10000), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_no_answer_yet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
