/* SPDX-License-Identifier: ISC */
/*
 * Who a client is.
 */
#include "credential.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "jwt.h"
#include "util.h"

/* Every identity and every digest is compared, whatever matched before. */
static struct identity *
find_digest(const struct conf *c, const uint8_t digest[32], bool certificate)
{
	struct identity *found = NULL;

	for (size_t i = 0; i < c->nidentities; i++) {
		const struct digests *d = certificate
					      ? &c->identities[i]->certificates
					      : &c->identities[i]->tokens;

		for (size_t j = 0; j < d->count; j++)
			if (CRYPTO_memcmp(d->items[j], digest, 32) == 0)
				found = c->identities[i];
	}
	return found;
}

static struct identity *
find_subject(const struct conf *c, const char *subject)
{
	struct identity *any = NULL;

	for (size_t i = 0; i < c->nidentities; i++) {
		const struct strings *s = &c->identities[i]->subjects;

		if (subject[0] != '\0' && strings_has(s, subject))
			return c->identities[i];
		if (strings_has(s, "*"))
			any = c->identities[i];
	}
	return any;
}

/* A certificate of its own comes before a name that several may have. */
static struct identity *
find_certificate(const struct conf *c, const struct control_cert_verdict *v)
{
	struct identity *found = find_digest(c, v->digest, true);

	for (size_t i = 0; found == NULL && i < c->nidentities; i++)
		if (strings_has(
			&c->identities[i]->certificate_subjects, v->subject))
			found = c->identities[i];
	return found;
}

static struct identity *
find_uid(const struct conf *c, uid_t uid)
{
	for (size_t i = 0; i < c->nidentities; i++)
		for (size_t j = 0; j < c->identities[i]->peer_users.count; j++)
			if (c->identities[i]->peer_uids[j] == uid)
				return c->identities[i];
	return NULL;
}

static enum verdict
verify_signed(const struct conf *c, const char *token, int64_t now_s,
    struct identity **who, const char **how)
{
	const struct jwt_rules rules = { .secret = c->tokens.secret,
		.secret_len = c->tokens.secret_len,
		.issuer = c->tokens.issuer,
		.audience = c->tokens.audience,
		.skew_s = c->tokens.skew_s };
	static char subject[JWT_SUBJECT_MAX]; /* for *how */
	enum verdict v;

	subject[0] = '\0';
	v = jwt_verify(&rules, token, now_s, subject);
	if (v != VERDICT_GRANTED)
		return v;
	*who = find_subject(c, subject);
	*how = *who != NULL ? "signed token" : subject;
	return *who != NULL ? VERDICT_GRANTED : VERDICT_SUBJECT;
}

static bool
has_tokens(const struct conf *c)
{
	for (size_t i = 0; i < c->nidentities; i++)
		if (c->identities[i]->tokens.count > 0)
			return true;
	return false;
}

/* What is not a known capability token is judged as a signed one where those
 * are in use, so that its owner hears what is wrong with it. */
static enum verdict
verify_bearer(const struct conf *c, const char *token, int64_t now_s,
    struct identity **who, const char **how)
{
	uint8_t digest[32];

	EVP_Digest(token, strlen(token), digest, NULL, EVP_sha256(), NULL);
	*who = find_digest(c, digest, false);
	*how = "token";
	if (*who != NULL)
		return VERDICT_GRANTED;
	if (c->tokens.secret != NULL &&
	    (!has_tokens(c) || strchr(token, '.') != NULL))
		return verify_signed(c, token, now_s, who, how);
	return VERDICT_INVALID_TOKEN;
}

/* Of a client that shows no token. */
static enum verdict
verify_other(const struct conf *c, const struct listener *l,
    const struct control_authenticate *presented, const struct ucred *peer,
    struct identity **who, const char **how)
{
	bool known = presented->has_certificate || peer != NULL;

	*who = NULL;
	*how = "certificate";
	if (presented->has_certificate)
		*who = find_certificate(c, &presented->cert_verdict);
	if (*who == NULL && peer != NULL) {
		*who = find_uid(c, peer->uid);
		*how = "peer user";
	}
	if (*who == NULL && l->allow_unauthenticated != NULL) {
		*who = conf_find_identity(c, l->allow_unauthenticated);
		*how = "nothing";
	}
	if (*who != NULL)
		return VERDICT_GRANTED;
	if (presented->kind == CREDENTIAL_INVALID)
		return VERDICT_INVALID_HEADER;
	return known ? VERDICT_STRANGER : VERDICT_MISSING_TOKEN;
}

enum verdict
credential_verify(const struct conf *c, const struct listener *l,
    const struct control_authenticate *presented, const struct ucred *peer,
    int64_t now_s, struct identity **who, const char **how)
{
	bool tokens = has_tokens(c) || c->tokens.secret != NULL;
	enum verdict v;

	/* Where nobody has a token the header means nothing, as to the peer. */
	if (presented->kind == CREDENTIAL_BEARER && tokens)
		v = verify_bearer(c, presented->credential, now_s, who, how);
	else
		v = verify_other(c, l, presented, peer, who, how);
	if (v == VERDICT_GRANTED && l->identities.count > 0 &&
	    !strings_has(&l->identities, (*who)->name))
		return VERDICT_STRANGER;
	return v;
}
