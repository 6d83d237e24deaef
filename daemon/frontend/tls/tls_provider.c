/* SPDX-License-Identifier: ISC */
/*
 * An OpenSSL provider for keys that the key process holds: key management that
 * knows only the public key, as far as libssl's server needs it
 * (provider-keymgmt(7)).
 */
#include "tls_provider.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdlib.h>

#include "log.h"
#include "tls_helper.h"
#include "tls_key.h"
#include "tls_remote.h"
#include "util.h"

/* Our own parameters, from which a key is made. */
#define PARAM_PUBLIC "execd-public-key" /* pointer to EVP_PKEY */
#define PARAM_NUMBER "execd-key-number"

/* --- key management ----------------------------------------------------- */

static void *
key_new(void *provctx)
{
	return xcalloc(1, sizeof(struct remote_key));
}

static void
key_free(void *data)
{
	struct remote_key *key = data;

	if (key != NULL)
		EVP_PKEY_free(key->public_key);
	free(key);
}

static int
key_has(const void *data, int selection)
{
	const struct remote_key *key = data;

	return key != NULL && key->public_key != NULL;
}

static int
key_match(const void *a, const void *b, int selection)
{
	const struct remote_key *one = a, *other = b;

	return EVP_PKEY_eq(one->public_key, other->public_key) == 1;
}

/* Imports a key that tls_provider_key() makes; nobody else uses these
 * parameters. */
static int
key_import(void *data, int selection, const OSSL_PARAM params[])
{
	const OSSL_PARAM *p = OSSL_PARAM_locate_const(params, PARAM_PUBLIC);
	const OSSL_PARAM *n = OSSL_PARAM_locate_const(params, PARAM_NUMBER);
	struct remote_key *key = data;
	const void *pkey;
	size_t len;

	if (p == NULL || n == NULL ||
	    !OSSL_PARAM_get_octet_ptr(p, &pkey, &len) ||
	    !OSSL_PARAM_get_uint32(n, &key->key.number))
		return 0;
	key->key.epoch = helper_epoch();
	key->public_key = (EVP_PKEY *)(uintptr_t)pkey;
	return EVP_PKEY_up_ref(key->public_key);
}

static const OSSL_PARAM *
key_import_types(int selection)
{
	static const OSSL_PARAM types[] = {
		OSSL_PARAM_octet_ptr(PARAM_PUBLIC, NULL, 0),
		OSSL_PARAM_uint32(PARAM_NUMBER, NULL),
		OSSL_PARAM_END,
	};

	return types;
}

/* Exports the public key. The private key is not in this process. */
static int
key_export(void *data, int selection, OSSL_CALLBACK *take, void *arg)
{
	struct remote_key *key = data;
	OSSL_PARAM *params = NULL;
	int done;

	if (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY ||
	    EVP_PKEY_todata(key->public_key, EVP_PKEY_PUBLIC_KEY, &params) != 1)
		return 0;
	done = take(params, arg);
	OSSL_PARAM_free(params);
	return done;
}

static const OSSL_PARAM *
key_export_types(int selection)
{
	static const OSSL_PARAM types[] = {
		OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
		OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, NULL, 0),
		OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, NULL, 0),
		OSSL_PARAM_END,
	};

	return types;
}

static int
key_get_params(void *data, OSSL_PARAM params[])
{
	const struct remote_key *key = data;

	return EVP_PKEY_get_params(key->public_key, params);
}

static const OSSL_PARAM *
key_gettable_params(void *provctx)
{
	static const OSSL_PARAM types[] = {
		OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL),
		OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
		OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
		OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_DEFAULT_DIGEST, NULL, 0),
		OSSL_PARAM_utf8_string(
		    OSSL_PKEY_PARAM_MANDATORY_DIGEST, NULL, 0),
		OSSL_PARAM_END,
	};

	return types;
}

static const char *
ec_operation(int operation)
{
	return operation == OSSL_OP_SIGNATURE ? "ECDSA" : NULL;
}

#define KEYMGMT_FUNCTIONS                                                      \
	{ OSSL_FUNC_KEYMGMT_NEW, (tls_function)key_new },                      \
	    { OSSL_FUNC_KEYMGMT_FREE, (tls_function)key_free },                \
	    { OSSL_FUNC_KEYMGMT_HAS, (tls_function)key_has },                  \
	    { OSSL_FUNC_KEYMGMT_MATCH, (tls_function)key_match },              \
	    { OSSL_FUNC_KEYMGMT_IMPORT, (tls_function)key_import },            \
	    { OSSL_FUNC_KEYMGMT_IMPORT_TYPES,                                  \
		    (tls_function)key_import_types },                          \
	    { OSSL_FUNC_KEYMGMT_EXPORT, (tls_function)key_export },            \
	    { OSSL_FUNC_KEYMGMT_EXPORT_TYPES,                                  \
		    (tls_function)key_export_types },                          \
	    { OSSL_FUNC_KEYMGMT_GET_PARAMS, (tls_function)key_get_params },    \
	{                                                                      \
		OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS,                             \
		    (tls_function)key_gettable_params                          \
	}

static const OSSL_DISPATCH keymgmt_functions[] = { KEYMGMT_FUNCTIONS,
	{ 0, NULL } };
static const OSSL_DISPATCH ec_keymgmt_functions[] = { KEYMGMT_FUNCTIONS,
	{ OSSL_FUNC_KEYMGMT_QUERY_OPERATION_NAME, (tls_function)ec_operation },
	{ 0, NULL } };

static const OSSL_ALGORITHM keymgmts[] = {
	{ "RSA:rsaEncryption:1.2.840.113549.1.1.1", TLS_REMOTE_PROPERTIES,
	    keymgmt_functions, "RSA, elsewhere" },
	{ "EC:id-ecPublicKey:1.2.840.10045.2.1", TLS_REMOTE_PROPERTIES,
	    ec_keymgmt_functions, "EC, elsewhere" },
	{ "ED25519:1.3.101.112", TLS_REMOTE_PROPERTIES, keymgmt_functions,
	    "Ed25519, elsewhere" },
	{ NULL, NULL, NULL, NULL },
};

/* --- the provider ------------------------------------------------------- */

static const OSSL_ALGORITHM *
query(void *provctx, int operation, int *no_cache)
{
	*no_cache = 0;
	switch (operation) {
	case OSSL_OP_KEYMGMT:
		return keymgmts;
	case OSSL_OP_SIGNATURE:
		return tls_remote_signatures;
	default:
		return NULL;
	}
}

static const OSSL_DISPATCH provider_functions[] = {
	{ OSSL_FUNC_PROVIDER_QUERY_OPERATION, (tls_function)query },
	{ 0, NULL },
};

static int
provider_start(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
    const OSSL_DISPATCH **out, void **provctx)
{
	static int only;

	*out = provider_functions;
	*provctx = &only;
	return 1;
}

/* Operations that name no provider use the default one, because our keys can
 * only sign. */
void
tls_provider_init(void)
{
	if (OSSL_PROVIDER_load(NULL, "default") == NULL ||
	    OSSL_PROVIDER_add_builtin(NULL, "execd", provider_start) != 1 ||
	    OSSL_PROVIDER_load(NULL, "execd") == NULL ||
	    EVP_set_default_properties(NULL, "?provider=default") != 1)
		log_fatal("OpenSSL's providers cannot be set up");
}

EVP_PKEY *
tls_provider_key(EVP_PKEY *public_key, uint32_t number)
{
	const char *name = EVP_PKEY_get0_type_name(public_key);
	EVP_PKEY_CTX *ctx =
	    name ? EVP_PKEY_CTX_new_from_name(NULL, name, TLS_REMOTE_PROPERTIES)
		 : NULL;
	void *pointer = public_key;
	EVP_PKEY *key = NULL;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_ptr(PARAM_PUBLIC, &pointer, 0),
		OSSL_PARAM_construct_uint32(PARAM_NUMBER, &number),
		OSSL_PARAM_construct_end(),
	};

	if (ctx != NULL && EVP_PKEY_fromdata_init(ctx) == 1)
		EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params);
	EVP_PKEY_CTX_free(ctx);
	return key;
}
