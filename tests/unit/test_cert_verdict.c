/* SPDX-License-Identifier: ISC */
/*
 * verdict: a seal is good for exactly what it was made over, under its secret.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cert_verdict.h"

static const uint8_t secret[CONTROL_SECRET_BYTES] =
    "a secret of thirty-two bytes...";

static struct control_cert_verdict
example(void)
{
	struct control_cert_verdict v = { .listener = 1, .made_ms = 123456 };

	memset(v.digest, 0x5a, sizeof(v.digest));
	strcpy(v.subject, "CN=bob");
	cert_verdict_seal(&v, secret);
	return v;
}

static void
test_a_seal_holds(void **state)
{
	struct control_cert_verdict v = example();

	assert_true(cert_verdict_is_sealed(&v, secret));
	/* What lies behind the end of the subject does not travel. */
	memset(v.subject + sizeof("CN=bob"), 'x',
	    sizeof(v.subject) - sizeof("CN=bob"));
	assert_true(cert_verdict_is_sealed(&v, secret));
}

static void
test_every_field_is_sealed(void **state)
{
	struct control_cert_verdict v = example();

	v.listener++;
	assert_false(cert_verdict_is_sealed(&v, secret));
	v = example();
	v.made_ms++;
	assert_false(cert_verdict_is_sealed(&v, secret));
	for (size_t i = 0; i < sizeof(v.digest); i++) {
		v = example();
		v.digest[i] ^= 1;
		assert_false(cert_verdict_is_sealed(&v, secret));
	}
	v = example();
	strcpy(v.subject, "CN=bo");
	assert_false(cert_verdict_is_sealed(&v, secret));
	for (size_t i = 0; i < sizeof(v.seal); i++) {
		v = example();
		v.seal[i] ^= 0x80;
		assert_false(cert_verdict_is_sealed(&v, secret));
	}
}

static void
test_another_secret(void **state)
{
	struct control_cert_verdict v = example();
	uint8_t other[CONTROL_SECRET_BYTES];

	memcpy(other, secret, sizeof(other));
	other[31] ^= 1;
	assert_false(cert_verdict_is_sealed(&v, other));
	memset(v.seal, 0, sizeof(v.seal));
	assert_false(cert_verdict_is_sealed(&v, secret));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_seal_holds),
		cmocka_unit_test(test_every_field_is_sealed),
		cmocka_unit_test(test_another_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
