/* SPDX-License-Identifier: ISC */
#include "tls_helper.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>

#include "rights.h"
#include "seqpacket.h"

/* An answer takes about a millisecond. Other clients should not wait longer
 * than this. */
#define DEADLINE_MS 2000

static struct helper_channel {
	const char *name, *missing;
	int newest, previous;
} channels[TLS_HELPERS] = {
	[TLS_HELPER_KEYS] = { "key process",
	    "the key process does not answer\n", -1, -1 },
	[TLS_HELPER_CERTIFICATES] = { "certificate process",
	    "the certificate process does not answer\n", -1, -1 },
};
static uint32_t epoch, last_serial;
static void (*hangs)(enum tls_helper who);

void
helper_init(void (*tell)(enum tls_helper who))
{
	hangs = tell;
}

void
helper_retire(void)
{
	for (int i = 0; i < TLS_HELPERS; i++) {
		if (channels[i].previous >= 0)
			close(channels[i].previous);
		channels[i].previous = -1;
	}
}

void
helper_set_channels(const int fds[TLS_HELPERS])
{
	helper_retire();
	for (int i = 0; i < TLS_HELPERS; i++) {
		channels[i].previous = channels[i].newest;
		channels[i].newest = fds[i];
		if (fds[i] >= 0)
			rights_refuse(fds[i]);
	}
	epoch++;
}

uint32_t
helper_epoch(void)
{
	return epoch;
}

static int
channel_of(enum tls_helper who, uint32_t of_epoch)
{
	if (of_epoch == epoch)
		return channels[who].newest;
	return of_epoch + 1 == epoch ? channels[who].previous : -1;
}

static int
wait_until(int channel, int64_t deadline, short events)
{
	struct pollfd p = { .fd = channel, .events = events };
	int64_t left = deadline - now_ms();
	int n;

	if (left <= 0)
		return -ETIMEDOUT;
	n = poll(&p, 1, (int)left);
	if (n < 0 && errno != EINTR)
		return -errno;
	return n == 0 ? -ETIMEDOUT : 0;
}

static int
ask_channel(
    int channel, enum control_type ask, const void *request, int64_t deadline)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, ask, request);
	while ((err = seqpacket_send(channel, b.data, b.len, NULL, 0)) ==
		   -EAGAIN &&
	       (err = wait_until(channel, deadline, POLLOUT)) == 0)
		continue;
	buf_clear(&b);
	return err;
}

/* Reads the answer. Answers to earlier requests that timed out are skipped. */
static int
hear(int channel, enum control_type type, void *answer, int64_t deadline)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX], err;
	size_t nfds;
	ssize_t n;

	for (;;) {
		n = seqpacket_recv(channel, packet, sizeof(packet), fds, &nfds);
		while (nfds > 0)
			close(fds[--nfds]);
		if (n == 0)
			return -EPIPE;
		if (n < 0 && n != -EAGAIN)
			return (int)n;
		if (n == -EAGAIN) {
			err = wait_until(channel, deadline, POLLIN);
			if (err < 0)
				return err;
			continue;
		}
		if (control_get(packet, (size_t)n, type, answer) < 0)
			return -EBADMSG;
		if (*(const uint32_t *)answer == last_serial)
			return 0;
	}
}

/* Closes the channel of a helper that does not answer, so that nobody waits for
 * it again. The broker ends it and starts another. */
static void
give_up(enum tls_helper who, uint32_t of_epoch)
{
	int *channel =
	    of_epoch == epoch ? &channels[who].newest : &channels[who].previous;

	close(*channel);
	*channel = -1;
	if (of_epoch == epoch)
		hangs(who);
}

int
helper_ask(enum tls_helper who, uint32_t of_epoch, enum control_type ask,
    void *request, enum control_type type, void *answer)
{
	int64_t deadline = now_ms() + DEADLINE_MS;
	int err, channel = channel_of(who, of_epoch);

	*(uint32_t *)request = ++last_serial;
	err =
	    channel < 0 ? -EPIPE : ask_channel(channel, ask, request, deadline);
	if (err == 0)
		err = hear(channel, type, answer, deadline);
	if (err < 0)
		log_error(err, "%s", channels[who].name);
	if (err == -ETIMEDOUT)
		give_up(who, of_epoch);
	return err;
}

void
helper_ask_all(void)
{
	for (int i = 0; i < TLS_HELPERS; i++) {
		struct control_alive ask, answer;

		if (channels[i].newest >= 0)
			helper_ask(
			    i, epoch, KEYS_PING, &ask, KEYS_ALIVE, &answer);
	}
}

/* Returns true if the other end is closed: the helper has died and will be
 * replaced. */
static bool
has_ended(int channel)
{
	struct pollfd p = { .fd = channel };

	return poll(&p, 1, 0) > 0;
}

const char *
helper_reason(void)
{
	for (int i = 0; i < TLS_HELPERS; i++)
		if (channels[i].newest >= 0 && has_ended(channels[i].newest))
			return channels[i].missing;
	return NULL;
}

/*
 * An OpenSSL provider for keys that the key process holds: signatures that it
 * is asked for, and key management that knows only the public key.
 */

/* Our own parameters, from which a key is made. */
#define PARAM_PUBLIC "execd-public-key" /* pointer to EVP_PKEY */
#define PARAM_NUMBER "execd-key-number"

#define PROPERTIES "provider=execd"

/* A key as the front-end knows it: its number, and which key process has it. */
struct tls_key {
	uint32_t epoch; /* helper_epoch() when the key was made */
	uint32_t number;
};

struct remote_key {
	EVP_PKEY *public_key; /* a reference, owned */
	struct tls_key key;
};

typedef void (*tls_function)(void); /* element of an OSSL_DISPATCH */

/* --- signatures --------------------------------------------------------- */

/* Signs with a SignatureScheme of RFC 8446. Returns the length of the
 * signature, or -errno: those of helper_ask(), -EPERM (the key process
 * refused), -EMSGSIZE. */
static int
ask_signature(const struct tls_key *key, uint32_t scheme, const void *tbs,
    size_t len, uint8_t signature[CONTROL_SIGNATURE_MAX])
{
	struct control_sign request = { .key = key->number, .scheme = scheme };
	struct control_signed answer;
	int err;

	if (len > sizeof(request.tbs))
		return -EMSGSIZE;
	memcpy(request.tbs, tbs, len);
	request.len = (uint32_t)len;
	err = helper_ask(TLS_HELPER_KEYS, key->epoch, KEYS_SIGN, &request,
	    KEYS_SIGNED, &answer);
	if (err < 0)
		return err;
	if (answer.len > sizeof(answer.signature))
		return -EBADMSG;
	if (answer.len == 0) {
		log_error(0,
		    "key process: it made no signature with key %u and scheme "
		    "0x%04x; its own line says why",
		    key->number, scheme);
		return -EPERM;
	}
	memcpy(signature, answer.signature, answer.len);
	return (int)answer.len;
}

/* The part of provider-signature(7) that libssl's server needs. */
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
	n = ask_signature(&s->key->key, scheme, tbs, tbslen, signature);
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

static const OSSL_ALGORITHM signatures[] = {
	{ "RSA:rsaEncryption:1.2.840.113549.1.1.1", PROPERTIES,
	    signature_functions, "RSA, elsewhere" },
	{ "ECDSA", PROPERTIES, signature_functions, "ECDSA, elsewhere" },
	{ "ED25519:1.3.101.112", PROPERTIES, signature_functions,
	    "Ed25519, elsewhere" },
	{ NULL, NULL, NULL, NULL },
};

/* --- key management ----------------------------------------------------- */

/* The part of provider-keymgmt(7) that libssl's server needs. */
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
	{ "RSA:rsaEncryption:1.2.840.113549.1.1.1", PROPERTIES,
	    keymgmt_functions, "RSA, elsewhere" },
	{ "EC:id-ecPublicKey:1.2.840.10045.2.1", PROPERTIES,
	    ec_keymgmt_functions, "EC, elsewhere" },
	{ "ED25519:1.3.101.112", PROPERTIES, keymgmt_functions,
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
		return signatures;
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
	    name ? EVP_PKEY_CTX_new_from_name(NULL, name, PROPERTIES) : NULL;
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
