/* SPDX-License-Identifier: ISC */
/*
 * Signed bearer tokens.
 */
#include "jwt.h"

#include <string.h>

#include "base64.h"
#include "conf_value.h"
#include "json.h"

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

static enum verdict
check_claims(const struct jwt_rules *r, const struct json_value *claims,
    int64_t now_s, char *why)
{
	const struct json_value *iss = json_get(claims, "iss");
	const struct json_value *aud = json_get(claims, "aud");
	int64_t until = 0, from = INT64_MIN;

	if (take_times(claims, &until, &from, why) < 0)
		return VERDICT_INVALID_JWT;
	if ((is_present(iss) && iss->type != JSON_STRING) ||
	    (is_present(aud) && !is_audience(aud))) {
		conf_refuse(why, "iss or aud is not a text");
		return VERDICT_INVALID_JWT;
	}
	if (until < now_s - (int64_t)r->skew_s)
		return VERDICT_EXPIRED_JWT;
	if (from > now_s + (int64_t)r->skew_s)
		return VERDICT_EARLY_JWT;
	return check_parties(r, claims, why);
}

/* The reference server accepts anything as `sub`. An identity's name is a text
 * that is not too long. */
static void
take_subject(const struct json_value *sub, char subject[JWT_SUBJECT_MAX])
{
	if (sub == NULL || sub->type != JSON_STRING ||
	    sub->text.len >= JWT_SUBJECT_MAX ||
	    memchr(sub->text.ptr, '\0', sub->text.len))
		return;
	memcpy(subject, sub->text.ptr, sub->text.len);
	subject[sub->text.len] = '\0';
}

static enum verdict
take_claims(const struct jwt_rules *r, struct slice text, int64_t now_s,
    struct jwt_answer *answer)
{
	enum verdict verdict = VERDICT_INVALID_JWT;
	struct json_doc doc;

	if (json_parse(&doc, text.ptr, text.len) == 0 &&
	    doc.root->type == JSON_OBJECT) {
		verdict = check_claims(r, doc.root, now_s, answer->why);
		take_subject(json_get(doc.root, r->subject), answer->subject);
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

	answer->subject[0] = answer->why[0] = '\0';
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
	return take_claims(r, claims, now_s, answer);
}
