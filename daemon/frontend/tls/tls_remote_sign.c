/* SPDX-License-Identifier: ISC */
/*
 * Signatures with keys that the key process holds: the part of
 * provider-signature(7) that libssl's server needs.
 */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rsa.h>
#include <string.h>

#include "tls_remote.h"
#include "util.h"

struct signing {
	const struct remote_key *key;
	size_t digest_len; /* 0: the algorithm has its own */
	int padding;
};

static void *
signing_new(void *provctx, const char *properties)
{
	struct signing *s = xcalloc(1, sizeof(*s));

	s->padding = RSA_PKCS1_PADDING;
	return s;
}

static void
signing_free(void *ctx)
{
	free(ctx);
}

static void *
signing_dup(void *ctx)
{
	struct signing *s = xcalloc(1, sizeof(*s));

	memcpy(s, ctx, sizeof(*s));
	return s;
}

static size_t
digest_len(const char *name)
{
	static const struct {
		const char *name, *also;
		size_t len;
	} digests[] = {
		{ "SHA2-256", "SHA256", 32 },
		{ "SHA2-384", "SHA384", 48 },
		{ "SHA2-512", "SHA512", 64 },
	};

	for (size_t i = 0; i < nitems(digests); i++)
		if (OPENSSL_strcasecmp(name, digests[i].name) == 0 ||
		    OPENSSL_strcasecmp(name, digests[i].also) == 0)
			return digests[i].len;
	return 0;
}

/* libssl passes the padding as a number, EVP as a name. */
static int
signing_set_params(void *ctx, const OSSL_PARAM params[])
{
	const OSSL_PARAM *p = params ? OSSL_PARAM_locate_const(params,
					   OSSL_SIGNATURE_PARAM_PAD_MODE)
				     : NULL;
	struct signing *s = ctx;

	if (p == NULL)
		return 1;
	if (p->data_type != OSSL_PARAM_UTF8_STRING)
		return OSSL_PARAM_get_int(p, &s->padding);
	if (strcmp(p->data, OSSL_PKEY_RSA_PAD_MODE_PSS) == 0)
		s->padding = RSA_PKCS1_PSS_PADDING;
	else if (strcmp(p->data, OSSL_PKEY_RSA_PAD_MODE_PKCSV15) == 0)
		s->padding = RSA_PKCS1_PADDING;
	else
		return 0;
	return 1;
}

static const OSSL_PARAM *
signing_settable_params(void *ctx, void *provctx)
{
	static const OSSL_PARAM types[] = {
		OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PAD_MODE, NULL, 0),
		OSSL_PARAM_utf8_string(
		    OSSL_SIGNATURE_PARAM_PSS_SALTLEN, NULL, 0),
		OSSL_PARAM_END,
	};

	return types;
}

static int
signing_start(
    void *ctx, const char *digest, void *data, const OSSL_PARAM params[])
{
	struct signing *s = ctx;

	s->key = data;
	if (digest != NULL && *digest != '\0') {
		s->digest_len = digest_len(digest);
		if (s->digest_len == 0)
			return 0;
	}
	return signing_set_params(ctx, params);
}

/* Returns the SignatureScheme of RFC 8446 section 4.2.3, or 0. */
static uint32_t
scheme_of(const struct signing *s)
{
	static const struct {
		const char *key;
		int padding; /* 0: any */
		size_t digest_len;
		uint32_t scheme;
	} schemes[] = {
		{ "RSA", RSA_PKCS1_PADDING, 32, 0x0401 },
		{ "RSA", RSA_PKCS1_PADDING, 48, 0x0501 },
		{ "RSA", RSA_PKCS1_PADDING, 64, 0x0601 },
		{ "RSA", RSA_PKCS1_PSS_PADDING, 32, 0x0804 },
		{ "RSA", RSA_PKCS1_PSS_PADDING, 48, 0x0805 },
		{ "RSA", RSA_PKCS1_PSS_PADDING, 64, 0x0806 },
		{ "EC", 0, 32, 0x0403 },
		{ "EC", 0, 48, 0x0503 },
		{ "EC", 0, 64, 0x0603 },
		{ "ED25519", 0, 0, 0x0807 },
	};

	for (size_t i = 0; i < nitems(schemes); i++)
		if (EVP_PKEY_is_a(s->key->public_key, schemes[i].key) &&
		    schemes[i].digest_len == s->digest_len &&
		    (schemes[i].padding == 0 ||
			schemes[i].padding == s->padding))
			return schemes[i].scheme;
	return 0;
}

static int
signing_make(void *ctx, unsigned char *sig, size_t *siglen, size_t sigsize,
    const unsigned char *tbs, size_t tbslen)
{
	const struct signing *s = ctx;
	uint8_t signature[CONTROL_SIGNATURE_MAX];
	uint32_t scheme = scheme_of(s);
	int n;

	if (sig == NULL) {
		*siglen = (size_t)EVP_PKEY_get_size(s->key->public_key);
		return 1;
	}
	if (scheme == 0)
		return 0;
	n = tls_key_sign(&s->key->key, scheme, tbs, tbslen, signature);
	if (n < 0 || (size_t)n > sigsize)
		return 0;
	memcpy(sig, signature, (size_t)n);
	*siglen = (size_t)n;
	return 1;
}

static const OSSL_DISPATCH signature_functions[] = {
	{ OSSL_FUNC_SIGNATURE_NEWCTX, (tls_function)signing_new },
	{ OSSL_FUNC_SIGNATURE_FREECTX, (tls_function)signing_free },
	{ OSSL_FUNC_SIGNATURE_DUPCTX, (tls_function)signing_dup },
	{ OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, (tls_function)signing_start },
	{ OSSL_FUNC_SIGNATURE_DIGEST_SIGN, (tls_function)signing_make },
	{ OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS,
	    (tls_function)signing_set_params },
	{ OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS,
	    (tls_function)signing_settable_params },
	{ 0, NULL },
};

const OSSL_ALGORITHM tls_remote_signatures[] = {
	{ "RSA:rsaEncryption:1.2.840.113549.1.1.1", TLS_REMOTE_PROPERTIES,
	    signature_functions, "RSA, elsewhere" },
	{ "ECDSA", TLS_REMOTE_PROPERTIES, signature_functions,
	    "ECDSA, elsewhere" },
	{ "ED25519:1.3.101.112", TLS_REMOTE_PROPERTIES, signature_functions,
	    "Ed25519, elsewhere" },
	{ NULL, NULL, NULL, NULL },
};
