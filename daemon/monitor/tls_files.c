/*
 * The files of a TLS listener.
 */
#include "tls_files.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

#include "listener.h"
#include "log.h"
#include "secret.h"
#include "util.h"

#define CRL_FILE_MAX (8u << 20) /* a hundred thousand certificates */

struct file {
	const char *path;
	uint8_t *data;
	size_t len;
};

static int __attribute__((format(printf, 2, 3)))
refuse(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, CONF_WHY_MAX, fmt, ap);
	va_end(ap);
	ERR_clear_error();
	return -EINVAL;
}

static int
read_file(struct file *f, enum secret_kind kind, size_t limit, char *why)
{
	char text[CONF_WHY_MAX];

	if (secret_read(f->path, kind, limit, &f->data, &f->len, text) == 0)
		return 0;
	return refuse(why, "%.200s: %.200s", f->path, text);
}

static void
clear_file(struct file *f)
{
	secret_free(f->data, f->len);
}

#define _cleanup_file_ __attribute__((cleanup(clear_file)))

/* Never asks at the terminal. */
static int
no_passphrase(char *buf, int size, int writing, void *arg)
{
	return -1;
}

static X509 *
first_certificate(const struct file *f)
{
	BIO *bio = BIO_new_mem_buf(f->data, (int)f->len);
	X509 *x =
	    bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;

	BIO_free(bio);
	return x;
}

static EVP_PKEY *
private_key(const struct file *f)
{
	BIO *bio = BIO_new_mem_buf(f->data, (int)f->len);
	EVP_PKEY *key =
	    bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL)
		: NULL;

	BIO_free(bio);
	return key;
}

/* The kinds that the key process signs with. */
static bool
is_usable(const EVP_PKEY *key)
{
	return EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "EC") ||
	       EVP_PKEY_is_a(key, "ED25519");
}

static int
check_pair(const struct file *chain, const struct file *key, char *why)
{
	X509 *x = first_certificate(chain);
	EVP_PKEY *k = private_key(key);
	int err = 0;

	if (x == NULL)
		err = refuse(
		    why, "%.200s: holds no PEM certificate", chain->path);
	else if (k == NULL)
		err = refuse(why,
		    "%.200s: holds no PEM private key without a passphrase",
		    key->path);
	else if (!is_usable(k))
		err = refuse(why,
		    "%.200s: is neither an RSA, an EC nor an "
		    "Ed25519 key",
		    key->path);
	else if (X509_check_private_key(x, k) != 1)
		err = refuse(why, "%.200s: is not the key of %.200s", key->path,
		    chain->path);
	X509_free(x);
	EVP_PKEY_free(k);
	return err;
}

static int
copy_file(const struct file *f, const char *name, int *fd, char *why)
{
	*fd = secret_memfd(name, f->data, f->len);
	return *fd < 0 ? refuse(why, "a copy of %.200s: %s", f->path,
			     strerror(-*fd))
		       : 0;
}

static int
load_client_ca(struct listener *l, struct file *ca, char *why)
{
	X509 *x;

	if (read_file(ca, SECRET_PUBLIC, SECRET_FILE_MAX, why) < 0)
		return -EINVAL;
	x = first_certificate(ca);
	X509_free(x);
	if (x == NULL)
		return refuse(
		    why, "%.200s: holds no PEM certificate", ca->path);
	return copy_file(ca, "client-ca", &l->client_ca_fd, why);
}

static bool
has_expired(const X509_CRL *crl)
{
	const ASN1_TIME *end = X509_CRL_get0_nextUpdate(crl);

	return end != NULL && X509_cmp_current_time(end) < 0;
}

/* One that is too old is no reason to end what runs, but whoever comes with a
 * certificate will be refused. */
static int
check_crl(const struct file *f, char *why)
{
	BIO *bio = BIO_new_mem_buf(f->data, (int)f->len);
	bool expired = false;
	X509_CRL *crl;
	int n = 0;

	for (; bio != NULL && (crl = PEM_read_bio_X509_CRL(
				   bio, NULL, no_passphrase, NULL)) != NULL;
	     n++) {
		expired |= has_expired(crl);
		X509_CRL_free(crl);
	}
	BIO_free(bio);
	ERR_clear_error();
	if (expired)
		log_warn(0,
		    "%s: holds a revocation list that has expired: every "
		    "certificate of its CA is refused",
		    f->path);
	return n > 0 ? 0
		     : refuse(why, "%.200s: holds no PEM revocation list",
			   f->path);
}

static int
load_client_crl(struct listener *l, struct file *crl, char *why)
{
	if (read_file(crl, SECRET_PUBLIC, CRL_FILE_MAX, why) < 0 ||
	    check_crl(crl, why) < 0)
		return -EINVAL;
	return copy_file(crl, "client-crl", &l->client_crl_fd, why);
}

/* Tells a reload whether anything in the files is new. */
static void
note_version(struct listener *l, const struct file *const *files)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();

	EVP_DigestInit_ex(md, EVP_sha256(), NULL);
	for (; *files != NULL; files++) {
		EVP_DigestUpdate(md, &(*files)->len, sizeof((*files)->len));
		EVP_DigestUpdate(md, (*files)->data, (*files)->len);
	}
	EVP_DigestFinal_ex(md, l->version, NULL);
	EVP_MD_CTX_free(md);
}

int
tls_files_load(struct listener *l, char *why)
{
	_cleanup_file_ struct file chain = { .path = l->certificate };
	_cleanup_file_ struct file key = { .path = l->certificate_key };
	_cleanup_file_ struct file ca = { .path = l->client_ca };
	_cleanup_file_ struct file crl = { .path = l->client_crl };
	const struct file *const all[] = { &chain, &key, &ca, &crl, NULL };

	if (read_file(&chain, SECRET_PUBLIC, SECRET_FILE_MAX, why) < 0 ||
	    read_file(&key, SECRET_PRIVATE, SECRET_FILE_MAX, why) < 0 ||
	    check_pair(&chain, &key, why) < 0 ||
	    copy_file(&chain, "certificate", &l->chain_fd, why) < 0 ||
	    copy_file(&key, "certificate-key", &l->key_fd, why) < 0)
		return -EINVAL;
	if (l->client_ca != NULL && load_client_ca(l, &ca, why) < 0)
		return -EINVAL;
	if (l->client_crl != NULL && load_client_crl(l, &crl, why) < 0)
		return -EINVAL;
	note_version(l, all);
	return 0;
}
