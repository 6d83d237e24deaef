/* SPDX-License-Identifier: ISC */
/*
 * The files of a TLS listener.
 */

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base.h"
#include "broker_listener.h"
#include "secret.h"

#define CRL_FILE_MAX                                                           \
	(8u << 20) /* a list of a hundred thousand certificates                \
		    */
#define CA_FILE_MAX (1u << 20)

/* The log warns of what expires sooner. Revocation lists are renewed often. */
#define WARN_AHEAD_S	 (14 * 86400)
#define WARN_CRL_AHEAD_S 86400

struct file {
	const char *path;
	uint8_t *data;
	size_t len;
};

static int
read_file(struct file *f, enum secret_kind kind, size_t limit, char *why)
{
	char text[CONF_WHY_MAX];

	if (secret_read(f->path, kind, limit, &f->data, &f->len, text) == 0)
		return 0;
	return conf_refuse(why, "%.200s: %.200s", f->path, text);
}

static void
clear_file(struct file *f)
{
	secret_free(f->data, f->len);
}

#define _cleanup_file_ __attribute__((cleanup(clear_file)))

/* Never asks for a passphrase at the terminal. */
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

/* --- contents ----------------------------------------------------------- */

/* A certificate or a revocation list. `end` is when it expires, or NULL. */
struct item {
	void *object;
	const ASN1_TIME *end;
	void (*free)(struct item *item);
};

static void
free_certificate(struct item *item)
{
	X509_free(item->object);
}

static void
free_list(struct item *item)
{
	X509_CRL_free(item->object);
}

static bool
read_certificate(BIO *bio, struct item *item)
{
	X509 *x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);

	if (x == NULL)
		return false;
	*item = (struct item){ x, X509_get0_notAfter(x), free_certificate };
	return true;
}

static bool
read_list(BIO *bio, struct item *item)
{
	X509_CRL *crl = PEM_read_bio_X509_CRL(bio, NULL, no_passphrase, NULL);

	if (crl == NULL)
		return false;
	*item = (struct item){ crl, X509_CRL_get0_nextUpdate(crl), free_list };
	return true;
}

/* What a file may contain, and its name in messages. */
static const struct kind {
	const char *one, *several;
	bool (*read)(BIO *bio, struct item *item);
} certificates = { "certificate", "certificates", read_certificate },
  lists = { "revocation list", "revocation lists", read_list };

/* Keys and parameters may stand beside certificates. Every other block is meant
 * to be one of the kind that the file is for. */
static unsigned
count_blocks(const struct file *f)
{
	static const char begin[] = "-----BEGIN ";
	const char *at = (const char *)f->data, *end = at + f->len, *name;
	unsigned n = 0;

	while ((at = memmem(at, (size_t)(end - at), begin, strlen(begin))) !=
	       NULL) {
		name = at += strlen(begin);
		while (at < end && *at != '-' && *at != '\n')
			at++;
		n +=
		    memmem(name, (size_t)(at - name), "PRIVATE KEY", 11) ==
			NULL &&
		    memmem(name, (size_t)(at - name), "PARAMETERS", 10) == NULL;
	}
	return n;
}

/* Converts to seconds since 1970. */
static int64_t
to_unix(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void
note_end(const struct item *item, int64_t *soonest)
{
	int64_t end = item->end != NULL ? to_unix(item->end) : 0;

	if (end != 0 && (*soonest == 0 || end < *soonest))
		*soonest = end;
}

/*
 * Checks that every block of the file is of that kind and can be read, and that
 * there are not too many. No block is ignored silently. *soonest is when the
 * first of them expires, in seconds since 1970, or 0 for never.
 */
static int
check_blocks(
    const struct file *f, const struct kind *kind, int64_t *soonest, char *why)
{
	unsigned n = 0, blocks = count_blocks(f);
	BIO *bio = BIO_new_mem_buf(f->data, (int)f->len);
	struct item item;

	*soonest = 0;
	for (; bio != NULL && kind->read(bio, &item); n++) {
		note_end(&item, soonest);
		item.free(&item);
	}
	BIO_free(bio);
	ERR_clear_error();
	if (n == 0)
		return conf_refuse(
		    why, "%.200s: holds no PEM %s", f->path, kind->one);
	if (n != blocks)
		return conf_refuse(why,
		    "%.200s: the PEM block of %s %u of %u cannot be read",
		    f->path, kind->one, n + 1, blocks);
	if (n > CONTROL_TRUSTED_MAX)
		return conf_refuse(why,
		    "%.200s: holds %u %s; at most %u are possible", f->path, n,
		    kind->several, CONTROL_TRUSTED_MAX);
	return 0;
}

/* Warns of a certificate or list that stops clients soon, or already does. */
static void
warn_of_end(const struct file *f, const char *what, int64_t end, int64_t ahead,
    const char *then)
{
	int64_t left = end - (int64_t)time(NULL);
	time_t at = (time_t)end;
	char date[32];
	struct tm tm;

	if (end == 0 || left > ahead)
		return;
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", gmtime_r(&at, &tm));
	if (left <= 0)
		log_warn(0, "%s: holds a %s that has expired: %s (since %s)",
		    f->path, what, then, date);
	else
		log_warn(0, "%s: holds a %s that expires in %lld days (%s)",
		    f->path, what, (long long)(left / 86400), date);
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

/* The kinds of keys that the key process signs with. */
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
		err = conf_refuse(
		    why, "%.200s: holds no PEM certificate", chain->path);
	else if (k == NULL)
		err = conf_refuse(why,
		    "%.200s: holds no PEM private key without a passphrase",
		    key->path);
	else if (!is_usable(k))
		err = conf_refuse(why,
		    "%.200s: is neither an RSA, an EC nor an "
		    "Ed25519 key",
		    key->path);
	else if (X509_check_private_key(x, k) != 1)
		err = conf_refuse(why, "%.200s: is not the key of %.200s",
		    key->path, chain->path);
	X509_free(x);
	EVP_PKEY_free(k);
	ERR_clear_error();
	return err;
}

static int
copy_file(const struct file *f, const char *name, int *fd, char *why)
{
	*fd = secret_memfd(name, f->data, f->len);
	return *fd < 0 ? conf_refuse(why, "a copy of %.200s: %s", f->path,
			     strerror(-*fd))
		       : 0;
}

static int
load_client_ca(struct listener *l, struct file *ca, char *why)
{
	int64_t end;

	if (read_file(ca, SECRET_PUBLIC, CA_FILE_MAX, why) < 0 ||
	    check_blocks(ca, &certificates, &end, why) < 0)
		return -EINVAL;
	warn_of_end(
	    ca, "CA", end, WARN_AHEAD_S, "every certificate of it is refused");
	return copy_file(ca, "client-ca", &l->client_ca_fd, why);
}

static int
load_client_crl(struct listener *l, struct file *crl, char *why)
{
	if (read_file(crl, SECRET_PUBLIC, CRL_FILE_MAX, why) < 0 ||
	    check_blocks(crl, &lists, &l->crl_end, why) < 0)
		return -EINVAL;
	/* An expired list does not end what runs. */
	warn_of_end(crl, "revocation list", l->crl_end, WARN_CRL_AHEAD_S,
	    "every certificate of its CA is refused");
	return copy_file(crl, "client-crl", &l->client_crl_fd, why);
}

/* The version tells a reload whether the files have changed. */
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
	    check_blocks(&chain, &certificates, &l->certificate_end, why) < 0 ||
	    copy_file(&chain, "certificate", &l->chain_fd, why) < 0 ||
	    copy_file(&key, "certificate-key", &l->key_fd, why) < 0)
		return -EINVAL;
	warn_of_end(&chain, "certificate", l->certificate_end, WARN_AHEAD_S,
	    "clients refuse this server");
	if (l->client_ca != NULL && load_client_ca(l, &ca, why) < 0)
		return -EINVAL;
	if (l->client_crl != NULL && load_client_crl(l, &crl, why) < 0)
		return -EINVAL;
	note_version(l, all);
	return 0;
}
