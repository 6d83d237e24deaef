/* SPDX-License-Identifier: ISC */
/*
 * The public keys of an issuer of signed tokens. They are a JSON Web Key Set
 * (RFC 7517) with keys of RFC 7518 and RFC 8037, and each key may verify
 * certain algorithms. This file knows no token. Pure.
 */
#pragma once

#include <openssl/types.h>

#include "base.h"
#include "control_limits.h"

#define JWKS_KEYS_MAX	  64
#define JWKS_RSA_BITS_MIN 2048
#define JWKS_RSA_BITS_MAX 4096 /* each further bit makes every check slower */

/* A row of RFC 7518 section 3.1 or RFC 8037 section 3.1. */
struct jwk_algorithm {
	const char *name;      /* `alg` of a token, and of a key that has it */
	const char *kty, *crv; /* of the keys; crv is NULL for RSA */
	const char *digest;    /* for EVP; NULL: the algorithm brings its own */
	bool pss;
	/* Bytes of each number in a key and in a signature. 0 for RSA, where
	 * the key determines it. */
	size_t width;
};

#define JWK_ALGORITHMS 5
extern const struct jwk_algorithm jwk_algorithms[JWK_ALGORITHMS];

/* Returns the row for the value of an `alg` member, or NULL. */
const struct jwk_algorithm *jwk_find_algorithm(const char *name);

struct jwk {
	char *kid;
	unsigned algorithms; /* a bit for each row that the key may verify */
	EVP_PKEY *key;	     /* NULL: the key cannot be used */
	char *fault;	     /* the reason if `key` is NULL */
};

struct jwks {
	struct jwk *items;
	size_t count;
};

/*
 * Takes the keys of the text. A key that cannot be used stays in the set, so
 * that a token that names it is refused with the reason; the log warns of it
 * and names `path`. Returns 0, or -EINVAL with why[CONF_WHY_MAX] if the text is
 * no set, has more than JWKS_KEYS_MAX keys, has two keys with one name, or has
 * no key that can be used. The caller clears the set in any case.
 */
int jwks_parse(struct jwks *keys, const char *path, const char *text,
    size_t len, char *why);
void jwks_clear(struct jwks *keys);

/* Returns the key of that name, preferably one that can be used, or NULL. */
const struct jwk *jwks_find(const struct jwks *keys, const char *kid);
