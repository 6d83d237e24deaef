/* SPDX-License-Identifier: ISC */
#include "jwks.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "base64.h"
#include "conf_value.h"
#include "json.h"

#define P256_BYTES    32
#define P384_BYTES    48
#define ED25519_BYTES 32

const struct jwk_algorithm jwk_algorithms[JWK_ALGORITHMS] = {
	{ "RS256", "RSA", NULL, "SHA256", false, 0 },
	{ "PS256", "RSA", NULL, "SHA256", true, 0 },
	{ "ES256", "EC", "P-256", "SHA256", false, P256_BYTES },
	{ "ES384", "EC", "P-384", "SHA384", false, P384_BYTES },
	{ "EdDSA", "OKP", "Ed25519", NULL, false, ED25519_BYTES },
};

const struct jwk_algorithm *
jwk_find_algorithm(const char *name)
{
	for (size_t i = 0; i < nitems(jwk_algorithms); i++)
		if (strcmp(name, jwk_algorithms[i].name) == 0)
			return &jwk_algorithms[i];
	return NULL;
}

/* --- numbers ------------------------------------------------------------ */

/* Reads the bytes of a base64url member; they are owned. Returns false if there
 * is no such member. */
static bool
take_bytes(const struct json_value *key, const char *member, uint8_t **bytes,
    size_t *len)
{
	const struct json_value *v = json_get(key, member);
	ssize_t n;

	*bytes = NULL;
	if (v == NULL || v->type != JSON_STRING)
		return false;
	n = base64_decode_url(v->text.ptr, v->text.len, bytes);
	*len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

static EVP_PKEY *
make_key(const char *type, OSSL_PARAM_BLD *params)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM *list = OSSL_PARAM_BLD_to_param(params);
	EVP_PKEY *key = NULL;

	if (ctx == NULL || list == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, list) != 1)
		key = NULL;
	OSSL_PARAM_free(list);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

/* Checks that the point is on its curve, or that the modulus is not one that
 * anybody can factor. */
static bool
is_sound(EVP_PKEY *key)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
	bool sound = ctx != NULL && EVP_PKEY_public_check(ctx) == 1;

	EVP_PKEY_CTX_free(ctx);
	return sound;
}

/* --- keys of each kind --------------------------------------------------- */

/* The sizes are checked before the key is made, because they bound the cost of
 * checking it. */
static int
check_rsa(const BIGNUM *n, const BIGNUM *e, char *why)
{
	int bits = BN_num_bits(n);

	if (bits < JWKS_RSA_BITS_MIN || bits > JWKS_RSA_BITS_MAX)
		return conf_refuse(why,
		    "its modulus n has %d bits, not %d to %d", bits,
		    JWKS_RSA_BITS_MIN, JWKS_RSA_BITS_MAX);
	if (BN_num_bits(e) > 32 || BN_num_bits(e) < 2 || !BN_is_odd(e))
		return conf_refuse(
		    why, "its exponent e is not an odd number from 3 to 2^32");
	return 0;
}

static int
take_rsa(const struct json_value *v, const struct jwk_algorithm *a,
    EVP_PKEY **key, char *why)
{
	_cleanup_free_ uint8_t *n = NULL, *e = NULL;
	size_t n_len, e_len;
	OSSL_PARAM_BLD *params;
	BIGNUM *modulus, *exponent;
	int err;

	if (!take_bytes(v, "n", &n, &n_len) || !take_bytes(v, "e", &e, &e_len))
		return conf_refuse(why, "its n or e is not base64url");
	params = OSSL_PARAM_BLD_new();
	modulus = BN_bin2bn(n, (int)n_len, NULL);
	exponent = BN_bin2bn(e, (int)e_len, NULL);
	err = check_rsa(modulus, exponent, why);
	if (err == 0) {
		OSSL_PARAM_BLD_push_BN(params, OSSL_PKEY_PARAM_RSA_N, modulus);
		OSSL_PARAM_BLD_push_BN(params, OSSL_PKEY_PARAM_RSA_E, exponent);
		*key = make_key("RSA", params);
	}
	OSSL_PARAM_BLD_free(params);
	BN_free(modulus);
	BN_free(exponent);
	return err;
}

/* Takes the coordinates. Each has exactly the length that the curve needs (RFC
 * 7518 section 6.2.1). A byte before them says that both are there. */
static int
take_ec(const struct json_value *v, const struct jwk_algorithm *a,
    EVP_PKEY **key, char *why)
{
	_cleanup_free_ uint8_t *x = NULL, *y = NULL;
	uint8_t point[1 + 2 * P384_BYTES] = { 4 };
	size_t x_len, y_len;
	OSSL_PARAM_BLD *params;

	if (!take_bytes(v, "x", &x, &x_len) ||
	    !take_bytes(v, "y", &y, &y_len) || x_len != a->width ||
	    y_len != a->width)
		return conf_refuse(
		    why, "its x or y is not %zu bytes in base64url", a->width);
	memcpy(point + 1, x, x_len);
	memcpy(point + 1 + x_len, y, y_len);
	params = OSSL_PARAM_BLD_new();
	OSSL_PARAM_BLD_push_utf8_string(
	    params, OSSL_PKEY_PARAM_GROUP_NAME, a->crv, 0);
	OSSL_PARAM_BLD_push_octet_string(
	    params, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + x_len + y_len);
	*key = make_key("EC", params);
	OSSL_PARAM_BLD_free(params);
	return 0;
}

static int
take_ed25519(const struct json_value *v, const struct jwk_algorithm *a,
    EVP_PKEY **key, char *why)
{
	_cleanup_free_ uint8_t *x = NULL;
	size_t x_len;

	if (!take_bytes(v, "x", &x, &x_len) || x_len != a->width)
		return conf_refuse(
		    why, "its x is not %zu bytes in base64url", a->width);
	*key = EVP_PKEY_new_raw_public_key_ex(NULL, a->crv, NULL, x, x_len);
	return 0;
}

static const struct {
	const char *kty;
	int (*take)(const struct json_value *v, const struct jwk_algorithm *a,
	    EVP_PKEY **key, char *why);
} kinds[] = {
	{ "RSA", take_rsa },
	{ "EC", take_ec },
	{ "OKP", take_ed25519 },
};

static int
take_numbers(struct jwk *k, const struct json_value *v,
    const struct jwk_algorithm *a, char *why)
{
	EVP_PKEY *key = NULL;
	int err = -EINVAL;

	for (size_t i = 0; i < nitems(kinds); i++)
		if (strcmp(kinds[i].kty, a->kty) == 0)
			err = kinds[i].take(v, a, &key, why);
	if (err == 0 && (key == NULL || !is_sound(key)))
		err = conf_refuse(
		    why, "its numbers do not make a key of kty %s", a->kty);
	if (err == 0)
		k->key = key;
	else
		EVP_PKEY_free(key);
	ERR_clear_error();
	return err;
}

/* --- what a key is for --------------------------------------------------- */

static bool
fits(const struct jwk_algorithm *a, const struct json_value *v)
{
	return json_is(json_get(v, "kty"), a->kty) &&
	       (a->crv == NULL || json_is(json_get(v, "crv"), a->crv));
}

/* Finds the rows that the key may verify: those with its kty and crv, or only
 * one if the key has `alg`. */
static int
take_algorithms(struct jwk *k, const struct json_value *v,
    const struct jwk_algorithm **first, char *why)
{
	const struct json_value *alg = json_get(v, "alg");
	bool known = false;

	*first = NULL;
	for (size_t i = JWK_ALGORITHMS; i-- > 0;) {
		const struct jwk_algorithm *a = &jwk_algorithms[i];

		if (!fits(a, v))
			continue;
		known = true;
		if (alg != NULL && !json_is(alg, a->name))
			continue;
		k->algorithms |= 1u << i;
		*first = a;
	}
	if (!known)
		return conf_refuse(why,
		    "its kty and crv are not RSA, EC P-256, EC P-384 or OKP "
		    "Ed25519");
	return *first
		   ? 0
		   : conf_refuse(why, "its alg is not one for its kty and crv");
}

static bool
contains(const struct json_value *list, const char *text)
{
	if (list->type != JSON_ARRAY)
		return false;
	for (const struct json_value *v = list->first; v != NULL; v = v->next)
		if (json_is(v, text))
			return true;
	return false;
}

/* A private key beside its public half is a mistake: everybody who could read
 * the file can sign. */
static int
check_use(const struct json_value *v, char *why)
{
	const struct json_value *use = json_get(v, "use");
	const struct json_value *ops = json_get(v, "key_ops");

	if (json_get(v, "d") != NULL || json_get(v, "k") != NULL)
		return conf_refuse(why, "it is not a public key");
	if (use != NULL && !json_is(use, "sig"))
		return conf_refuse(why, "its use is not sig");
	if (ops != NULL && !contains(ops, "verify"))
		return conf_refuse(why, "its key_ops do not contain verify");
	return 0;
}

static int
take_kid(struct jwk *k, const struct json_value *v, char *why)
{
	const struct json_value *kid = json_get(v, "kid");

	if (kid == NULL || kid->type != JSON_STRING || kid->text.len == 0 ||
	    kid->text.len >= CONTROL_KID_MAX ||
	    memchr(kid->text.ptr, '\0', kid->text.len) != NULL)
		return conf_refuse(why,
		    "its kid is not a text of 1 to %d bytes",
		    CONTROL_KID_MAX - 1);
	k->kid = xstrndup(kid->text.ptr, kid->text.len);
	return 0;
}

static int
take_key(struct jwk *k, const struct json_value *v, char *why)
{
	const struct jwk_algorithm *first;

	if (take_kid(k, v, why) < 0 || check_use(v, why) < 0 ||
	    take_algorithms(k, v, &first, why) < 0)
		return -EINVAL;
	return take_numbers(k, v, first, why);
}

/* --- the set ------------------------------------------------------------- */

static int
check_twins(const struct jwks *keys, char *why)
{
	for (size_t i = 0; i < keys->count; i++)
		for (size_t j = 0; j < i; j++)
			if (keys->items[i].key != NULL &&
			    keys->items[j].key != NULL &&
			    strcmp(keys->items[i].kid, keys->items[j].kid) == 0)
				return conf_refuse(why,
				    "keys %zu and %zu have the same kid "
				    "`%.100s`",
				    j + 1, i + 1, keys->items[i].kid);
	return 0;
}

static int
take_keys(struct jwks *keys, const struct json_value *list, char *why)
{
	size_t usable = 0;

	keys->items = xcalloc(list->count + 1, sizeof(*keys->items));
	for (const struct json_value *v = list->first; v != NULL; v = v->next) {
		struct jwk *k = &keys->items[keys->count++];

		if (take_key(k, v, why) < 0)
			k->fault = xstrdup(why);
		usable += k->key != NULL;
	}
	if (usable > 0)
		return check_twins(keys, why);
	if (keys->count == 0)
		return conf_refuse(why, "`keys` is empty");
	return conf_refuse(why,
	    "none of its %zu keys can be used; the first: %.200s", keys->count,
	    keys->items[0].fault);
}

static void
warn_of_faults(const struct jwks *keys, const char *path)
{
	for (size_t i = 0; i < keys->count; i++) {
		const struct jwk *k = &keys->items[i];

		if (k->fault != NULL)
			log_warn(0, "%s: key %zu (kid `%s`) is not used: %s",
			    path, i + 1, k->kid ? k->kid : "", k->fault);
	}
}

int
jwks_parse(struct jwks *keys, const char *path, const char *text, size_t len,
    char *why)
{
	const struct json_value *list;
	struct json_doc doc;
	int err;

	*keys = (struct jwks){ 0 };
	if (json_parse(&doc, text, len) < 0)
		err = conf_refuse(why, "is not JSON: %s", doc.error);
	else if ((list = json_get(doc.root, "keys")) == NULL ||
		 list->type != JSON_ARRAY)
		err = conf_refuse(why,
		    "is not a JSON Web Key Set, an object with a list `keys`");
	else if (list->count > JWKS_KEYS_MAX)
		err =
		    conf_refuse(why, "holds %zu keys; at most %d are possible",
			list->count, JWKS_KEYS_MAX);
	else
		err = take_keys(keys, list, why);
	json_clear(&doc);
	if (err == 0)
		warn_of_faults(keys, path);
	return err;
}

void
jwks_clear(struct jwks *keys)
{
	for (size_t i = 0; i < keys->count; i++) {
		free(keys->items[i].kid);
		free(keys->items[i].fault);
		EVP_PKEY_free(keys->items[i].key);
	}
	free(keys->items);
	*keys = (struct jwks){ 0 };
}

const struct jwk *
jwks_find(const struct jwks *keys, const char *kid)
{
	const struct jwk *found = NULL;

	for (size_t i = 0; i < keys->count; i++) {
		const struct jwk *k = &keys->items[i];

		if (k->kid != NULL && (found == NULL || found->key == NULL) &&
		    strcmp(kid, k->kid) == 0)
			found = k;
	}
	return found;
}
