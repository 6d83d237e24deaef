/* SPDX-License-Identifier: ISC */
/*
 * Signed bearer tokens (JWT: RFC 7519, RFC 7515; doc/protocol.md section 1.5).
 * The signature is checked before any of the JSON is parsed, with the key that
 * the front-end read in the header. Pure.
 */
#ifndef JWT_H
#define JWT_H

#include "conf_value.h"
#include "control.h"
#include "util.h"

struct jwks;

#define JWT_SUBJECT_MAX 1024 /* with NUL */
#define JWT_HS256	"HS256"

/* Each algorithm has keys of its own: a secret never verifies what is signed
 * with a private key, and a public key is never taken for a secret. */
struct jwt_rules {
	const uint8_t *secret; /* of HS256; NULL: none */
	size_t secret_len;
	const struct jwks *keys; /* of all other algorithms; NULL: none */
	const char *issuer;	 /* NULL: whatever */
	const char *audience;	 /* NULL: whatever */
	const char *subject;	 /* the claim that says whose it is */
	uint32_t skew_s;
};

struct jwt_answer {
	/* GRANTED: the subject, or "" without one that fits. */
	char subject[JWT_SUBJECT_MAX];
	/* Refused: what is wrong, for the operator's log. Names in it are the
	 * client's. */
	char why[CONF_WHY_MAX];
};

/* named: what the front-end read in the token's header; a token whose header
 * says anything else is refused. now_s: seconds since 1970. */
enum verdict jwt_verify(const struct jwt_rules *r, const char *token,
    const struct control_token_header *named, int64_t now_s,
    struct jwt_answer *answer);

/* jwt_signature.c: is it a signature of this text, by that algorithm and that
 * key? 0, or -EINVAL with why[CONF_WHY_MAX]. */
int jwt_check_signature(const struct jwt_rules *r,
    const struct control_token_header *named, struct slice text,
    struct slice signature, char *why);

#endif
