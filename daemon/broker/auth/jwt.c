/* SPDX-License-Identifier: ISC */
#include "jwt.h"

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "base64.h"
#include "json.h"
#include "jwks.h"

static void take_key(const struct jwt_rules *r,
    const struct control_token_header *named, uint8_t key[32]);

static void
digest(const void *bytes, size_t len, uint8_t sha256[32])
{
	EVP_Digest(bytes, len, sha256, NULL, EVP_sha256(), NULL);
}

static bool
is_present(const struct json_value *v)
{
	return v != NULL && v->type != JSON_NULL;
}

/* A string, or a list of strings. */
static bool
is_audience(const struct json_value *v)
{
	if (v->type == JSON_STRING)
		return true;
	if (v->type != JSON_ARRAY)
		return false;
	for (v = v->first; v != NULL; v = v->next)
		if (v->type != JSON_STRING)
			return false;
	return true;
}

static bool
names_audience(const struct json_value *v, const char *audience)
{
	if (!is_present(v))
		return false;
	if (v->type == JSON_STRING)
		return json_is(v, audience);
	for (v = v->first; v != NULL; v = v->next)
		if (json_is(v, audience))
			return true;
	return false;
}

/* Checks that the claims are of the right types. Returns `exp`, and `nbf` if
 * there is one. */
static int
take_times(
    const struct json_value *claims, int64_t *until, int64_t *from, char *why)
{
	const struct json_value *exp = json_get(claims, "exp");
	const struct json_value *nbf = json_get(claims, "nbf");

	if (exp == NULL || json_to_i64(exp, until) < 0)
		return conf_refuse(why, "exp is missing or not an integer");
	if (is_present(nbf) && json_to_i64(nbf, from) < 0)
		return conf_refuse(why, "nbf is not an integer");
	return 0;
}

static enum verdict
check_parties(
    const struct jwt_rules *r, const struct json_value *claims, char *why)
{
	const struct json_value *iss = json_get(claims, "iss");
	const struct json_value *aud = json_get(claims, "aud");

	if (r->issuer != NULL && !json_is(iss, r->issuer)) {
		conf_refuse(why, "iss is not `%.200s`", r->issuer);
		return VERDICT_ISSUER;
	}
	if (r->audience != NULL && !names_audience(aud, r->audience)) {
		conf_refuse(why, "aud does not contain `%.200s`", r->audience);
		return VERDICT_AUDIENCE;
	}
	return VERDICT_GRANTED;
}

/* The times come first, as with the reference server. */
static enum verdict
check_claims(const struct jwt_rules *r, const struct json_value *claims,
    int64_t now_s, struct jwt_answer *answer)
{
	const struct json_value *iss = json_get(claims, "iss");
	const struct json_value *aud = json_get(claims, "aud");
	int64_t until = 0, from = INT64_MIN;
	char *why = answer->why, unsaid[CONF_WHY_MAX];
	bool early;

	if (take_times(claims, &until, &from, why) < 0)
		return VERDICT_INVALID_JWT;
	answer->token.until_s = (uint64_t)until;
	if ((is_present(iss) && iss->type != JSON_STRING) ||
	    (is_present(aud) && !is_audience(aud))) {
		conf_refuse(why, "iss or aud is not a text");
		return VERDICT_INVALID_JWT;
	}
	early = from > now_s + (int64_t)r->skew_s;
	if (until < now_s - (int64_t)r->skew_s) {
		answer->only_expired = !early && check_parties(r, claims,
						     unsaid) == VERDICT_GRANTED;
		return VERDICT_EXPIRED_JWT;
	}
	return early ? VERDICT_EARLY_JWT : check_parties(r, claims, why);
}

/* The reference server accepts anything as `sub`. An identity's name is a text
 * that is not too long. Returns false if it is there and is no such name: then
 * nobody can say whether two tokens have the same. */
static bool
take_subject(const struct json_value *sub, char subject[CONTROL_STRING_MAX])
{
	if (!is_present(sub))
		return true;
	if (sub->type != JSON_STRING || sub->text.len >= CONTROL_STRING_MAX ||
	    memchr(sub->text.ptr, '\0', sub->text.len))
		return false;
	memcpy(subject, sub->text.ptr, sub->text.len);
	subject[sub->text.len] = '\0';
	return true;
}

/* Fills in whose the token is, and leaves its key to take_key(). */
static void
take_owner(const struct jwt_rules *r, const struct json_value *claims,
    struct control_token *t)
{
	const struct json_value *iss = json_get(claims, "iss");

	t->there = take_subject(json_get(claims, r->subject), t->subject);
	if (is_present(iss))
		digest(iss->text.ptr, iss->text.len, t->issuer);
}

static enum verdict
take_claims(const struct jwt_rules *r, struct slice text, int64_t now_s,
    struct jwt_answer *answer)
{
	enum verdict verdict = VERDICT_INVALID_JWT;
	struct json_doc doc;

	if (json_parse(&doc, text.ptr, text.len) == 0 &&
	    doc.root->type == JSON_OBJECT) {
		verdict = check_claims(r, doc.root, now_s, answer);
		if (verdict != VERDICT_INVALID_JWT)
			take_owner(r, doc.root, &answer->token);
		answer->only_expired &= answer->token.there;
	} else {
		conf_refuse(answer->why, "its claims are not a JSON object");
	}
	json_clear(&doc);
	return verdict;
}

/* Checks that the header, whose signature is verified by now, says what the
 * front-end read in it. `crit` names what must be understood (RFC 7515 section
 * 4.1.11), and nothing of that is. The reference server ignores it, and so does
 * this file with HS256. */
static int
check_header(const struct json_value *header,
    const struct control_token_header *named, char *why)
{
	bool secret = json_is(json_get(header, "alg"), JWT_HS256);

	if (!json_is(json_get(header, "alg"), named->alg) ||
	    (!secret && !json_is(json_get(header, "kid"), named->kid)))
		return conf_refuse(why, "the front-end misread its header");
	if (!secret && json_get(header, "crit") != NULL)
		return conf_refuse(why, "its header has a crit");
	return 0;
}

static int
parse_header(
    struct slice text, const struct control_token_header *named, char *why)
{
	struct json_doc doc;
	int err;

	if (json_parse(&doc, text.ptr, text.len) == 0)
		err = check_header(doc.root, named, why);
	else
		err = conf_refuse(why, "its header is not JSON");
	json_clear(&doc);
	return err;
}

/* Decodes one of the three parts. The caller frees the bytes in any case. */
static int
decode_part(const char *from, const char *end, uint8_t **bytes,
    struct slice *part, char *why)
{
	ssize_t n = base64_decode_url(from, (size_t)(end - from), bytes);

	if (n < 0)
		return conf_refuse(why, "it is not base64url");
	*part = (struct slice){ (const char *)*bytes, (size_t)n };
	return 0;
}

enum verdict
jwt_verify(const struct jwt_rules *r, const char *token,
    const struct control_token_header *named, int64_t now_s,
    struct jwt_answer *answer)
{
	const char *dot = strchr(token, '.');
	const char *second = dot ? strchr(dot + 1, '.') : NULL;
	_cleanup_free_ uint8_t *one = NULL, *two = NULL, *three = NULL;
	struct slice header = { 0 }, claims = { 0 }, signature = { 0 };

	answer->token = (struct control_token){ 0 };
	answer->only_expired = false;
	answer->why[0] = '\0';
	if (second == NULL || strchr(second + 1, '.') != NULL) {
		conf_refuse(answer->why, "it is not three parts with dots");
		return VERDICT_INVALID_JWT;
	}
	if (decode_part(token, dot, &one, &header, answer->why) < 0 ||
	    decode_part(dot + 1, second, &two, &claims, answer->why) < 0 ||
	    decode_part(second + 1, strchr(second, '\0'), &three, &signature,
		answer->why) < 0)
		return VERDICT_INVALID_JWT;
	if (jwt_check_signature(r, named,
		(struct slice){ token, (size_t)(second - token) }, signature,
		answer->why) < 0 ||
	    parse_header(header, named, answer->why) < 0)
		return VERDICT_INVALID_JWT;
	take_key(r, named, answer->token.key);
	answer->token.since_s = (uint64_t)now_s;
	return take_claims(r, claims, now_s, answer);
}

/* --- signatures --------------------------------------------------------- */

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

/* --- which key it was ----------------------------------------------------- */

/* Signs a text that is no token. The user of a session may read the result,
 * which helps to guess the secret no more than his token does. */
static void
digest_secret(const struct jwt_rules *r, uint8_t key[32])
{
	static const unsigned char text[] = "execd: which secret";

	if (EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, r->secret,
		r->secret_len, text, sizeof(text), key, 32, NULL) == NULL)
		memset(key, 0, 32);
}

/* Of the key itself: a kid may become another key's. */
static void
digest_public(EVP_PKEY *public, uint8_t key[32])
{
	unsigned char *der = NULL;
	int n = i2d_PUBKEY(public, &der);

	digest(der, n > 0 ? (size_t)n : 0, key);
	OPENSSL_free(der);
}

/* Returns the digest of the key that has verified a token. */
static void
take_key(const struct jwt_rules *r, const struct control_token_header *named,
    uint8_t key[32])
{
	if (strcmp(named->alg, JWT_HS256) == 0)
		digest_secret(r, key);
	else
		digest_public(jwks_find(r->keys, named->kid)->key, key);
}

static bool
has_key(const struct jwt_rules *r, const uint8_t key[32])
{
	uint8_t own[32];

	if (r->secret != NULL) {
		digest_secret(r, own);
		if (memcmp(own, key, sizeof(own)) == 0)
			return true;
	}
	for (size_t i = 0; r->keys != NULL && i < r->keys->count; i++) {
		if (r->keys->items[i].key == NULL)
			continue;
		digest_public(r->keys->items[i].key, own);
		if (memcmp(own, key, sizeof(own)) == 0)
			return true;
	}
	return false;
}

bool
jwt_is_ours(const struct jwt_rules *r, const struct control_token *t)
{
	uint8_t issuer[32];

	if (r->issuer != NULL) {
		digest(r->issuer, strlen(r->issuer), issuer);
		if (memcmp(issuer, t->issuer, sizeof(issuer)) != 0)
			return false;
	}
	return has_key(r, t->key);
}
