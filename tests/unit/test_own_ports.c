/* SPDX-License-Identifier: ISC */
/* Which ports are guarded, for who shares them and for who has taken them. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_ports.h"

static int routes, shared;

static bool
has(const char *text, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
		.sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(port) };

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		return own_ports_has(routes, (struct sockaddr *)&v4);
	assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
	return own_ports_has(routes, (struct sockaddr *)&v6);
}

static void
set(const uint16_t ports[OWN_PORTS_MAX])
{
	assert_int_equal(own_ports_set(shared, ports), 0);
}

static void
test_nothing_is_guarded_before(void **state)
{
	assert_false(own_ports_guards());
	assert_false(has("127.0.0.1", 1));
	shared = own_ports_share();
	assert_true(shared >= 0);
	assert_false(own_ports_guards());
	assert_int_equal(own_ports_take(shared), 0);
	assert_true(own_ports_guards());
	assert_false(has("127.0.0.1", 1));
}

static void
test_addresses(void **state)
{
	const uint16_t ports[OWN_PORTS_MAX] = { 1, 65535 };

	set(ports);
	assert_true(has("127.0.0.1", 1));
	assert_true(has("127.200.0.9", 65535));
	assert_true(has("0.0.0.0", 1));
	assert_true(has("::", 1));
	assert_true(has("::1", 1));
	assert_true(has("::ffff:127.0.0.1", 1));
	assert_true(has("::ffff:0.0.0.0", 1));
	assert_false(has("127.0.0.1", 2));
	assert_false(has("127.0.0.1", 0));
	assert_false(has("192.0.2.77", 1));
}

/* Those that stay keep their places, so nobody misses one meanwhile. */
static void
test_others_come(void **state)
{
	uint16_t ports[OWN_PORTS_MAX] = { 9, 65535, 9 }, seen[2];

	set(ports);
	assert_int_equal(pread(shared, seen, sizeof(seen), 0), sizeof(seen));
	assert_int_equal(seen[1], 65535);
	assert_true(has("127.0.0.1", 9) && has("127.0.0.1", 65535));
	assert_false(has("127.0.0.1", 1));
	for (uint16_t i = 0; i < OWN_PORTS_MAX; i++)
		ports[i] = (uint16_t)(i + 100);
	set(ports);
	for (uint16_t i = 0; i < OWN_PORTS_MAX; i++)
		assert_true(has("127.0.0.1", (uint16_t)(i + 100)));
	assert_false(has("127.0.0.1", 9));
	memset(ports, 0, sizeof(ports));
	set(ports);
	assert_false(has("127.0.0.1", 100));
	assert_int_equal(ftruncate(shared, 0), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_guarded_before),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_others_come),
	};

	routes = own_ports_open();
	return routes < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
