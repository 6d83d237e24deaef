/* SPDX-License-Identifier: ISC */
/*
 * TLS of a client's stream: TLS 1.2 and 1.3. The server's certificate must be
 * valid and must name the host; there is no way to skip this check.
 */
#include "stream_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "util.h"

/* Reports OpenSSL's oldest error, because it is the cause of the others. */
static char *
openssl_error(const char *what)
{
	unsigned long code = ERR_get_error();
	const char *reason = ERR_reason_error_string(code);
	const char *text = reason ? reason : "unknown error";
	char *sentence;

	if (code != 0 && ERR_SYSTEM_ERROR(code))
		text = strerror(ERR_GET_REASON(code));
	sentence = xasprintf("%s: %s", what, text);
	ERR_clear_error();
	return sentence;
}

static int
load_ca(SSL_CTX *ctx, const char *ca_file, char **error)
{
	_cleanup_free_ char *what = NULL;

	if (ca_file == NULL && SSL_CTX_set_default_verify_paths(ctx) == 1)
		return 0;
	if (ca_file != NULL && SSL_CTX_load_verify_file(ctx, ca_file) == 1)
		return 0;
	what = xasprintf("certificates of authorities, %s",
	    ca_file ? ca_file : "the system's");
	*error = openssl_error(what);
	return -EINVAL;
}

static int
load_certificate(
    SSL_CTX *ctx, const char *certificate, const char *key, char **error)
{
	_cleanup_free_ char *what = NULL;

	if (certificate == NULL)
		return 0;
	if (key == NULL)
		key = certificate;
	if (SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1) {
		what = xasprintf("client certificate %s", certificate);
		*error = openssl_error(what);
		return -EINVAL;
	}
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1) {
		what = xasprintf("key %s of the client certificate", key);
		*error = openssl_error(what);
		return -EINVAL;
	}
	return 0;
}

int
stream_tls_config(struct stream_config *config, const char *ca_file,
    const char *certificate_file, const char *key_file, char **error)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (ctx == NULL) {
		*error = openssl_error("TLS");
		return -EINVAL;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
				  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	config->tls = ctx;
	if (load_ca(ctx, ca_file, error) < 0)
		return -EINVAL;
	return load_certificate(ctx, certificate_file, key_file, error);
}

void
stream_tls_config_clear(struct stream_config *config)
{
	SSL_CTX_free(config->tls);
	config->tls = NULL;
}

/* The certificate must name the host. A host that is an IP address must be in
 * it as an address. */
static bool
expect_host(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, address) == 1 ||
	    inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1;
	return SSL_set_tlsext_host_name(ssl, host) == 1 &&
	       SSL_set1_host(ssl, host) == 1;
}

static int
handshake_error(struct stream *s, int reason, char **error)
{
	long verdict = SSL_get_verify_result(s->tls);
	int saved = errno;

	if (verdict != X509_V_OK) {
		*error = xasprintf("the server's certificate is refused: %s",
		    X509_verify_cert_error_string(verdict));
		ERR_clear_error();
		return -EACCES;
	}
	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER) {
		*error = xstrdup("TLS handshake: the server does not speak "
				 "TLS; its address begins with ws://");
		ERR_clear_error();
	} else if (reason == SSL_ERROR_SYSCALL && ERR_peek_error() == 0) {
		*error = xasprintf("TLS handshake: %s",
		    saved ? strerror(saved) : "the connection was closed");
	} else {
		*error = openssl_error("TLS handshake");
	}
	return -EPROTO;
}

int
stream_handshake(struct stream *s, const struct endpoint *e,
    const struct stream_config *config, char **error)
{
	int reason, n;

	if (s->tls == NULL) {
		s->tls = SSL_new(config->tls);
		if (s->tls == NULL || !expect_host(s->tls, e->host) ||
		    SSL_set_fd(s->tls, s->in) != 1) {
			*error = openssl_error("TLS");
			return -EPROTO;
		}
	}
	errno = 0;
	n = SSL_connect(s->tls);
	if (n == 1)
		return 0;
	reason = SSL_get_error(s->tls, n);
	if (reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_WANT_WRITE)
		return handshake_error(s, reason, error);
	s->tls_wants = reason == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
	return -EAGAIN;
}

/* In TLS 1.3 the server rejects our certificate only after the handshake, so
 * the error shows when we read or write. */
static int
alert_error(int reason)
{
	switch (reason) {
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
		return -EKEYREVOKED;
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
		return -EKEYEXPIRED;
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		return -EKEYREJECTED;
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return -ENOKEY;
	default:
		return -EPROTO;
	}
}

const char *
stream_strerror(int err)
{
	switch (-err) {
	case EKEYREVOKED:
		return "the server refuses our certificate: it is revoked";
	case EKEYEXPIRED:
		return "the server refuses our certificate: it has expired";
	case EKEYREJECTED:
		return "the server refuses our certificate";
	case ENOKEY:
		return "the server requires a certificate, and none was given";
	default:
		return strerror(-err);
	}
}

/* Converts the result of SSL_read_ex() or SSL_write_ex() to that of
 * stream_read(). */
static ssize_t
transfer_result(struct stream *s, int ok, size_t done)
{
	int reason, alert, saved = errno;

	if (ok == 1)
		return (ssize_t)done;
	reason = SSL_get_error(s->tls, ok);
	alert = alert_error(ERR_GET_REASON(ERR_peek_error()));
	ERR_clear_error();
	switch (reason) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return saved ? -saved : -ECONNRESET;
	default:
		return alert;
	}
}

ssize_t
stream_tls_read(struct stream *s, void *p, size_t n)
{
	size_t done = 0;
	int ok;

	errno = 0;
	ok = SSL_read_ex(s->tls, p, n, &done);
	return transfer_result(s, ok, done);
}

ssize_t
stream_tls_write(struct stream *s, const void *p, size_t n)
{
	size_t done = 0;
	int ok;

	errno = 0;
	ok = SSL_write_ex(s->tls, p, n, &done);
	return transfer_result(s, ok, done);
}

bool
stream_tls_has_input(const struct stream *s)
{
	/* SSL_has_pending() would also count half a record, which cannot be
	 * read yet. */
	return SSL_pending(s->tls) > 0;
}

void
stream_tls_close(struct stream *s)
{
	/* Best effort: the peer also learns of the end from the socket. */
	if (SSL_is_init_finished(s->tls))
		SSL_shutdown(s->tls);
	SSL_free(s->tls);
	ERR_clear_error();
	s->tls = NULL;
}
