/* SPDX-License-Identifier: ISC */
/*
 * jwks: keys of an issuer, good and bad, and tokens that are signed with them.
 * The keys are made here.
 */
#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conf_value.h"
#include "jwks.h"
#include "jwt.h"
#include "log.h"
#include "token_text.h"

#define NOW	    1000000
#define CLAIMS	    "{\"exp\":1000000,\"sub\":\"me\"}"
#define TOKEN_MAX   4096
#define MEMBERS_MAX 1200
#define SET_MAX	    65536

static EVP_PKEY *rsa, *small, *p256, *p384, *ed25519;

/* The public half of each, as members of a JWK. */
static char rsa_members[MEMBERS_MAX], small_members[MEMBERS_MAX];
static char p256_members[MEMBERS_MAX], p384_members[MEMBERS_MAX];
static char ed25519_members[MEMBERS_MAX];

static struct jwt_answer answer;

/* --- keys ---------------------------------------------------------------- */

static void
append_number(char *text, EVP_PKEY *key, const char *name, int width)
{
	unsigned char bytes[512];
	BIGNUM *n = NULL;

	assert_int_equal(EVP_PKEY_get_bn_param(key, name, &n), 1);
	width = width > 0 ? width : BN_num_bytes(n);
	assert_int_equal(BN_bn2binpad(n, bytes, width), width);
	append_part(text, bytes, (size_t)width);
	BN_free(n);
}

static void
write_rsa(char *text, EVP_PKEY *key)
{
	strcpy(text, "\"kty\":\"RSA\",\"n\":\"");
	append_number(text, key, OSSL_PKEY_PARAM_RSA_N, 0);
	strcat(text, "\",\"e\":\"AQAB\"");
}

static void
write_ec(char *text, EVP_PKEY *key, const char *crv, int width)
{
	sprintf(text, "\"kty\":\"EC\",\"crv\":\"%s\",\"x\":\"", crv);
	append_number(text, key, OSSL_PKEY_PARAM_EC_PUB_X, width);
	strcat(text, "\",\"y\":\"");
	append_number(text, key, OSSL_PKEY_PARAM_EC_PUB_Y, width);
	strcat(text, "\"");
}

static void
write_ed25519(char *text, EVP_PKEY *key)
{
	unsigned char raw[32];
	size_t n = sizeof(raw);

	assert_int_equal(EVP_PKEY_get_raw_public_key(key, raw, &n), 1);
	strcpy(text, "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"");
	append_part(text, raw, n);
	strcat(text, "\"");
}

static int
make_keys(void **state)
{
	log_set_level(LOG_LEVEL_NOTHING);
	rsa = EVP_RSA_gen(2048);
	small = EVP_RSA_gen(2040);
	p256 = EVP_EC_gen("P-256");
	p384 = EVP_EC_gen("P-384");
	ed25519 = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	write_rsa(rsa_members, rsa);
	write_rsa(small_members, small);
	write_ec(p256_members, p256, "P-256", 32);
	write_ec(p384_members, p384, "P-384", 48);
	write_ed25519(ed25519_members, ed25519);
	return 0;
}

static int
free_keys(void **state)
{
	EVP_PKEY *all[] = { rsa, small, p256, p384, ed25519 };

	for (size_t i = 0; i < nitems(all); i++)
		EVP_PKEY_free(all[i]);
	return 0;
}

/* --- sets ---------------------------------------------------------------- */

static int
parse(struct jwks *keys, const char *text, char *why)
{
	why[0] = '\0';
	return jwks_parse(keys, "keys.json", text, strlen(text), why);
}

#define K64 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define K255                                                                   \
	K64 K64 K64                                                            \
	    "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"

static const struct key_row {
	const char *more;    /* members before the key's own */
	const char *members; /* of the key */
	const char *fault;   /* NULL: it can be used */
} key_rows[] = {
	{ "\"kid\":\"a\",", rsa_members, NULL },
	{ "\"kid\":\"a\",\"use\":\"sig\",\"alg\":\"RS256\",", rsa_members,
	    NULL },
	{ "\"kid\":\"a\",\"alg\":\"PS256\",\"key_ops\":[\"verify\"],",
	    rsa_members, NULL },
	{ "\"kid\":\"a\",", p256_members, NULL },
	{ "\"kid\":\"a\",\"alg\":\"ES256\",\"x5t\":\"AA\",", p256_members,
	    NULL },
	{ "\"kid\":\"a\",\"alg\":\"ES384\",", p384_members, NULL },
	{ "\"kid\":\"a\",\"alg\":\"EdDSA\",", ed25519_members, NULL },

	{ "\"kid\":\"" K255 "\",", rsa_members, NULL },

	{ "\"kid\":\"" K255 "k\",", rsa_members,
	    "its kid is not a text of 1 to 255 bytes" },
	{ "", rsa_members, "its kid is not a text of 1 to 255 bytes" },
	{ "\"kid\":\"\",", rsa_members,
	    "its kid is not a text of 1 to 255 bytes" },
	{ "\"kid\":7,", rsa_members,
	    "its kid is not a text of 1 to 255 bytes" },
	{ "\"kid\":\"a\\u0000b\",", rsa_members,
	    "its kid is not a text of 1 to 255 bytes" },
	{ "\"kid\":\"a\",\"use\":\"enc\",", rsa_members, "its use is not sig" },
	{ "\"kid\":\"a\",\"key_ops\":[\"sign\"],", rsa_members,
	    "its key_ops do not contain verify" },
	{ "\"kid\":\"a\",\"key_ops\":\"verify\",", rsa_members,
	    "its key_ops do not contain verify" },
	{ "\"kid\":\"a\",\"d\":\"AQAB\",", rsa_members,
	    "it is not a public key" },
	{ "\"kid\":\"a\",", "\"kty\":\"oct\",\"k\":\"c2VjcmV0\"",
	    "it is not a public key" },
	{ "\"kid\":\"a\",\"alg\":\"HS256\",", rsa_members,
	    "its alg is not one for its kty and crv" },
	{ "\"kid\":\"a\",\"alg\":\"ES256\",", rsa_members,
	    "its alg is not one for its kty and crv" },
	{ "\"kid\":\"a\",\"alg\":\"ES256\",", p384_members,
	    "its alg is not one for its kty and crv" },
	{ "\"kid\":\"a\",\"alg\":256,", rsa_members,
	    "its alg is not one for its kty and crv" },
	{ "\"kid\":\"a\"", "", "its kty and crv are not RSA," },
	{ "\"kid\":\"a\",", "\"kty\":\"EC\"", "its kty and crv are not RSA," },
	{ "\"kid\":\"a\",", "\"kty\":\"EC\",\"crv\":\"P-521\"",
	    "its kty and crv are not RSA," },
	{ "\"kid\":\"a\",", "\"kty\":\"OKP\",\"crv\":\"Ed448\"",
	    "its kty and crv are not RSA," },
	{ "\"kid\":\"a\",", small_members,
	    "its modulus n has 2040 bits, not 2048 to 4096" },
	{ "\"kid\":\"a\",", "\"kty\":\"RSA\",\"e\":\"AQAB\"",
	    "its n or e is not base64url" },
	{ "\"kid\":\"a\",", "\"kty\":\"RSA\",\"n\":\"\",\"e\":\"AQAB\"",
	    "its n or e is not base64url" },
	{ "\"kid\":\"a\",", "\"kty\":\"RSA\",\"n\":\"AQ==\",\"e\":\"AQAB\"",
	    "its n or e is not base64url" },
	{ "\"kid\":\"a\",", "\"kty\":\"RSA\",\"n\":\"A+/B\",\"e\":\"AQAB\"",
	    "its n or e is not base64url" },
	{ "\"kid\":\"a\",", "\"kty\":\"RSA\",\"n\":[1],\"e\":\"AQAB\"",
	    "its n or e is not base64url" },
	{ "\"kid\":\"a\",",
	    "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQAB\",\"y\":\"AQAB\"",
	    "its x or y is not 32 bytes in base64url" },
	{ "\"kid\":\"a\",",
	    "\"kty\":\"EC\",\"crv\":\"P-256\","
	    "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
	    "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"",
	    "its numbers do not make a key of kty EC" },
	{ "\"kid\":\"a\",", "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AA\"",
	    "its x is not 32 bytes in base64url" },
};

/* Beside a good key, so that the set is one. */
static void
test_keys(void **state)
{
	char text[SET_MAX], why[CONF_WHY_MAX];

	for (size_t i = 0; i < nitems(key_rows); i++) {
		const struct key_row *r = &key_rows[i];
		struct jwks keys;

		sprintf(text, "{\"keys\":[{%s%s},{\"kid\":\"good\",%s}]}",
		    r->more, r->members, p256_members);
		if (parse(&keys, text, why) < 0 || keys.count != 2)
			fail_msg("row %zu: %s", i, why);
		if (r->fault == NULL && keys.items[0].fault != NULL)
			fail_msg("row %zu: %s", i, keys.items[0].fault);
		if (r->fault != NULL &&
		    (keys.items[0].key != NULL ||
			strstr(keys.items[0].fault, r->fault) == NULL))
			fail_msg(
			    "row %zu is not refused with `%s`", i, r->fault);
		assert_non_null(keys.items[1].key);
		jwks_clear(&keys);
	}
}

/* A modulus, and what is wrong with it or with the exponent beside it. */
static void
check_rsa(const uint8_t *n, size_t len, const char *e, const char *fault)
{
	static char text[SET_MAX];
	char why[CONF_WHY_MAX];
	struct jwks keys;

	strcpy(text, "{\"keys\":[{\"kid\":\"a\",\"kty\":\"RSA\",\"n\":\"");
	append_part(text, n, len);
	sprintf(text + strlen(text), "\",\"e\":\"%s\"}]}", e);
	assert_int_equal(parse(&keys, text, why), -EINVAL);
	if (strstr(why, fault) == NULL)
		fail_msg("%s", why);
	jwks_clear(&keys);
}

static void
test_rsa_numbers(void **state)
{
	uint8_t n[513];

	memset(n, 0xff, sizeof(n));
	check_rsa(n, 513, "AQAB", "has 4104 bits, not 2048 to 4096");
	for (const char *const *e = (const char *const[]){ "AQ", "AA", "AAA",
		 "Ag", "AQAA", "AQAAAAE", NULL };
	     *e != NULL; e++)
		check_rsa(n, 256, *e, "its exponent e is not an odd number");
	/* 2^2048 - 1 has small factors. */
	check_rsa(n, 256, "AQAB", "its numbers do not make a key of kty RSA");
}

static const struct set_row {
	const char *text, *why;
} set_rows[] = {
	{ "", "is not JSON" },
	{ "x", "is not JSON" },
	{ "{\"keys\":[]} x", "is not JSON" },
	{ "{\"keys\":[],\"keys\":[]}", "is not JSON" },
	{ "[]", "is not a JSON Web Key Set" },
	{ "{}", "is not a JSON Web Key Set" },
	{ "null", "is not a JSON Web Key Set" },
	{ "{\"keys\":{}}", "is not a JSON Web Key Set" },
	{ "{\"keys\":[]}", "`keys` is empty" },
	{ "{\"keys\":[1]}", "none of its 1 keys can be used; the first: " },
	{ "{\"keys\":[{},null]}",
	    "none of its 2 keys can be used; the first: its kid is not" },
};

static void
test_sets(void **state)
{
	char why[CONF_WHY_MAX];
	struct jwks keys;

	for (size_t i = 0; i < nitems(set_rows); i++) {
		assert_int_equal(parse(&keys, set_rows[i].text, why), -EINVAL);
		if (strstr(why, set_rows[i].why) == NULL)
			fail_msg("row %zu: %s", i, why);
		jwks_clear(&keys);
	}
}

/* Two that can be used may not have one name; else the name means the one that
 * can. */
static void
test_twins(void **state)
{
	char text[SET_MAX], why[CONF_WHY_MAX];
	struct jwks keys;

	sprintf(text, "{\"keys\":[{\"kid\":\"a\",%s},{\"kid\":\"a\",%s}]}",
	    p256_members, p384_members);
	assert_int_equal(parse(&keys, text, why), -EINVAL);
	assert_string_equal(why, "keys 1 and 2 have the same kid `a`");
	jwks_clear(&keys);

	sprintf(text,
	    "{\"keys\":[{\"kid\":\"a\",\"use\":\"enc\",%s},"
	    "{\"kid\":\"a\",%s},{\"kid\":\"a\",\"use\":\"enc\",%s}]}",
	    p256_members, p384_members, p256_members);
	assert_int_equal(parse(&keys, text, why), 0);
	assert_ptr_equal(jwks_find(&keys, "a"), &keys.items[1]);
	assert_null(jwks_find(&keys, "b"));
	assert_null(jwks_find(&keys, ""));
	jwks_clear(&keys);
}

static void
test_limit_of_keys(void **state)
{
	char text[SET_MAX], why[CONF_WHY_MAX];
	struct jwks keys;

	for (int n = JWKS_KEYS_MAX; n <= JWKS_KEYS_MAX + 1; n++) {
		strcpy(text, "{\"keys\":[");
		for (int i = 0; i < n; i++)
			sprintf(text + strlen(text), "%s{\"kid\":\"%d\",%s}",
			    i > 0 ? "," : "", i, p256_members);
		strcat(text, "]}");
		assert_int_equal(
		    parse(&keys, text, why), n > JWKS_KEYS_MAX ? -EINVAL : 0);
		assert_string_equal(why,
		    n > JWKS_KEYS_MAX ? "holds 65 keys; at most 64 are possible"
				      : "");
		jwks_clear(&keys);
	}
}

/* --- tokens -------------------------------------------------------------- */

/* r and s as a token has them, of what OpenSSL writes. */
static size_t
split_numbers(unsigned char *signature, size_t len, int width)
{
	const unsigned char *der = signature;
	ECDSA_SIG *numbers = d2i_ECDSA_SIG(NULL, &der, (long)len);

	assert_non_null(numbers);
	BN_bn2binpad(ECDSA_SIG_get0_r(numbers), signature, width);
	BN_bn2binpad(ECDSA_SIG_get0_s(numbers), signature + width, width);
	ECDSA_SIG_free(numbers);
	return 2 * (size_t)width;
}

static size_t
sign(EVP_PKEY *key, const char *digest, bool pss, const char *text,
    unsigned char *signature)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	EVP_PKEY_CTX *ctx = NULL;
	size_t len = 512;

	assert_int_equal(
	    EVP_DigestSignInit_ex(md, &ctx, digest, NULL, NULL, key, NULL), 1);
	if (pss) {
		EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING);
		EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST);
	}
	assert_int_equal(EVP_DigestSign(md, signature, &len,
			     (const unsigned char *)text, strlen(text)),
	    1);
	EVP_MD_CTX_free(md);
	return len;
}

/* Who signs, and how. A width: of the numbers of ECDSA; -1: leave it as OpenSSL
 * writes it. */
struct signer {
	EVP_PKEY **key;
	const char *digest;
	bool pss;
	int width;
};

static const struct signer rs256 = { &rsa, "SHA256", false, -1 };
static const struct signer rs384 = { &rsa, "SHA384", false, -1 };
static const struct signer ps256 = { &rsa, "SHA256", true, -1 };
static const struct signer es256 = { &p256, "SHA256", false, 32 };
static const struct signer es256_wide = { &p256, "SHA256", false, 33 };
static const struct signer es256_der = { &p256, "SHA256", false, -1 };
static const struct signer es384 = { &p384, "SHA384", false, 48 };
static const struct signer eddsa = { &ed25519, NULL, false, -1 };

static void
make_token(char token[TOKEN_MAX], const char *header, const struct signer *s)
{
	unsigned char signature[512];
	size_t len = 0;

	token[0] = '\0';
	append_part(token, header, strlen(header));
	strcat(token, ".");
	append_part(token, CLAIMS, strlen(CLAIMS));
	if (s != NULL)
		len = sign(*s->key, s->digest, s->pss, token, signature);
	if (s != NULL && s->width > 0)
		len = split_numbers(signature, len, s->width);
	strcat(token, ".");
	append_part(token, signature, len);
}

#define H(alg, kid) "{\"alg\":\"" alg "\",\"kid\":\"" kid "\"}"

static const struct token_row {
	const char *header;
	const struct signer *signer; /* NULL: an empty signature */
	const char *why;	     /* NULL: granted */
} token_rows[] = {
	{ H("RS256", "rsa"), &rs256, NULL },
	{ H("PS256", "rsa"), &ps256, NULL },
	{ H("RS256", "rs256"), &rs256, NULL },
	{ H("ES256", "p256"), &es256, NULL },
	{ H("ES384", "p384"), &es384, NULL },
	{ H("EdDSA", "ed25519"), &eddsa, NULL },

	{ H("RS256", "other"), &rs256, "no key has the kid `other`" },
	{ "{\"alg\":\"RS256\"}", &rs256, "its header has no kid" },
	{ "{\"alg\":\"RS256\",\"kid\":1}", &rs256, "its header has no kid" },
	{ H("RS256", "enc"), &rs256,
	    "the key `enc` is not used: its use is not sig" },
	{ H("RS256", "small"), &rs256,
	    "the key `small` is not used: its modulus n has 2040 bits, not "
	    "2048 to 4096" },
	/* The key of one algorithm is not tried with another. */
	{ H("PS256", "rs256"), &ps256,
	    "alg `PS256` is not for the key "
	    "`rs256`" },
	{ H("ES256", "rsa"), &rs256, "alg `ES256` is not for the key `rsa`" },
	{ H("RS256", "p256"), &es256,
	    "alg `RS256` is not for the key "
	    "`p256`" },
	{ H("ES384", "p256"), &es256,
	    "alg `ES384` is not for the key "
	    "`p256`" },
	{ H("none", "rsa"), NULL, "alg `none`: it is not signed" },
	{ H("none", "rsa"), &rs256, "alg `none`: it is not signed" },
	{ H("None", "rsa"), &rs256, "alg `None` is not known" },
	{ H("RS384", "rsa"), &rs384, "alg `RS384` is not known" },
	{ H("HS256", "rsa"), &rs256, "alg `HS256` needs secret-file" },
	{ "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"crit\":[\"b64\"],\"b64\":true}",
	    &rs256, "its header has a crit" },

	{ H("ES256", "p256"), NULL,
	    "its signature has 0 bytes; one of ES256 has 64" },
	{ H("ES256", "p256"), &es256_wide,
	    "its signature has 66 bytes; one of ES256 has 64" },
	{ H("ES256", "p256"), &es256_der, "its signature has " },
	{ H("ES384", "p384"), &es256,
	    "its signature has 64 bytes; one of ES384 has 96" },
	{ H("EdDSA", "ed25519"), &rs256,
	    "its signature has 256 bytes; one of EdDSA has 64" },
	{ H("EdDSA", "ed25519"), &es256, "the signature is wrong" },
	{ H("RS256", "rsa"), NULL, "the signature is wrong" },
	{ H("RS256", "rsa"), &ps256, "the signature is wrong" },
	{ H("PS256", "rsa"), &rs256, "the signature is wrong" },
	{ H("RS256", "rsa"), &rs384, "the signature is wrong" },
	{ H("RS256", "other-rsa"), &rs256, "the signature is wrong" },
};

static void
parse_all(struct jwks *keys)
{
	char text[SET_MAX], why[CONF_WHY_MAX], members[MEMBERS_MAX];
	EVP_PKEY *other = EVP_RSA_gen(2048);

	write_rsa(members, other);
	sprintf(text,
	    "{\"keys\":[{\"kid\":\"rsa\",%s},{\"kid\":\"p256\",%s},"
	    "{\"kid\":\"p384\",%s},{\"kid\":\"ed25519\",%s},"
	    "{\"kid\":\"rs256\",\"alg\":\"RS256\",%s},"
	    "{\"kid\":\"enc\",\"use\":\"enc\",%s},{\"kid\":\"small\",%s},"
	    "{\"kid\":\"other-rsa\",%s}]}",
	    rsa_members, p256_members, p384_members, ed25519_members,
	    rsa_members, rsa_members, small_members, members);
	if (parse(keys, text, why) < 0)
		fail_msg("%s", why);
	EVP_PKEY_free(other);
}

static void
test_tokens(void **state)
{
	struct jwks keys;
	const struct jwt_rules r = { .keys = &keys, .subject = "sub" };
	char token[TOKEN_MAX];

	parse_all(&keys);
	for (size_t i = 0; i < nitems(token_rows); i++) {
		const struct token_row *row = &token_rows[i];
		enum verdict v;

		make_token(token, row->header, row->signer);
		v = verify_token(&r, token, NOW, &answer);
		if (row->why == NULL && v != VERDICT_GRANTED)
			fail_msg("row %zu: %s", i, answer.why);
		if (row->why != NULL &&
		    (v != VERDICT_INVALID_JWT ||
			strncmp(answer.why, row->why, strlen(row->why)) != 0))
			fail_msg("row %zu: %d, `%s`", i, (int)v, answer.why);
		assert_string_equal(
		    answer.token.subject, row->why == NULL ? "me" : "");
	}
	jwks_clear(&keys);
}

/* Every bit of each kind of signature counts, and of what is signed. */
static void
test_bits(void **state)
{
	struct jwks keys;
	const struct jwt_rules r = { .keys = &keys, .subject = "sub" };
	char token[TOKEN_MAX];

	parse_all(&keys);
	for (size_t i = 0; token_rows[i].why == NULL; i++) {
		make_token(token, token_rows[i].header, token_rows[i].signer);
		for (size_t at = 0; token[at] != '\0'; at++) {
			token[at] ^= 1;
			if (verify_token(&r, token, NOW, &answer) !=
			    VERDICT_INVALID_JWT)
				fail_msg("row %zu, character %zu", i, at);
			token[at] ^= 1;
		}
		assert_int_equal(
		    verify_token(&r, token, NOW, &answer), VERDICT_GRANTED);
	}
	jwks_clear(&keys);
}

/* An HMAC with a public key as its secret is what algorithm confusion makes:
 * refused with and without a secret. */
static void
test_confusion(void **state)
{
	struct jwks keys;
	struct jwt_rules r = { .keys = &keys, .subject = "sub" };
	unsigned char mac[32];
	char token[TOKEN_MAX];
	size_t len = 0;

	parse_all(&keys);
	make_token(token, H("HS256", "rsa"), NULL);
	token[strlen(token) - 1] = '\0';
	assert_non_null(EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL,
	    rsa_members, strlen(rsa_members), (unsigned char *)token,
	    strlen(token), mac, sizeof(mac), &len));
	strcat(token, ".");
	append_part(token, mac, len);
	assert_int_equal(
	    verify_token(&r, token, NOW, &answer), VERDICT_INVALID_JWT);
	assert_string_equal(answer.why, "alg `HS256` needs secret-file");
	r.secret = (const uint8_t *)"0123456789abcdef0123456789abcdef";
	r.secret_len = 32;
	assert_int_equal(
	    verify_token(&r, token, NOW, &answer), VERDICT_INVALID_JWT);
	assert_string_equal(answer.why, "the signature is wrong");
	jwks_clear(&keys);
}

/* The front-end can choose the key that is tried, and nothing else. */
static void
test_misread_header(void **state)
{
	static const struct {
		const char *header;
		struct control_token_header named;
		const char *why;
	} rows[] = {
		{ H("RS256", "rsa"), { "RS256", "rs256" },
		    "the front-end misread its header" },
		{ H("PS256", "rsa"), { "RS256", "rsa" },
		    "the front-end misread its header" },
		{ H("none", "rsa"), { "RS256", "rsa" },
		    "the front-end misread its header" },
		{ "{\"alg\":\"RS256\"}", { "RS256", "rsa" },
		    "the front-end misread its header" },
		{ "x", { "RS256", "rsa" }, "its header is not JSON" },
		{ H("RS256", "rsa"), { "RS256", "other-rsa" },
		    "the signature is wrong" },
		{ H("RS256", "rsa"), { "ES256", "p256" },
		    "its signature has 256 bytes" },
		{ H("RS256", "rsa"), { "HS256", "" },
		    "alg `HS256` needs secret-file" },
		{ H("RS256", "rsa"), { "", "" }, "its header has no alg" },
	};
	struct jwks keys;
	const struct jwt_rules r = { .keys = &keys, .subject = "sub" };
	char token[TOKEN_MAX];

	parse_all(&keys);
	for (size_t i = 0; i < nitems(rows); i++) {
		make_token(token, rows[i].header, &rs256);
		if (jwt_verify(&r, token, &rows[i].named, NOW, &answer) !=
			VERDICT_INVALID_JWT ||
		    strstr(answer.why, rows[i].why) == NULL)
			fail_msg("row %zu: `%s`", i, answer.why);
	}
	jwks_clear(&keys);
}

/* What the front-end reads of a header, and what it leaves out. */
static void
test_token_header(void **state)
{
	static char long_kid[2 * CONTROL_KID_MAX];
	static const struct {
		const char *header, *alg, *kid;
	} rows[] = {
		{ H("RS256", "a"), "RS256", "a" },
		{ "{\"kid\" : \"\\u0061\", \"alg\" : \"EdDSA\"}", "EdDSA",
		    "a" },
		{ "{\"alg\":\"1234567890123456\",\"kid\":7}", "", "" },
		{ "{\"alg\":[\"RS256\"],\"kid\":\"a\\u0000\"}", "", "" },
		{ "{\"jwk\":{\"kid\":\"b\"},\"kid\":\"a\"}", "", "a" },
		{ "{\"kid\":\"a\",\"kid\":\"b\"}", "", "" },
		{ "[]", "", "" },
		{ "", "", "" },
		{ long_kid, "", "" },
	};
	struct control_token_header read;
	char token[TOKEN_MAX];

	sprintf(long_kid, "{\"kid\":\"%0256d\"}", 0);
	for (size_t i = 0; i < nitems(rows); i++) {
		make_token(token, rows[i].header, NULL);
		token_header_read(
		    (struct slice){ token, strlen(token) }, &read);
		assert_string_equal(read.alg, rows[i].alg);
		assert_string_equal(read.kid, rows[i].kid);
	}
	token_header_read(SLICE("no-dot"), &read);
	assert_string_equal(read.alg, "");
	token_header_read(SLICE("!.a.b"), &read);
	assert_string_equal(read.alg, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_rsa_numbers),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_twins),
		cmocka_unit_test(test_limit_of_keys),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_confusion),
		cmocka_unit_test(test_misread_header),
		cmocka_unit_test(test_token_header),
	};

	return cmocka_run_group_tests(tests, make_keys, free_keys);
}
