/* SPDX-License-Identifier: ISC */
/*
 * Checks and signs TLS handshakes, in the key process.
 */
#include "base.h"
#include "keys.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

/* client random and server random, RFC 5246 section 7.4.3 */
#define RANDOMS_BYTES  64
#define NAMED_CURVE    3
#define CURVE_HEADER   4 /* curve type, curve (2 bytes), length of the point */
#define PADDING_13     64
#define HASH_MIN_BYTES 32
#define HASH_MAX_BYTES 48

/* The SignatureSchemes of TLS: which key, digest and padding each needs. */
static const struct scheme {
	uint32_t number;
	const char *key;
	const char *digest; /* NULL: the algorithm has its own */
	int padding;	    /* RSA only */
	bool only_12;
} schemes[] = {
	{ 0x0401, "RSA", "SHA256", RSA_PKCS1_PADDING, true },
	{ 0x0501, "RSA", "SHA384", RSA_PKCS1_PADDING, true },
	{ 0x0601, "RSA", "SHA512", RSA_PKCS1_PADDING, true },
	{ 0x0804, "RSA", "SHA256", RSA_PKCS1_PSS_PADDING, false },
	{ 0x0805, "RSA", "SHA384", RSA_PKCS1_PSS_PADDING, false },
	{ 0x0806, "RSA", "SHA512", RSA_PKCS1_PSS_PADDING, false },
	{ 0x0403, "EC", "SHA256", 0, false },
	{ 0x0503, "EC", "SHA384", 0, false },
	{ 0x0603, "EC", "SHA512", 0, false },
	{ 0x0807, "ED25519", NULL, 0, false },
};

static const struct scheme *
find_scheme(uint32_t number)
{
	for (size_t i = 0; i < nitems(schemes); i++)
		if (schemes[i].number == number)
			return &schemes[i];
	return NULL;
}

static bool
is_certificate_verify(const uint8_t *p, size_t len)
{
	static const char label[] = "TLS 1.3, server CertificateVerify";
	/* sizeof counts the NUL, which ends the label */
	size_t fixed = PADDING_13 + sizeof(label);

	if (len < fixed + HASH_MIN_BYTES || len > fixed + HASH_MAX_BYTES)
		return false;
	for (size_t i = 0; i < PADDING_13; i++)
		if (p[i] != ' ')
			return false;
	return memcmp(p + PADDING_13, label, sizeof(label)) == 0;
}

static bool
is_server_key_exchange(const uint8_t *p, size_t len)
{
	size_t fixed = RANDOMS_BYTES + CURVE_HEADER;

	return len > fixed && p[RANDOMS_BYTES] == NAMED_CURVE &&
	       len == fixed + p[RANDOMS_BYTES + 3];
}

int
sign_check(const struct control_sign *r)
{
	const struct scheme *s = find_scheme(r->scheme);

	if (s == NULL || r->len > sizeof(r->tbs))
		return -EPERM;
	if (is_certificate_verify(r->tbs, r->len))
		return s->only_12 ? -EPERM : 0;
	return is_server_key_exchange(r->tbs, r->len) ? 0 : -EPERM;
}

static int
start(EVP_MD_CTX *md, EVP_PKEY *key, const struct scheme *s)
{
	EVP_PKEY_CTX *ctx = NULL;

	if (EVP_DigestSignInit_ex(md, &ctx, s->digest, NULL, NULL, key, NULL) !=
	    1)
		return -EIO;
	if (s->padding == 0)
		return 0;
	if (EVP_PKEY_CTX_set_rsa_padding(ctx, s->padding) <= 0)
		return -EIO;
	if (s->padding == RSA_PKCS1_PSS_PADDING &&
	    EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST) <= 0)
		return -EIO;
	return 0;
}

int
sign_make(
    EVP_PKEY *key, const struct control_sign *r, struct control_signed *answer)
{
	const struct scheme *s = find_scheme(r->scheme);
	size_t len = sizeof(answer->signature);
	EVP_MD_CTX *md;
	int err;

	answer->len = 0;
	if (s == NULL || !EVP_PKEY_is_a(key, s->key))
		return -EPERM;
	md = EVP_MD_CTX_new();
	if (md == NULL)
		return -ENOMEM;
	err = start(md, key, s);
	if (err == 0 &&
	    EVP_DigestSign(md, answer->signature, &len, r->tbs, r->len) != 1)
		err = -EIO;
	if (err == 0)
		answer->len = (uint32_t)len;
	EVP_MD_CTX_free(md);
	ERR_clear_error();
	return err;
}
