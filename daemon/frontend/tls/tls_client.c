/* SPDX-License-Identifier: ISC */
/*
 * Certificates of clients.
 */
#include "tls_client.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "tls_helper.h"
#include "util.h"

/* Data of a context: which helper to ask, and for which listener. */
struct judge {
	uint32_t epoch;
	uint32_t listener;
};

/* Data of a connection: the answer of the certificate process. */
struct judgement {
	uint32_t error;
	struct control_cert_verdict cert_verdict;
};

/* indexes for CRYPTO_set_ex_data(3) */
static int judge_index = -1, judgement_index = -1;

static void
free_data(void *parent, void *data, CRYPTO_EX_DATA *ad, int index, long argl,
    void *argp)
{
	free(data);
}

void
tls_client_init(void)
{
	judge_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_data);
	judgement_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_data);
	if (judge_index < 0 || judgement_index < 0)
		log_fatal("TLS: no place for client certificates");
}

/* Copies the chain as the client sent it. Returns 0 or an X509_V_ERR_*. */
static int
put_chain(STACK_OF(X509) * chain, struct control_verify *request)
{
	uint8_t *at = request->chain;

	for (int i = 0; i < sk_X509_num(chain); i++) {
		const X509 *x = sk_X509_value(chain, i);
		int n = i2d_X509(x, NULL);

		if (n < 0)
			return X509_V_ERR_UNSPECIFIED;
		if ((size_t)n > sizeof(request->chain) - request->len)
			return X509_V_ERR_CERT_CHAIN_TOO_LONG;
		i2d_X509(x, &at);
		request->len += (uint32_t)n;
	}
	return X509_V_OK;
}

static int
ask(const struct judge *j, X509_STORE_CTX *store, struct judgement *result)
{
	struct control_verify request = { .listener = j->listener };
	struct control_verified answer;
	int error = put_chain(X509_STORE_CTX_get0_untrusted(store), &request);

	if (error != X509_V_OK)
		return error;
	if (helper_ask(TLS_HELPER_CERTIFICATES, j->epoch, KEYS_VERIFY, &request,
		KEYS_VERIFIED, &answer) < 0)
		return X509_V_ERR_APPLICATION_VERIFICATION;
	result->cert_verdict = answer.cert_verdict;
	return (int)answer.error;
}

/* Replaces X509_verify_cert(3). libssl turns the error into an alert. */
static int
verify_cb(X509_STORE_CTX *store, void *arg)
{
	SSL *tls = X509_STORE_CTX_get_ex_data(
	    store, SSL_get_ex_data_X509_STORE_CTX_idx());
	const struct judge *j =
	    SSL_CTX_get_ex_data(SSL_get_SSL_CTX(tls), judge_index);
	struct judgement *result = xcalloc(1, sizeof(*result));

	free(SSL_get_ex_data(tls, judgement_index));
	if (SSL_set_ex_data(tls, judgement_index, result) != 1)
		log_fatal("TLS: out of memory");
	result->error = (uint32_t)ask(j, store, result);
	X509_STORE_CTX_set_error(store, (int)result->error);
	return result->error == X509_V_OK;
}

int
tls_client_ask(SSL_CTX *ctx, const struct control_listener *l)
{
	struct judge *j = xcalloc(1, sizeof(*j));
	int mode = SSL_VERIFY_PEER;

	j->epoch = helper_epoch();
	j->listener = l->id;
	if (SSL_CTX_set_ex_data(ctx, judge_index, j) != 1) {
		free(j);
		return -ENOMEM;
	}
	if (l->client_certificate == CLIENT_CERTIFICATE_REQUIRED)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(ctx, mode, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, verify_cb, NULL);
	return 0;
}

const struct control_cert_verdict *
tls_client_verdict(const SSL *tls)
{
	const struct judgement *j = SSL_get_ex_data(tls, judgement_index);

	return j != NULL && j->error == X509_V_OK ? &j->cert_verdict : NULL;
}

int
tls_client_refusal(const SSL *tls, const char **why)
{
	static char text[CONTROL_SUBJECT_MAX + 128];
	const struct judgement *j = SSL_get_ex_data(tls, judgement_index);

	if (j == NULL || j->error == X509_V_OK)
		return 0;
	if (j->error == X509_V_ERR_APPLICATION_VERIFICATION) {
		*why = "the client's certificate could not be verified";
		return -EIO;
	}
	snprintf(text, sizeof(text), "the client's certificate (%s): %s",
	    j->cert_verdict.subject, X509_verify_cert_error_string(j->error));
	*why = text;
	return -EACCES;
}
