/* SPDX-License-Identifier: ISC */
/*
 * Signed bearer tokens (JWT: RFC 7519, RFC 7515; doc/protocol.md section 1.5).
 * The signature is checked before any of the JSON is parsed, with the key that
 * the front-end read in the header. Pure.
 */
#pragma once

#include "conf_value.h"
#include "util.h"

struct jwks;

#define JWT_HS256 "HS256"

/* Each algorithm has keys of its own. A secret never verifies a signature of a
 * private key, and a public key is never used as a secret. */
struct jwt_rules {
	const uint8_t *secret; /* for HS256; NULL: none */
	size_t secret_len;
	const struct jwks *keys; /* for all other algorithms; NULL: none */
	const char *issuer;	 /* NULL: any */
	const char *audience;	 /* NULL: any */
	const char *subject; /* the claim that says to whom a token belongs */
	uint32_t skew_s;
};

struct jwt_answer {
	/* If signed, whose it is. It is not `there` if its subject is no name;
	 * `subject` is "" if it is missing or no name. */
	struct control_token token;
	/* Whether nothing but its time is wrong, and it says whose it is. */
	bool only_expired;
	/* If refused, the reason for the operator's log. Names in it are the
	 * client's. */
	char why[CONF_WHY_MAX];
};

/* named is what the front-end read in the token's header. A token whose header
 * says anything else is refused. now_s is in seconds since 1970. */
enum verdict jwt_verify(const struct jwt_rules *r, const char *token,
    const struct control_token_header *named, int64_t now_s,
    struct jwt_answer *answer);

/* Tells whether the rules still have that token's key, and its issuer. */
bool jwt_is_ours(const struct jwt_rules *r, const struct control_token *t);

/* Checks that it is the signature of this text by that
 * algorithm and that key. Returns 0, or -EINVAL with why[CONF_WHY_MAX]. */
int jwt_check_signature(const struct jwt_rules *r,
    const struct control_token_header *named, struct slice text,
    struct slice signature, char *why);
