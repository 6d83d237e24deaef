/* SPDX-License-Identifier: ISC */
#include "tls.h"

#include <assert.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/mman.h>

#include "tls_helper.h"

/* Room for a few records. A write should end when no further record fits. */
#define TLS_GATHER_BYTES (128u << 10)

/*
 * The socket under a TLS connection, in the front-end.
 */

/* The size of a record, with header, tag, and what a cipher may add. */
#define RECORD_MAX (16384 + 512)

struct tls_socket {
	int fd;
	bool gathering;
	struct buf rest; /* waits for the socket */
	size_t at;	 /* this much of it is written */
	size_t owed;
};

/* Shared, because only one connection writes at a time. */
static uint8_t gathered[TLS_GATHER_BYTES];
static size_t gathered_len;
static BIO_METHOD *method;

static struct tls_socket *
socket_of(SSL *tls)
{
	return BIO_get_data(SSL_get_wbio(tls));
}

/* Writes what was kept. Returns 0, or -errno; -EAGAIN means that some bytes are
 * left. */
static int
flush_rest(struct tls_socket *s)
{
	while (s->at < s->rest.len) {
		ssize_t n =
		    write(s->fd, s->rest.data + s->at, s->rest.len - s->at);

		if (n < 0)
			return errno == EINTR ? -EAGAIN : -errno;
		s->at += (size_t)n;
	}
	buf_clear(&s->rest);
	s->at = 0;
	return 0;
}

static int
retry_write(BIO *b, int err)
{
	if (err == -EAGAIN || err == -EINTR)
		BIO_set_retry_write(b);
	return -1;
}

static int
bio_write(BIO *b, const char *p, int n)
{
	struct tls_socket *s = BIO_get_data(b);
	ssize_t written;
	int err;

	BIO_clear_retry_flags(b);
	if (s->gathering) {
		if ((size_t)n > sizeof(gathered) - gathered_len)
			return retry_write(b, -EAGAIN);
		memcpy(gathered + gathered_len, p, (size_t)n);
		gathered_len += (size_t)n;
		return n;
	}
	err = flush_rest(s);
	if (err < 0)
		return retry_write(b, err);
	written = write(s->fd, p, (size_t)n);
	return written < 0 ? retry_write(b, -errno) : (int)written;
}

static int
bio_read(BIO *b, char *p, int n)
{
	struct tls_socket *s = BIO_get_data(b);
	ssize_t got = read(s->fd, p, (size_t)n);

	BIO_clear_retry_flags(b);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	return (int)got;
}

static long
bio_ctrl(BIO *b, int what, long value, void *p)
{
	/* OpenSSL asks for other things, too, and this BIO has none of them. */
	return what == BIO_CTRL_FLUSH;
}

static int
bio_destroy(BIO *b)
{
	struct tls_socket *s = BIO_get_data(b);

	if (s != NULL)
		buf_clear(&s->rest);
	free(s);
	return 1;
}

/* Call once, before the first connection. Returns false without memory. */
static bool
tls_socket_init(void)
{
	method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "execd socket");
	return method != NULL && BIO_meth_set_write(method, bio_write) == 1 &&
	       BIO_meth_set_read(method, bio_read) == 1 &&
	       BIO_meth_set_ctrl(method, bio_ctrl) == 1 &&
	       BIO_meth_set_destroy(method, bio_destroy) == 1;
}

/* Sets the socket of tls. fd stays the caller's. Returns false without
 * memory. */
static bool
tls_socket_set(SSL *tls, int fd)
{
	BIO *b = BIO_new(method);
	struct tls_socket *s;

	if (b == NULL)
		return false;
	s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	buf_init(&s->rest, TLS_GATHER_BYTES);
	BIO_set_data(b, s);
	BIO_set_init(b, 1);
	SSL_set_bio(tls, b, b);
	return true;
}

/* Collects records until tls_socket_end_gathering(). Until then only
 * SSL_write_ex() may be called. */
static void
tls_socket_gather(SSL *tls)
{
	assert(gathered_len == 0);
	socket_of(tls)->gathering = true;
}

/* Returns true if another record fits. */
static bool
tls_socket_has_room(SSL *tls)
{
	return sizeof(gathered) - gathered_len >= RECORD_MAX;
}

/* Writes the records, after what was kept before. Returns 0, or -errno; -EAGAIN
 * means that some bytes were kept. */
static int
tls_socket_end_gathering(SSL *tls)
{
	struct tls_socket *s = socket_of(tls);
	size_t len = gathered_len, at = 0;
	int err = flush_rest(s);
	ssize_t n;

	s->gathering = false;
	gathered_len = 0;
	while (err == 0 && at < len) {
		n = write(s->fd, gathered + at, len - at);
		if (n < 0)
			err = errno == EINTR ? -EAGAIN : -errno;
		else
			at += (size_t)n;
	}
	if (err == -EAGAIN)
		buf_put(&s->rest, gathered + at, len - at);
	return err;
}

/* Returns a pointer to the number of bytes that were encrypted but not yet
 * reported as written, because they are kept here. For tls_writev(). */
static size_t *
tls_socket_owed(SSL *tls)
{
	return &socket_of(tls)->owed;
}

#define RECORD_BYTES 16384 /* most bytes in one record */
#define CHAIN_MAX    16	   /* most certificates in a chain, and most CAs */

/* Only suites with forward secrecy and AEAD. All suites of TLS 1.3 have
 * both. */
static const char ciphers_12[] =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

/* No finite fields: large ones cost more processor time than an unknown client
 * should get. */
static const char groups[] = "X25519:P-256:P-384:P-521";

/* The signature schemes that the key process supports. */
static const char signatures[] =
    "ecdsa_secp256r1_sha256:ecdsa_secp384r1_sha384:ecdsa_secp521r1_sha512:"
    "ed25519:rsa_pss_rsae_sha256:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:"
    "rsa_pkcs1_sha256:rsa_pkcs1_sha384:rsa_pkcs1_sha512";

static const char *
last_error(void)
{
	unsigned long e = ERR_peek_last_error();
	const char *text = e ? ERR_reason_error_string(e) : NULL;

	ERR_clear_error();
	return text ? text : "the connection ended";
}

/* --- certificates of clients -------------------------------------------- */

/*
 * libssl checks that the client has the private key. The certificate process
 * verifies the certificate. Its verdict goes to the broker, which decides whose
 * identity it is.
 */

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

static void
init_clients(void)
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

/* Sets whether the context asks clients for a certificate, as the listener
 * says, and how the certificate is verified. Returns 0 or -ENOMEM. */
static int
ask_certificate(SSL_CTX *ctx, const struct control_listener *l)
{
	struct judge *j = xcalloc(1, sizeof(*j));
	int mode = SSL_VERIFY_PEER;

	j->epoch = helper_epoch();
	j->listener = l->id;
	if (SSL_CTX_set_ex_data(ctx, judge_index, j) != 1) {
		free(j);
		return -ENOMEM;
	}
	if (l->keys.client_certificate == CLIENT_CERTIFICATE_REQUIRED)
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

/*
 * Tells why a handshake failed, if it was because of the client's certificate.
 * Returns -EACCES if it was refused, or -EIO if it could not be verified; *why
 * is then a text that is valid until the next call. Otherwise returns 0.
 */
static int
refusal_of(const SSL *tls, const char **why)
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

void
tls_init(void)
{
	SSL_CTX *ctx;

	/* Only the rules in this file apply, not an openssl.cnf of this
	 * machine. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	tls_provider_init();
	init_clients();
	ctx = SSL_CTX_new(TLS_server_method());
	if (ctx == NULL || !tls_socket_init())
		log_fatal("TLS: %s", last_error());
	SSL_free(SSL_new(ctx));
	SSL_CTX_free(ctx);
}

/* --- contexts ----------------------------------------------------------- */

/* Sessions are not resumed, because the key of a ticket would have to be stored
 * somewhere. */
static int
set_rules(SSL_CTX *ctx)
{
	SSL_CTX_set_options(
	    ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
		     SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
		     SSL_OP_PRIORITIZE_CHACHA | SSL_OP_SINGLE_ECDH_USE);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
				  SSL_MODE_RELEASE_BUFFERS |
				  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_max_cert_list(ctx, CONTROL_CHAIN_MAX);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
		       SSL_CTX_set_cipher_list(ctx, ciphers_12) == 1 &&
		       SSL_CTX_set1_groups_list(ctx, groups) == 1 &&
		       SSL_CTX_set1_sigalgs_list(ctx, signatures) == 1
		   ? 0
		   : -EINVAL;
}

/* Maps the file of the broker's descriptor and makes a BIO over it. */
static BIO *
map_file(int fd, void **text, size_t *len)
{
	off_t size = lseek(fd, 0, SEEK_END);

	if (size <= 0)
		return NULL;
	*len = (size_t)size;
	*text = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
	return *text == MAP_FAILED ? NULL : BIO_new_mem_buf(*text, (int)*len);
}

static int
no_passphrase(char *buf, int size, int writing, void *arg)
{
	return -1;
}

/* Calls take() for each certificate; take() owns it then. Returns their number
 * or -1. */
static int
each_certificate(
    int fd, SSL_CTX *ctx, int (*take)(SSL_CTX *ctx, X509 *x, int i))
{
	void *text = NULL;
	size_t len = 0;
	BIO *bio = map_file(fd, &text, &len);
	X509 *x;
	int n = 0;

	while (bio != NULL && n >= 0 && n < CHAIN_MAX &&
	       (x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL)
		n = take(ctx, x, n) == 1 ? n + 1 : -1;
	BIO_free(bio);
	if (text != NULL && text != MAP_FAILED)
		munmap(text, len);
	/* The end of the text also counts as an error. */
	if (n > 0)
		ERR_clear_error();
	return n;
}

static int
take_chain(SSL_CTX *ctx, X509 *x, int i)
{
	int ok;

	if (i > 0)
		return SSL_CTX_add0_chain_cert(ctx, x) == 1;
	ok = SSL_CTX_use_certificate(ctx, x);
	X509_free(x);
	return ok;
}

/* Adds the name of the CA, by which the client chooses its certificate. */
static int
take_client_ca(SSL_CTX *ctx, X509 *x, int i)
{
	int ok = SSL_CTX_add_client_CA(ctx, x) == 1;

	X509_free(x);
	return ok;
}

static int
use_key(SSL_CTX *ctx, uint32_t number)
{
	EVP_PKEY *public_key = X509_get0_pubkey(SSL_CTX_get0_certificate(ctx));
	EVP_PKEY *key =
	    public_key ? tls_provider_key(public_key, number) : NULL;
	int ok = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1;

	EVP_PKEY_free(key);
	return ok ? 0 : -EINVAL;
}

static int
use_client_ca(SSL_CTX *ctx, const struct control_listener *l, int fd)
{
	if (l->keys.client_certificate == CLIENT_CERTIFICATE_NONE)
		return 0;
	if (each_certificate(fd, ctx, take_client_ca) <= 0)
		return -EINVAL;
	return ask_certificate(ctx, l);
}

SSL_CTX *
tls_context(const struct control_listener *l, int chain_fd, int client_ca_fd)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	const char *step = "rules";
	int err = ctx == NULL ? -ENOMEM : set_rules(ctx);

	if (err == 0) {
		step = "certificate";
		err = each_certificate(chain_fd, ctx, take_chain) > 0 ? 0
								      : -EINVAL;
	}
	if (err == 0) {
		step = "key";
		err = use_key(ctx, l->key);
	}
	if (err == 0) {
		step = "client CA";
		err = use_client_ca(ctx, l, client_ca_fd);
	}
	if (err == 0)
		return ctx;
	log_error(0, "listener %u: TLS %s: %s", l->id, step, last_error());
	SSL_CTX_free(ctx);
	return NULL;
}

void
tls_context_free(SSL_CTX *ctx)
{
	SSL_CTX_free(ctx);
}

/* --- connections -------------------------------------------------------- */

SSL *
tls_new(SSL_CTX *ctx, int fd)
{
	SSL *tls = SSL_new(ctx);

	if (tls == NULL || !tls_socket_set(tls, fd))
		log_fatal("TLS: %s", last_error());
	SSL_set_accept_state(tls);
	return tls;
}

void
tls_free(SSL *tls)
{
	SSL_free(tls);
	ERR_clear_error();
}

int
tls_handshake(SSL *tls, bool *wants_write, const char **why)
{
	int n, err;
	bool none;

	ERR_clear_error();
	n = SSL_do_handshake(tls);
	if (n == 1)
		return 0;
	err = SSL_get_error(tls, n);
	*wants_write = err == SSL_ERROR_WANT_WRITE;
	if (err == SSL_ERROR_WANT_READ || err == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	none = ERR_GET_REASON(ERR_peek_error()) ==
	       SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE;
	*why = last_error();
	err = none ? -EACCES : refusal_of(tls, why);
	if (err == 0 && BIO_number_read(SSL_get_rbio(tls)) == 0)
		err = -ENOTCONN;
	return err < 0 ? err : -EPROTO;
}

/* Returns the errno for an error of libssl. */
static int
errno_of(int err)
{
	ERR_clear_error();
	switch (err) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return EAGAIN;
	default:
		return EPROTO;
	}
}

/* Reads as many records as fit, because each is decrypted separately. */
ssize_t
tls_read(SSL *tls, void *p, size_t n, bool *wants_write)
{
	size_t at = 0, got;
	int err = SSL_ERROR_NONE;

	ERR_clear_error();
	*wants_write = false;
	while (at < n && err == SSL_ERROR_NONE) {
		if (SSL_read_ex(tls, (uint8_t *)p + at, n - at, &got) == 1)
			at += got;
		else
			err = SSL_get_error(tls, 0);
	}
	if (at > 0)
		return (ssize_t)at;
	*wants_write = err == SSL_ERROR_WANT_WRITE;
	errno = errno_of(err);
	return err == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

/* Returns the bytes after `skip`, up to one record, in one piece. */
static const void *
gather(const struct iovec *iov, int n, size_t skip, size_t *len)
{
	static uint8_t record[RECORD_BYTES];
	size_t at = 0;
	int i = 0;

	while (i < n && skip >= iov[i].iov_len)
		skip -= iov[i++].iov_len;
	if (i < n && iov[i].iov_len - skip >= RECORD_BYTES) {
		*len = iov[i].iov_len - skip;
		return (uint8_t *)iov[i].iov_base + skip;
	}
	for (; i < n && at < sizeof(record); i++, skip = 0) {
		size_t piece = iov[i].iov_len - skip;

		if (piece > sizeof(record) - at)
			piece = sizeof(record) - at;
		memcpy(record + at, (uint8_t *)iov[i].iov_base + skip, piece);
		at += piece;
	}
	*len = at;
	return record;
}

/* Encrypts from `at` on, as much as is sent together. Returns the new position,
 * or -errno if nothing was encrypted. */
static ssize_t
encrypt(SSL *tls, const struct iovec *iov, int n, size_t at)
{
	size_t from = at, len, done;
	const void *p;

	while (tls_socket_has_room(tls) &&
	       (p = gather(iov, n, at, &len), len > 0)) {
		if (SSL_write_ex(tls, p, len, &done) != 1) {
			int err = errno_of(SSL_get_error(tls, 0));

			return at > from ? (ssize_t)at : -err;
		}
		at += done;
	}
	return (ssize_t)at;
}

static size_t
total_of(const struct iovec *iov, int n)
{
	size_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

/* While encrypted records are kept by the socket, the last byte of them is not
 * reported as written. The caller then passes this byte again, and it is
 * reported once the records are sent. */
ssize_t
tls_writev(SSL *tls, const struct iovec *iov, int n)
{
	size_t *owed = tls_socket_owed(tls), total = total_of(iov, n);
	size_t at = *owed;
	int err = 0;

	ERR_clear_error();
	while (err == 0 && (at < total || *owed > 0)) {
		ssize_t got;

		tls_socket_gather(tls);
		got = *owed > 0 ? (ssize_t)at : encrypt(tls, iov, n, at);
		err = tls_socket_end_gathering(tls);
		if (got < 0)
			err = (int)got;
		else
			at = (size_t)got;
		*owed = err == -EAGAIN && at > 0 ? 1 : 0;
	}
	at -= *owed;
	if (at > 0 && (err == 0 || err == -EAGAIN))
		return (ssize_t)at;
	errno = -err;
	return err < 0 ? -1 : 0;
}

bool
tls_has_bytes(SSL *tls)
{
	return SSL_pending(tls) > 0;
}

void
tls_shutdown(SSL *tls)
{
	if (SSL_is_init_finished(tls))
		SSL_shutdown(tls);
	ERR_clear_error();
}
