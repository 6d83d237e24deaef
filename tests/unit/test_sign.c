/* SPDX-License-Identifier: ISC */
/*
 * sign: the key process signs the handshake of a TLS server, and nothing that
 * only looks a little like it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "keys.h"
#include "util.h"

#define LABEL "TLS 1.3, server CertificateVerify"

static struct control_sign
certificate_verify(uint32_t scheme, size_t hash_len)
{
	struct control_sign r = { .scheme = scheme };

	memset(r.tbs, ' ', 64);
	memcpy(r.tbs + 64, LABEL, sizeof(LABEL));
	memset(r.tbs + 64 + sizeof(LABEL), 0xab, hash_len);
	r.len = (uint32_t)(64 + sizeof(LABEL) + hash_len);
	return r;
}

static struct control_sign
key_exchange(uint32_t scheme, uint8_t point_len)
{
	struct control_sign r = { .scheme = scheme };

	memset(r.tbs, 0x5a, sizeof(r.tbs));
	r.tbs[64] = 3;
	r.tbs[65] = 0;
	r.tbs[66] = 29;
	r.tbs[67] = point_len;
	r.len = 68u + point_len;
	return r;
}

static void
test_what_a_server_signs(void **state)
{
	struct control_sign r = certificate_verify(0x0804, 32);

	assert_int_equal(sign_check(&r), 0);
	r = certificate_verify(0x0403, 48);
	assert_int_equal(sign_check(&r), 0);
	r = key_exchange(0x0401, 32);
	assert_int_equal(sign_check(&r), 0);
	r = key_exchange(0x0603, 133);
	assert_int_equal(sign_check(&r), 0);
}

static void
test_every_byte_of_the_context_counts(void **state)
{
	for (size_t i = 0; i < 64 + sizeof(LABEL); i++) {
		struct control_sign r = certificate_verify(0x0804, 32);

		r.tbs[i] ^= 1;
		assert_int_equal(sign_check(&r), -EPERM);
	}
}

static void
test_what_it_is_not(void **state)
{
	struct control_sign r = certificate_verify(0x0401, 32);

	/* TLS 1.3 has no PKCS #1 v1.5 (RFC 8446 section 4.2.3). */
	assert_int_equal(sign_check(&r), -EPERM);
	r = certificate_verify(0x0804, 31);
	assert_int_equal(sign_check(&r), -EPERM);
	r = certificate_verify(0x0804, 49);
	assert_int_equal(sign_check(&r), -EPERM);
	r = certificate_verify(0x0201, 32); /* SHA-1 */
	assert_int_equal(sign_check(&r), -EPERM);
	r = key_exchange(0x0401, 32);
	r.tbs[64] = 1; /* explicit primes */
	assert_int_equal(sign_check(&r), -EPERM);
	r = key_exchange(0x0401, 32);
	r.len--;
	assert_int_equal(sign_check(&r), -EPERM);
	r = key_exchange(0x0401, 32);
	r.len++;
	assert_int_equal(sign_check(&r), -EPERM);
	r.len = 0;
	assert_int_equal(sign_check(&r), -EPERM);
	r.len = 64;
	assert_int_equal(sign_check(&r), -EPERM);
	r = key_exchange(0x0401, 32);
	r.len = sizeof(r.tbs) + 1;
	assert_int_equal(sign_check(&r), -EPERM);
	/* The client's context, for a certificate of its own. */
	r = certificate_verify(0x0804, 32);
	memcpy(r.tbs + 64, "TLS 1.3, client CertificateVerify", 33);
	assert_int_equal(sign_check(&r), -EPERM);
}

static void
check_signature(EVP_PKEY *key, uint32_t scheme, const char *digest, int padding)
{
	struct control_sign r = certificate_verify(scheme, 32);
	struct control_signed answer;
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	EVP_PKEY_CTX *ctx;

	assert_int_equal(sign_make(key, &r, &answer), 0);
	assert_int_equal(
	    EVP_DigestVerifyInit_ex(md, &ctx, digest, NULL, NULL, key, NULL),
	    1);
	if (padding != 0)
		assert_true(EVP_PKEY_CTX_set_rsa_padding(ctx, padding) > 0);
	assert_int_equal(
	    EVP_DigestVerify(md, answer.signature, answer.len, r.tbs, r.len),
	    1);
	EVP_MD_CTX_free(md);
}

static void
test_signatures(void **state)
{
	EVP_PKEY *rsa = EVP_RSA_gen(2048), *ec = EVP_EC_gen("P-256");
	EVP_PKEY *ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	struct control_sign r = certificate_verify(0x0403, 32);
	struct control_signed answer;

	check_signature(rsa, 0x0401, "SHA256", RSA_PKCS1_PADDING);
	check_signature(rsa, 0x0805, "SHA384", RSA_PKCS1_PSS_PADDING);
	check_signature(ec, 0x0403, "SHA256", 0);
	check_signature(ec, 0x0603, "SHA512", 0);
	check_signature(ed, 0x0807, NULL, 0);
	/* A scheme of another kind of key. */
	assert_int_equal(sign_make(rsa, &r, &answer), -EPERM);
	assert_int_equal(answer.len, 0);
	r.scheme = 0x0804;
	assert_int_equal(sign_make(ed, &r, &answer), -EPERM);
	EVP_PKEY_free(rsa);
	EVP_PKEY_free(ec);
	EVP_PKEY_free(ed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_server_signs),
		cmocka_unit_test(test_every_byte_of_the_context_counts),
		cmocka_unit_test(test_what_it_is_not),
		cmocka_unit_test(test_signatures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
