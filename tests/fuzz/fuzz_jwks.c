/* SPDX-License-Identifier: ISC */
/*
 * jwks: whatever a key set says, its keys are within the limits, each name
 * means one of them, and none verifies what nobody signed with it. The input's
 * first line is a key set, the rest a signature.
 */
#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "conf_value.h"
#include "jwks.h"
#include "jwt.h"
#include "log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
check_limits(const struct jwk *k)
{
	assert(k->kid[0] != '\0' && strlen(k->kid) < CONTROL_KID_MAX);
	assert(k->algorithms != 0 && k->algorithms < 1u << JWK_ALGORITHMS);
	if (EVP_PKEY_is_a(k->key, "RSA"))
		assert(EVP_PKEY_get_bits(k->key) >= JWKS_RSA_BITS_MIN &&
		       EVP_PKEY_get_bits(k->key) <= JWKS_RSA_BITS_MAX);
}

/* Not of Ed25519: its weakest keys take some signatures of anything. */
static void
check_signature(
    const struct jwks *keys, const struct jwk *k, struct slice signature)
{
	const struct jwt_rules rules = { .keys = keys };
	struct control_token_header named = { 0 };
	char why[CONF_WHY_MAX];

	strcpy(named.kid, k->kid);
	for (size_t i = 0; i + 1 < JWK_ALGORITHMS; i++) {
		strcpy(named.alg, jwk_algorithms[i].name);
		assert(jwt_check_signature(&rules, &named, SLICE("nobody's"),
			   signature, why) < 0);
		assert(why[0] != '\0');
	}
}

static void
check_key(const struct jwks *keys, const struct jwk *k, struct slice signature)
{
	assert((k->key == NULL) == (k->fault != NULL));
	if (k->key == NULL)
		return;
	check_limits(k);
	assert(jwks_find(keys, k->kid) == k);
	check_signature(keys, k, signature);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *line = len > 0 ? memchr(data, '\n', len) : NULL;
	size_t n = line ? (size_t)(line - data) : len;
	struct slice signature = { (const char *)data + n + (line != NULL),
		len - n - (line != NULL) };
	char why[CONF_WHY_MAX] = "";
	struct jwks keys;

	log_set_level(LOG_LEVEL_NOTHING);
	if (jwks_parse(&keys, "keys", (const char *)data, n, why) < 0) {
		assert(why[0] != '\0');
	} else {
		assert(keys.count > 0 && keys.count <= JWKS_KEYS_MAX);
		for (size_t i = 0; i < keys.count; i++)
			check_key(&keys, &keys.items[i], signature);
	}
	jwks_clear(&keys);
	return 0;
}
