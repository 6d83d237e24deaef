/* SPDX-License-Identifier: ISC */
/*
 * Signed bearer tokens.
 */
#include "jwt.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base64.h"
#include "json.h"

/* base64url without padding -> bytes, or -1. Memory is the caller's. */
static ssize_t
decode_part(const char *part, size_t len, uint8_t **bytes)
{
	char error[BASE64_ERROR_MAX];
	size_t padded = (len + 3) / 4 * 4;
	_cleanup_free_ char *text = xmalloc(padded + 1);

	for (size_t i = 0; i < len; i++) {
		if (part[i] == '+' || part[i] == '/' || part[i] == '=')
			return -1;
		text[i] = part[i];
		if (part[i] == '-')
			text[i] = '+';
		else if (part[i] == '_')
			text[i] = '/';
	}
	memset(text + len, '=', padded - len);
	*bytes = xmalloc(base64_decoded_max(padded) + 1);
	return base64_decode(*bytes, text, padded, error);
}

static bool
is_signed(const struct jwt_rules *r, const char *token, size_t signed_len,
    const char *signature)
{
	_cleanup_free_ uint8_t *given = NULL;
	unsigned char expected[EVP_MAX_MD_SIZE];
	unsigned expected_len = 0;
	ssize_t n = decode_part(signature, strlen(signature), &given);

	if (HMAC(EVP_sha256(), r->secret, (int)r->secret_len,
		(const unsigned char *)token, signed_len, expected,
		&expected_len) == NULL)
		return false;
	return n == (ssize_t)expected_len &&
	       CRYPTO_memcmp(given, expected, expected_len) == 0;
}

static bool
is_present(const struct json_value *v)
{
	return v != NULL && v->type != JSON_NULL;
}

static bool
is_header(const char *text, size_t len)
{
	struct json_doc doc;
	bool good = json_parse(&doc, text, len) == 0 &&
		    doc.root->type == JSON_OBJECT &&
		    json_is(json_get(doc.root, "alg"), "HS256");

	json_clear(&doc);
	return good;
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

static enum verdict
check_claims(
    const struct jwt_rules *r, const struct json_value *claims, int64_t now_s)
{
	const struct json_value *exp = json_get(claims, "exp");
	const struct json_value *nbf = json_get(claims, "nbf");
	const struct json_value *iss = json_get(claims, "iss");
	const struct json_value *aud = json_get(claims, "aud");
	int64_t until, from = INT64_MIN;

	if (exp == NULL || json_to_i64(exp, &until) < 0 ||
	    (is_present(nbf) && json_to_i64(nbf, &from) < 0) ||
	    (is_present(iss) && iss->type != JSON_STRING) ||
	    (is_present(aud) && !is_audience(aud)))
		return VERDICT_INVALID_JWT;
	if (until < now_s - (int64_t)r->skew_s)
		return VERDICT_EXPIRED_JWT;
	if (from > now_s + (int64_t)r->skew_s)
		return VERDICT_EARLY_JWT;
	if (r->issuer != NULL && !json_is(iss, r->issuer))
		return VERDICT_ISSUER;
	if (r->audience != NULL && !names_audience(aud, r->audience))
		return VERDICT_AUDIENCE;
	return VERDICT_GRANTED;
}

/* For the peer `sub` may be anything; a name that an identity can have is a
 * short string. */
static void
take_subject(const struct json_value *sub, char subject[JWT_SUBJECT_MAX])
{
	subject[0] = '\0';
	if (sub == NULL || sub->type != JSON_STRING ||
	    sub->text.len >= JWT_SUBJECT_MAX ||
	    memchr(sub->text.ptr, '\0', sub->text.len))
		return;
	memcpy(subject, sub->text.ptr, sub->text.len);
	subject[sub->text.len] = '\0';
}

static enum verdict
check_parts(const struct jwt_rules *r, const char *token, const char *dot,
    const char *second, int64_t now_s, char subject[JWT_SUBJECT_MAX])
{
	_cleanup_free_ uint8_t *header = NULL, *claims = NULL;
	ssize_t header_len = decode_part(token, (size_t)(dot - token), &header);
	ssize_t claims_len =
	    decode_part(dot + 1, (size_t)(second - dot - 1), &claims);
	enum verdict verdict = VERDICT_INVALID_JWT;
	struct json_doc doc;

	if (header_len < 0 || claims_len < 0 ||
	    !is_header((char *)header, (size_t)header_len))
		return VERDICT_INVALID_JWT;
	if (json_parse(&doc, (char *)claims, (size_t)claims_len) == 0 &&
	    doc.root->type == JSON_OBJECT) {
		verdict = check_claims(r, doc.root, now_s);
		take_subject(json_get(doc.root, "sub"), subject);
	}
	json_clear(&doc);
	return verdict;
}

enum verdict
jwt_verify(const struct jwt_rules *r, const char *token, int64_t now_s,
    char subject[JWT_SUBJECT_MAX])
{
	const char *dot = strchr(token, '.');
	const char *second = dot ? strchr(dot + 1, '.') : NULL;

	if (second == NULL || strchr(second + 1, '.') != NULL ||
	    !is_signed(r, token, (size_t)(second - token), second + 1))
		return VERDICT_INVALID_JWT;
	return check_parts(r, token, dot, second, now_s, subject);
}
