/* SPDX-License-Identifier: ISC */
/*
 * Verifies certificates of clients, in the certificate process.
 */
#include "base.h"
#include "keys.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/mman.h>

#define CHAIN_LENGTH_MAX 8 /* certificates between the client and the CA */
#define SECURITY_LEVEL	 2 /* 112 bits; see SSL_CTX_set_security_level(3) */

static struct trust {
	uint32_t listener;
	X509_STORE *store;
} trusts[CONTROL_LISTENERS_MAX];
static size_t ntrusts;

static int
no_passphrase(char *buf, int size, int writing, void *arg)
{
	return -1;
}

static int
take_ca(X509_STORE *store, BIO *bio)
{
	X509 *x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
	int ok = x != NULL && X509_STORE_add_cert(store, x) == 1;

	X509_free(x);
	return ok;
}

static int
take_crl(X509_STORE *store, BIO *bio)
{
	X509_CRL *crl = PEM_read_bio_X509_CRL(bio, NULL, no_passphrase, NULL);
	int ok = crl != NULL && X509_STORE_add_crl(store, crl) == 1;

	X509_CRL_free(crl);
	return ok;
}

/* Calls take() until the text ends. Returns how many objects there were. */
static int
each(int fd, X509_STORE *store, int (*take)(X509_STORE *store, BIO *bio))
{
	struct stat st;
	void *text;
	BIO *bio;
	int n = 0;

	if (fstat(fd, &st) < 0 || st.st_size == 0)
		return 0;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return 0;
	bio = BIO_new_mem_buf(text, (int)st.st_size);
	while (bio != NULL && n < CONTROL_TRUSTED_MAX && take(store, bio) == 1)
		n++;
	BIO_free(bio);
	munmap(text, (size_t)st.st_size);
	ERR_clear_error(); /* the end of the text also counts as an error */
	return n;
}

int
trust_add(uint32_t listener, int ca_fd, int crl_fd)
{
	X509_STORE *store = X509_STORE_new();

	if (store == NULL || ntrusts == nitems(trusts) ||
	    each(ca_fd, store, take_ca) == 0 ||
	    (crl_fd >= 0 && each(crl_fd, store, take_crl) == 0)) {
		X509_STORE_free(store);
		return -EINVAL;
	}
	if (crl_fd >= 0)
		X509_STORE_set_flags(
		    store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	trusts[ntrusts].listener = listener;
	trusts[ntrusts++].store = store;
	return 0;
}

bool
trust_is_there(void)
{
	return ntrusts > 0;
}

static X509_STORE *
find(uint32_t listener)
{
	for (size_t i = 0; i < ntrusts; i++)
		if (trusts[i].listener == listener)
			return trusts[i].store;
	return NULL;
}

static void
free_chain(STACK_OF(X509) * chain)
{
	sk_X509_pop_free(chain, X509_free);
}

/* Returns NULL if any part is not a certificate. */
static STACK_OF(X509) * read_chain(const uint8_t *p, size_t len)
{
	STACK_OF(X509) *chain = sk_X509_new_null();
	const uint8_t *end = p + len;

	while (chain != NULL && p < end) {
		X509 *x = d2i_X509(NULL, &p, end - p);

		if (x == NULL || sk_X509_push(chain, x) == 0) {
			X509_free(x);
			free_chain(chain);
			return NULL;
		}
	}
	return chain;
}

/* Fills in digest and subject in the form of execd.conf(5). A subject that does
 * not fit is left empty and so matches no identity. */
static void
describe(X509 *x, struct control_cert_verdict *v)
{
	unsigned len = sizeof(v->digest);
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long n;

	X509_digest(x, EVP_sha256(), v->digest, &len);
	if (bio != NULL &&
	    X509_NAME_print_ex(
		bio, X509_get_subject_name(x), 0, XN_FLAG_RFC2253) >= 0 &&
	    (n = BIO_get_mem_data(bio, &text)) < (long)sizeof(v->subject))
		memcpy(v->subject, text, (size_t)n);
	BIO_free(bio);
}

static uint32_t
judge(X509_STORE *store, STACK_OF(X509) * chain)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	uint32_t error = X509_V_ERR_OUT_OF_MEM;
	X509_VERIFY_PARAM *param;
	bool good = false;

	if (ctx != NULL &&
	    X509_STORE_CTX_init(ctx, store, sk_X509_value(chain, 0), chain) ==
		1 &&
	    X509_STORE_CTX_set_default(ctx, "ssl_client") == 1) {
		param = X509_STORE_CTX_get0_param(ctx);
		X509_VERIFY_PARAM_set_depth(param, CHAIN_LENGTH_MAX);
		X509_VERIFY_PARAM_set_auth_level(param, SECURITY_LEVEL);
		good = X509_verify_cert(ctx) == 1;
		error = (uint32_t)X509_STORE_CTX_get_error(ctx);
	}
	X509_STORE_CTX_free(ctx);
	/* When memory runs out, OpenSSL may set no error. */
	if (!good && error == X509_V_OK)
		return X509_V_ERR_UNSPECIFIED;
	return good ? X509_V_OK : error;
}

int
trust_verify(
    const struct control_verify *request, struct control_verified *answer)
{
	X509_STORE *store = find(request->listener);
	STACK_OF(X509) * chain;

	if (store == NULL || request->len > sizeof(request->chain))
		return -EPERM;
	chain = read_chain(request->chain, request->len);
	answer->serial = request->serial;
	answer->error = X509_V_ERR_UNSPECIFIED;
	if (chain != NULL && sk_X509_num(chain) > 0) {
		describe(sk_X509_value(chain, 0), &answer->cert_verdict);
		answer->error = judge(store, chain);
	}
	free_chain(chain);
	ERR_clear_error();
	answer->cert_verdict.listener = request->listener;
	answer->cert_verdict.made_ms = (uint64_t)now_ms();
	return 0;
}
