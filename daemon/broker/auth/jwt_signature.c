/* SPDX-License-Identifier: ISC */
/*
 * The signature of a bearer token: finds the algorithm and the key that may
 * verify it, and verifies it.
 */
#include "jwt.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <string.h>

#include "conf_value.h"
#include "jwks.h"

static int
check_secret(const struct jwt_rules *r, struct slice text,
    struct slice signature, char *why)
{
	unsigned char expected[EVP_MAX_MD_SIZE];
	size_t len = 0;

	if (r->secret == NULL)
		return conf_refuse(
		    why, "alg `" JWT_HS256 "` needs secret-file");
	if (EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, r->secret,
		r->secret_len, (const unsigned char *)text.ptr, text.len,
		expected, sizeof(expected), &len) == NULL ||
	    signature.len != len ||
	    CRYPTO_memcmp(signature.ptr, expected, len) != 0)
		return conf_refuse(why, "the signature is wrong");
	return 0;
}

/* A token has the two numbers side by side. Returns them in OpenSSL's encoding
 * and memory, or NULL. */
static unsigned char *
encode_numbers(struct slice signature, size_t width, size_t *len)
{
	const unsigned char *raw = (const unsigned char *)signature.ptr;
	ECDSA_SIG *numbers = ECDSA_SIG_new();
	unsigned char *der = NULL;
	int n;

	ECDSA_SIG_set0(numbers, BN_bin2bn(raw, (int)width, NULL),
	    BN_bin2bn(raw + width, (int)width, NULL));
	n = i2d_ECDSA_SIG(numbers, &der);
	ECDSA_SIG_free(numbers);
	*len = n > 0 ? (size_t)n : 0;
	return n > 0 ? der : NULL;
}

/* RFC 7518 section 3.5: the salt is as long as the digest. */
static bool
pad_pss(EVP_PKEY_CTX *ctx)
{
	return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
	       EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST) ==
		   1;
}

static bool
is_signed(const struct jwk_algorithm *a, EVP_PKEY *key, struct slice text,
    const unsigned char *signature, size_t len)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	EVP_PKEY_CTX *ctx = NULL;
	bool good;

	good = EVP_DigestVerifyInit_ex(
		   md, &ctx, a->digest, NULL, NULL, key, NULL) == 1 &&
	       (!a->pss || pad_pss(ctx)) &&
	       EVP_DigestVerify(md, signature, len,
		   (const unsigned char *)text.ptr, text.len) == 1;
	EVP_MD_CTX_free(md);
	ERR_clear_error();
	return good;
}

static bool
is_signed_by(const struct jwk_algorithm *a, EVP_PKEY *key, struct slice text,
    struct slice signature)
{
	const unsigned char *bytes = (const unsigned char *)signature.ptr;
	unsigned char *der = NULL;
	size_t len = signature.len;
	bool good;

	if (EVP_PKEY_is_a(key, "EC"))
		bytes = der = encode_numbers(signature, a->width, &len);
	good = bytes != NULL && is_signed(a, key, text, bytes, len);
	OPENSSL_free(der);
	return good;
}

/* Returns the key of that name if it may verify the algorithm, or NULL. */
static const struct jwk *
find_key(const struct jwt_rules *r, const struct jwk_algorithm *a,
    const char *kid, char *why)
{
	const struct jwk *k = jwks_find(r->keys, kid);

	if (kid[0] == '\0')
		conf_refuse(why, "its header has no kid");
	else if (k == NULL)
		conf_refuse(why, "no key has the kid `%.100s`", kid);
	else if (k->key == NULL)
		conf_refuse(
		    why, "the key `%.100s` is not used: %.120s", kid, k->fault);
	else if (!(k->algorithms & 1u << (a - jwk_algorithms)))
		conf_refuse(
		    why, "alg `%s` is not for the key `%.100s`", a->name, kid);
	else
		return k;
	return NULL;
}

static int
check_public(const struct jwt_rules *r, const struct jwk_algorithm *a,
    const char *kid, struct slice text, struct slice signature, char *why)
{
	const struct jwk *k;

	if (r->keys == NULL)
		return conf_refuse(why, "alg `%s` needs jwks-file", a->name);
	k = find_key(r, a, kid, why);
	if (k == NULL)
		return -EINVAL;
	if (a->width != 0 && signature.len != 2 * a->width)
		return conf_refuse(why,
		    "its signature has %zu bytes; one of %s has %zu",
		    signature.len, a->name, 2 * a->width);
	return is_signed_by(a, k->key, text, signature)
		   ? 0
		   : conf_refuse(why, "the signature is wrong");
}

int
jwt_check_signature(const struct jwt_rules *r,
    const struct control_token_header *named, struct slice text,
    struct slice signature, char *why)
{
	const struct jwk_algorithm *a = jwk_find_algorithm(named->alg);

	if (named->alg[0] == '\0')
		return conf_refuse(why, "its header has no alg");
	if (strcmp(named->alg, JWT_HS256) == 0)
		return check_secret(r, text, signature, why);
	if (a != NULL)
		return check_public(r, a, named->kid, text, signature, why);
	if (strcmp(named->alg, "none") == 0)
		return conf_refuse(why, "alg `none`: it is not signed");
	return conf_refuse(why, "alg `%s` is not known", named->alg);
}
