/* SPDX-License-Identifier: ISC */
/*
 * siphash: the published vectors of SipHash-2-4-128 (key 00..0f, message
 * 00..n-1).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "siphash.h"
#include "util.h"

static void
test_vectors(void **state)
{
	static const struct {
		size_t n;
		uint64_t out[2];
	} vectors[] = {
		{ 0, { 0xe6a825ba047f81a3, 0x930255c71472f66d } },
		{ 1, { 0x44af996bd8c187da, 0x45fc229b11597634 } },
	};
	const struct siphash_key key = { 0x0706050403020100,
		0x0f0e0d0c0b0a0908 };
	uint8_t message[64];
	uint64_t out[2];

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	for (size_t i = 0; i < nitems(vectors); i++) {
		siphash128(&key, message, vectors[i].n, out);
		assert_true(out[0] == vectors[i].out[0]);
		assert_true(out[1] == vectors[i].out[1]);
	}
}

static void
test_every_length_differs(void **state)
{
	uint8_t zeros[64] = { 0 };
	uint64_t seen[64];

	for (size_t n = 0; n < 64; n++) {
		uint64_t out[2];

		siphash128(siphash_process_key(), zeros, n, out);
		for (size_t i = 0; i < n; i++)
			assert_true(seen[i] != out[0]);
		seen[n] = out[0];
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_every_length_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
