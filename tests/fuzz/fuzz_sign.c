/* SPDX-License-Identifier: ISC */
/*
 * sign: the key process signs what a TLS server signs, told apart here by
 * other means, and nothing else. The input is the front-end's message.
 */
#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "keys.h"
#include "util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define LABEL "TLS 1.3, server CertificateVerify"

static bool
is_tls_13(const struct control_sign *r)
{
	char head[64 + sizeof(LABEL)];

	memset(head, ' ', 64);
	memcpy(head + 64, LABEL, sizeof(LABEL));
	return r->len >= sizeof(head) + 32 && r->len <= sizeof(head) + 48 &&
	       memcmp(r->tbs, head, sizeof(head)) == 0;
}

/* Two randoms, a named curve, a point of the length it says. */
static bool
is_tls_12(const struct control_sign *r)
{
	return r->len > 68 && r->tbs[64] == 3 && r->tbs[67] == r->len - 68;
}

static void
check_signature(
    EVP_PKEY *key, struct control_sign *r, const struct control_signed *answer)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();

	assert(r->scheme == 0x0807);
	assert(EVP_DigestVerifyInit(md, NULL, NULL, NULL, key) == 1);
	assert(EVP_DigestVerify(
		   md, answer->signature, answer->len, r->tbs, r->len) == 1);
	EVP_MD_CTX_free(md);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static EVP_PKEY *key;
	struct control_signed answer;
	struct control_sign r;

	if (key == NULL)
		key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	memset(&r, 0xa5, sizeof(r));
	if (control_get(data, len, KEYS_SIGN, &r) < 0)
		return 0;
	if (sign_check(&r) < 0)
		return 0;
	assert(is_tls_13(&r) || is_tls_12(&r));
	if (sign_make(key, &r, &answer) == 0)
		check_signature(key, &r, &answer);
	else
		assert(answer.len == 0);
	return 0;
}
