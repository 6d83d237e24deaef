/* SPDX-License-Identifier: ISC */
#include "credential.h"

#include <fnmatch.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include "broker_state.h"
#include "frontend_child.h"
#include "session_registry.h"

/* Every identity and every digest is compared, so that the time does not tell
 * which one matched. */
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

/* Likewise. */
static const struct named_token *
find_named(const struct conf *c, const uint8_t digest[32])
{
	const struct named_token *found = NULL;

	for (size_t i = 0; i < c->nnamed; i++)
		if (CRYPTO_memcmp(c->named[i]->digests.items[0], digest, 32) ==
		    0)
			found = c->named[i];
	return found != NULL && !found->revoked ? found : NULL;
}

/* A name comes before a pattern, and patterns come in their order. `*` comes
 * last: only it also stands for a token without a subject. */
static bool
has_subject(const struct identity *id, const char *subject)
{
	return subject[0] != '\0' && strings_has(&id->subjects, subject);
}

static bool
has_pattern(const struct identity *id, const char *subject)
{
	for (size_t i = 0; i < id->subjects.count; i++)
		if (strcmp(id->subjects.items[i], "*") != 0 &&
		    fnmatch(id->subjects.items[i], subject, 0) == 0)
			return true;
	return false;
}

static bool
has_any(const struct identity *id, const char *subject)
{
	return strings_has(&id->subjects, "*");
}

static struct identity *
find_subject(const struct conf *c, const char *subject)
{
	static bool (*const steps[])(const struct identity *,
	    const char *) = { has_subject, has_pattern, has_any };

	for (size_t step = 0; step < nitems(steps); step++)
		for (size_t i = 0; i < c->nidentities; i++)
			if (steps[step](c->identities[i], subject))
				return c->identities[i];
	return NULL;
}

/* A certificate of the identity's own comes before a name that several
 * certificates may have. */
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
find_uid(const struct conf *c, uid_t uid, struct credential_finding *found)
{
	found->how = "peer user";
	for (size_t i = 0; i < c->nidentities; i++)
		for (size_t j = 0; j < c->identities[i]->peer_users.count; j++)
			if (c->identities[i]->peer_uids[j] == uid) {
				found->user =
				    c->identities[i]->peer_users.items[j];
				return c->identities[i];
			}
	return NULL;
}

static struct jwt_rules
rules_of(const struct token_rules *t)
{
	return (struct jwt_rules){ .secret = t->secret,
		.secret_len = t->secret_len,
		.keys = t->jwks_file ? &t->jwks : NULL,
		.issuer = t->issuer,
		.audience = t->audience,
		.subject = t->subject_claim,
		.skew_s = t->skew_s };
}

/* If nothing but its time is wrong with a token, the verdict is
 * VERDICT_RESUME. */
static enum verdict
verify_signed(const struct conf *c,
    const struct control_authenticate *presented, int64_t now_s,
    struct credential_finding *found)
{
	const struct jwt_rules rules = rules_of(&c->tokens);
	enum verdict v = jwt_verify(&rules, presented->credential,
	    &presented->token_header, now_s, &found->jwt);

	found->how = "signed token";
	if (found->jwt.only_expired && c->tokens.resume_after_expiry) {
		v = VERDICT_RESUME;
		found->how = "expired token";
	}
	if (v != VERDICT_GRANTED && v != VERDICT_RESUME)
		return v;
	found->who = find_subject(c, found->jwt.token.subject);
	if (found->who != NULL)
		return v;
	return v == VERDICT_RESUME ? VERDICT_EXPIRED_JWT : VERDICT_SUBJECT;
}

static enum verdict
verify_named(const struct conf *c, const struct named_token *t, int64_t now_s,
    struct credential_finding *found)
{
	found->token = t->name;
	found->jwt.token = session_token_of(t->name, t->expires_s, now_s);
	found->who = conf_find_identity(c, t->identity);
	if (t->expires_s == 0 || now_s < t->expires_s)
		return VERDICT_GRANTED;
	if (!c->tokens.resume_after_expiry)
		return VERDICT_EXPIRED_TOKEN;
	found->how = "expired token";
	return VERDICT_RESUME;
}

bool
credential_stands(const struct conf *c, const struct identity *id,
    const struct control_token *t, int64_t now_s)
{
	const struct jwt_rules rules = rules_of(&c->tokens);
	const struct named_token *named;
	const struct identity *who;

	if ((int64_t)t->until_s >= now_s - (int64_t)rules.skew_s ||
	    !c->tokens.resume_after_expiry)
		return true;
	if (session_token_is_named(t)) {
		named = conf_find_token(c, t->subject);
		return named != NULL && strcmp(named->identity, id->name) == 0;
	}
	who = find_subject(c, t->subject);
	return who != NULL && identity_is(who, id) && jwt_is_ours(&rules, t);
}

static bool
has_tokens(const struct conf *c)
{
	if (c->nnamed > 0)
		return true;
	for (size_t i = 0; i < c->nidentities; i++)
		if (c->identities[i]->tokens.count > 0)
			return true;
	return false;
}

/* A token that is no known capability token is judged as a signed token if
 * those are in use, so that its owner learns what is wrong with it. */
static enum verdict
verify_bearer(const struct conf *c,
    const struct control_authenticate *presented, int64_t now_s,
    struct credential_finding *found)
{
	const char *token = presented->credential;
	const struct named_token *named;
	uint8_t digest[32];

	EVP_Digest(token, strlen(token), digest, NULL, EVP_sha256(), NULL);
	named = find_named(c, digest);
	found->who = find_digest(c, digest, false);
	found->how = "token";
	if (named != NULL)
		return verify_named(c, named, now_s, found);
	if (found->who != NULL)
		return VERDICT_GRANTED;
	if (conf_has_signed_tokens(c) &&
	    (!has_tokens(c) || strchr(token, '.') != NULL))
		return verify_signed(c, presented, now_s, found);
	return VERDICT_INVALID_TOKEN;
}

/* Decides for a client that shows no token. */
static enum verdict
verify_other(const struct conf *c, const struct listener *l,
    const struct control_authenticate *presented, const uid_t *peer,
    struct credential_finding *found)
{
	bool known = presented->has_certificate || peer != NULL;

	found->how = "certificate";
	if (presented->has_certificate)
		found->who = find_certificate(c, &presented->cert_verdict);
	if (found->who == NULL && peer != NULL)
		found->who = find_uid(c, *peer, found);
	if (found->who == NULL && l->allow_unauthenticated != NULL) {
		found->who = conf_find_identity(c, l->allow_unauthenticated);
		found->how = "nothing";
	}
	if (found->who != NULL)
		return VERDICT_GRANTED;
	if (presented->kind == CREDENTIAL_INVALID)
		return VERDICT_INVALID_HEADER;
	return known ? VERDICT_STRANGER : VERDICT_MISSING_TOKEN;
}

/* Finds the identity of the client, whatever it may do here. */
static enum verdict
verify_any(const struct conf *c, const struct listener *l,
    const struct control_authenticate *presented, const uid_t *peer,
    int64_t now_s, struct credential_finding *found)
{
	bool tokens = has_tokens(c) || conf_has_signed_tokens(c);

	found->who = NULL;
	found->how = "";
	found->user = NULL;
	found->token = NULL;
	found->barred = NULL;
	found->jwt.token = (struct control_token){ 0 };
	found->jwt.why[0] = '\0';
	if (l->keys.peer_user) {
		found->who = peer ? find_uid(c, *peer, found) : NULL;
		return found->who ? VERDICT_GRANTED : VERDICT_STRANGER;
	}
	/* Where no identity has a token, the header means nothing, as with the
	 * reference server. */
	if (presented->kind == CREDENTIAL_BEARER && tokens)
		return verify_bearer(c, presented, now_s, found);
	return verify_other(c, l, presented, peer, found);
}

enum verdict
credential_expired(const struct credential_finding *found)
{
	return found->token != NULL ? VERDICT_EXPIRED_TOKEN
				    : VERDICT_EXPIRED_JWT;
}

enum verdict
credential_verify(const struct conf *c, const struct listener *l,
    const struct control_authenticate *presented, const uid_t *peer,
    int64_t now_s, bool operates, struct credential_finding *found)
{
	const struct strings *named = operates ? &l->operators : &l->identities;
	enum verdict v = verify_any(c, l, presented, peer, now_s, found);
	bool permitted =
	    found->who != NULL && ((!operates && named->count == 0) ||
				      identity_is_named(found->who, named));

	if (found->who != NULL && !permitted)
		found->barred = found->who->name;
	if (v == VERDICT_GRANTED && !permitted)
		v = operates ? VERDICT_NOT_OPERATOR : VERDICT_STRANGER;
	if (v == VERDICT_RESUME && (operates || !permitted))
		v = credential_expired(found);
	if ((v == VERDICT_GRANTED || v == VERDICT_RESUME) &&
	    conf_is_locked(c, found->who)) {
		found->barred = found->who->name;
		v = VERDICT_LOCKED;
	}
	if (v != VERDICT_GRANTED && v != VERDICT_RESUME)
		found->who = NULL;
	return v;
}

/* --- the audit log ------------------------------------------------------ */

static void
begin(struct audit_event *e, const char *event, const char *peer,
    const char *proxy, const struct listener *l)
{
	audit_begin(e, event);
	audit_string(e, "peer", peer);
	if (proxy[0] != '\0')
		audit_string(e, "proxy", proxy);
	audit_string(e, "listener", l ? l->name : "");
}

void
credential_audit(struct broker *m, const struct control_authenticate *a,
    const struct listener *l, enum verdict v,
    const struct credential_finding *found, const char *path)
{
	struct identity *barred;
	struct audit_event e;

	if (found->who != NULL && !audit_is_kept(&m->conf->audit))
		return;
	begin(&e, found->who ? "granted" : "refused", a->peer, a->proxy, l);
	if (path != NULL)
		audit_string(&e, "path", path);
	if (found->who != NULL) {
		audit_string(&e, "identity", found->who->name);
		audit_string(&e, "by", found->how);
	} else {
		audit_string(&e, "reason", control_verdict_name(v));
	}
	if (found->barred != NULL) {
		barred = conf_find_identity(m->conf, found->barred);
		if (barred != NULL)
			barred->usage.denials++;
		audit_string(&e, "identity", found->barred);
	}
	if (found->token != NULL)
		audit_string(&e, "token", found->token);
	else if (found->jwt.token.subject[0] != '\0')
		audit_string(&e, "subject", found->jwt.token.subject);
	audit_end(&e, &m->conf->audit);
}

void
credential_audit_refused(
    struct broker *m, const struct control_refused *r, const struct listener *l)
{
	struct audit_event e;

	begin(&e, "refused", r->peer, r->proxy, l);
	audit_string(&e, "reason", r->reason);
	audit_end(&e, &m->conf->audit);
}

/*
 * Grants.
 */

static bool
match_conn(const struct table_node *node, const void *key)
{
	return TABLE_OBJECT(node, const struct grant, node)->conn ==
	       *(const uint32_t *)key;
}

struct grant *
grant_find(struct frontend *f, uint32_t conn)
{
	struct table_node *node =
	    table_find(&f->grants, conn, match_conn, &conn);

	return node ? TABLE_OBJECT(node, struct grant, node) : NULL;
}

void
grant_free(struct frontend *f, struct grant *g)
{
	table_remove(&f->grants, &g->node);
	identity_unref(g->identity);
	free(g->bearer);
	explicit_bzero(g, sizeof(*g));
	free(g);
}

struct grant *
grant_new(struct frontend *f, const struct control_authenticate *presented,
    const struct credential_finding *found)
{
	const struct control_token *t = &found->jwt.token;
	struct grant *g = xcalloc(1, sizeof(*g));

	g->conn = presented->conn;
	g->channel_fd = -1;
	g->listener = presented->listener;
	g->identity = identity_ref(found->who);
	if (t->there)
		g->bearer = session_token_copy(t);
	memcpy(g->peer, presented->peer, sizeof(g->peer));
	memcpy(g->proxy, presented->proxy, sizeof(g->proxy));
	if (getrandom(g->token, sizeof(g->token), 0) !=
	    (ssize_t)sizeof(g->token))
		log_fatal("getrandom: no random bytes");
	table_insert(&f->grants, &g->node, g->conn);
	return g;
}

/* Compares all bytes, so that the time does not tell where the first difference
 * is. */
static bool
token_equal(const uint8_t *a, const uint8_t *b)
{
	uint8_t difference = 0;

	for (size_t i = 0; i < CONTROL_GRANT_BYTES; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

struct grant *
grant_take(struct frontend *f, uint32_t conn, const uint8_t *token)
{
	struct grant *g = grant_find(f, conn);

	if (g == NULL || !token_equal(g->token, token) || g->session != NULL ||
	    g->wanted != NULL || g->channel_fd >= 0 || g->ended)
		return NULL;
	return g;
}

bool
grant_is_closing(const struct grant *g)
{
	if (g->session == NULL)
		return false;
	return g->watching ? session_watcher(g->session, g->conn)->close_asked
			   : g->session->attachment.close_asked;
}
