/* SPDX-License-Identifier: ISC */
/*
 * `execd ctl ca' is a small certificate authority for operators who have none.
 * It works with files of one directory, and asks no execd. Certificates are as
 * RFC 5280 wants them, with the extensions that strict clients demand: Python
 * from 3.13 on refuses an authority without basicConstraints and keyUsage, and
 * a certificate without key identifiers.
 */
#include "ctl_client.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "exit_code.h"

#define DIRECTORY   "/etc/execd/ca"
#define DAYS_CA	    3650
#define DAYS_SERVER 398 /* browsers and Apple's systems accept no more */
#define DAYS_CLIENT 365
#define DAYS_MAX    36500
#define SERIAL_BITS 159 /* positive in 20 bytes (RFC 5280, 4.1.2.2) */
#define SKEW_S	    300 /* clocks of clients may be slow by so much */
#define CN_MAX	    64	/* ub-common-name of RFC 5280 */

#define USE(type, clear)                                                       \
	static void drop_##type(type **p)                                      \
	{                                                                      \
		clear(*p);                                                     \
	}
USE(X509, X509_free)
USE(EVP_PKEY, EVP_PKEY_free)
USE(BIO, BIO_free_all)
USE(BIGNUM, BN_free)
#define _cleanup_(type) __attribute__((cleanup(drop_##type))) type

/* Returns what OpenSSL says of its last error. */
static const char *
ssl_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	return reason != NULL ? reason : "OpenSSL failed";
}

/* --- a certificate -------------------------------------------------------- */

struct order {
	const char *cn;
	const char *usage;    /* keyUsage */
	const char *extended; /* extendedKeyUsage; NULL: an authority */
	const char *names;    /* subjectAltName; NULL: none */
	int days;
	X509 *issuer; /* NULL: it is its own */
	EVP_PKEY *issuer_key;
};

static bool
add(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *e;
	X509V3_CTX ctx;
	bool ok;

	if (value == NULL)
		return true;
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_nconf_nid(NULL, &ctx, nid, value);
	ok = e != NULL && X509_add_ext(x, e, -1) == 1;
	X509_EXTENSION_free(e);
	return ok;
}

/* A serial number tells nothing, and no two are equal (RFC 5280). */
static bool
set_serial(X509 *x)
{
	_cleanup_(BIGNUM) *n = BN_new();

	return n != NULL &&
	       BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) ==
		   1 &&
	       BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL;
}

/* No certificate counts for longer than the one of its authority. */
static bool
set_times(X509 *x, const struct order *o)
{
	time_t now = time(NULL);
	ASN1_TIME *end = X509_getm_notAfter(x);

	if (X509_time_adj_ex(X509_getm_notBefore(x), 0, -SKEW_S, &now) ==
		NULL ||
	    X509_time_adj_ex(end, o->days, 0, &now) == NULL)
		return false;
	return o->issuer == NULL ||
	       ASN1_TIME_compare(end, X509_get0_notAfter(o->issuer)) <= 0 ||
	       X509_set1_notAfter(x, X509_get0_notAfter(o->issuer)) == 1;
}

static bool
set_names(X509 *x, const struct order *o)
{
	X509_NAME *name = X509_get_subject_name(x);

	return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
		   (const unsigned char *)o->cn, -1, -1, 0) == 1 &&
	       X509_set_issuer_name(
		   x, o->issuer ? X509_get_subject_name(o->issuer) : name) == 1;
}

static bool
add_extensions(X509 *x, const struct order *o)
{
	X509 *issuer = o->issuer != NULL ? o->issuer : x;

	return add(x, issuer, NID_basic_constraints,
		   o->extended == NULL ? "critical,CA:TRUE,pathlen:0"
				       : "critical,CA:FALSE") &&
	       add(x, issuer, NID_key_usage, o->usage) &&
	       add(x, issuer, NID_ext_key_usage, o->extended) &&
	       add(x, issuer, NID_subject_key_identifier, "hash") &&
	       add(x, issuer, NID_authority_key_identifier, "keyid:always") &&
	       add(x, issuer, NID_subject_alt_name, o->names);
}

/* Returns a certificate for the key, which the caller frees, or NULL. */
static X509 *
make_certificate(const struct order *o, EVP_PKEY *key)
{
	X509 *x = X509_new();

	if (x != NULL && X509_set_version(x, X509_VERSION_3) == 1 &&
	    set_serial(x) && set_times(x, o) && set_names(x, o) &&
	    X509_set_pubkey(x, key) == 1 && add_extensions(x, o) &&
	    X509_sign(x, o->issuer ? o->issuer_key : key, EVP_sha256()) > 0)
		return x;
	X509_free(x);
	return NULL;
}

/* --- files ---------------------------------------------------------------- */

static int
write_bio(const char *directory, const char *path, BIO *bio, mode_t mode)
{
	char *data, *text;
	long n = BIO_get_mem_data(bio, &data);
	int err;

	if (n <= 0)
		return -EIO;
	text = xstrndup(data, (size_t)n);
	err = ctl_write_file(directory, path, text, mode);
	OPENSSL_cleanse(text, (size_t)n);
	free(text);
	return err;
}

/* Writes the key and then the certificate, neither over an existing file.
 * Returns 0, or an exit code after printing the error. */
static int
write_pair(const char *directory, const char *key_path, const char *path,
    EVP_PKEY *key, X509 *x)
{
	_cleanup_(BIO) *secret = BIO_new(BIO_s_secmem());
	_cleanup_(BIO) *open = BIO_new(BIO_s_mem());
	int err;

	if (secret == NULL || open == NULL ||
	    PEM_write_bio_PKCS8PrivateKey(
		secret, key, NULL, NULL, 0, NULL, NULL) != 1 ||
	    PEM_write_bio_X509(open, x) != 1)
		return ctl_fail(path, ssl_reason());
	if (access(path, F_OK) == 0)
		return ctl_tell(path, -EEXIST);
	err = write_bio(directory, key_path, secret, 0600);
	if (err < 0)
		return ctl_tell(key_path, err);
	err = write_bio(directory, path, open, 0644);
	if (err == 0)
		return 0;
	unlink(key_path);
	return ctl_tell(path, err);
}

static FILE *
open_file(const char *path, bool secret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && secret && fstat(fd, &st) == 0 &&
	    (st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
		close(fd);
		ctl_fail(path, "others may read it, or write to it");
		return NULL;
	}
	if (fd < 0)
		ctl_tell(path, -errno);
	return fd < 0 ? NULL : fdopen(fd, "r");
}

/* Reads the authority. Returns 0, or an exit code after printing the error. */
static int
read_authority(const char *directory, struct order *o)
{
	_cleanup_free_ char *path = xasprintf("%s/ca.pem", directory);
	_cleanup_free_ char *key = xasprintf("%s/ca.key", directory);
	FILE *in = open_file(path, false);
	FILE *secret = in != NULL ? open_file(key, true) : NULL;
	int code = EXIT_FAILED;

	if (in != NULL)
		o->issuer = PEM_read_X509(in, NULL, NULL, NULL);
	if (secret != NULL)
		o->issuer_key = PEM_read_PrivateKey(secret, NULL, NULL, NULL);
	if (secret != NULL && o->issuer != NULL && o->issuer_key != NULL)
		code = 0;
	else if (secret != NULL)
		ctl_fail(o->issuer == NULL ? path : key, ssl_reason());
	if (code == 0 && X509_check_private_key(o->issuer, o->issuer_key) != 1)
		code = ctl_fail(key, "is not the key of ca.pem");
	if (code == 0 &&
	    X509_cmp_current_time(X509_get0_notAfter(o->issuer)) < 0)
		code = ctl_fail(path, "has expired");
	if (in != NULL)
		fclose(in);
	if (secret != NULL)
		fclose(secret);
	return code;
}

/* --- output --------------------------------------------------------------- */

static void
show_end(const X509 *x, char text[CONF_TIME_CHARS])
{
	struct tm tm = { .tm_mday = 1 };

	ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm);
	conf_write_time(text, timegm(&tm));
}

static int
print_made(const struct ctl_options *o, const X509 *x, const char *path,
    const char *key)
{
	char end[CONF_TIME_CHARS];
	struct json_writer w;
	struct buf b;

	show_end(x, end);
	buf_init(&b, SIZE_MAX);
	if (o->json) {
		json_writer_init(&w, &b);
		json_begin(&w, '{');
		json_key_begin(&w, "result", '{');
		json_key_cstring(&w, "certificate", path);
		json_key_cstring(&w, "key", key);
		json_key_cstring(&w, "expires", end);
		json_end(&w, '}');
		json_end(&w, '}');
		buf_puts(&b, "\n");
	} else {
		buf_printf(&b, "certificate: %s\nkey: %s\nexpires: %s\n", path,
		    key, end);
	}
	fwrite(b.data, 1, b.len, stdout);
	buf_clear(&b);
	return fflush(stdout) == 0 ? EXIT_STOPPED : EXIT_FAILED;
}

/* --- the commands --------------------------------------------------------- */

static int
make(const struct ctl_options *o, const struct order *order, const char *stem)
{
	const char *directory = o->dir != NULL ? o->dir : DIRECTORY;
	_cleanup_free_ char *path = xasprintf("%s/%s.pem", directory, stem);
	_cleanup_free_ char *key_path = xasprintf("%s/%s.key", directory, stem);
	_cleanup_(EVP_PKEY) *key = EVP_EC_gen("P-256");
	_cleanup_(X509) *x = key ? make_certificate(order, key) : NULL;
	int code;

	if (x == NULL)
		return ctl_fail(path, ssl_reason());
	code = write_pair(directory, key_path, path, key, x);
	return code != 0 ? code : print_made(o, x, path, key_path);
}

static int
make_signed(const struct ctl_options *o, struct order *order, const char *stem)
{
	int code = read_authority(o->dir != NULL ? o->dir : DIRECTORY, order);

	if (code == 0)
		code = make(o, order, stem);
	X509_free(order->issuer);
	EVP_PKEY_free(order->issuer_key);
	return code;
}

static int
ca_init(const struct ctl_options *o, int days)
{
	char host[CN_MAX + 1 - sizeof("execd CA of ")] = "";
	char cn[CN_MAX + 1];
	struct order order = { .cn = cn,
		.usage = "critical,keyCertSign,cRLSign",
		.days = days > 0 ? days : DAYS_CA };

	gethostname(host, sizeof(host) - 1);
	snprintf(cn, sizeof(cn), "execd CA of %s", host);
	return make(o, &order, "ca");
}

/* No character of such a name has a meaning for OpenSSL's reader of extensions.
 */
static bool
is_host(const char *name)
{
	const char *p = strncmp(name, "*.", 2) == 0 ? name + 2 : name;

	if (*p == '\0' || *p == '.' || *p == '-' || strlen(name) > 253)
		return false;
	for (; *p != '\0'; p++)
		if (strchr("abcdefghijklmnopqrstuvwxyz"
			   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.",
			*p) == NULL)
			return false;
	return true;
}

static bool
is_address(const char *name)
{
	unsigned char raw[16];

	return inet_pton(AF_INET, name, raw) == 1 ||
	       inet_pton(AF_INET6, name, raw) == 1;
}

static int
ca_server(const struct ctl_options *o, int days)
{
	const char *first = o->words[1];
	char cn[CN_MAX + 1];
	struct order order = { .cn = cn,
		.usage = "critical,digitalSignature",
		.extended = "serverAuth",
		.days = days > 0 ? days : DAYS_SERVER };
	_cleanup_free_ char *stem = NULL;
	struct buf names;
	int code = EXIT_USAGE;

	if (first == NULL)
		return ctl_usage_error("ca server: a name is needed", "");
	buf_init(&names, SIZE_MAX);
	for (size_t i = 1; i < CTL_WORDS_MAX && o->words[i] != NULL; i++) {
		bool address = is_address(o->words[i]);

		if (!address && !is_host(o->words[i])) {
			buf_clear(&names);
			return ctl_usage_error("ca server: neither a host's "
					       "name nor an address: ",
			    o->words[i]);
		}
		buf_printf(&names, "%s%s:%s", i > 1 ? "," : "",
		    address ? "IP" : "DNS", o->words[i]);
	}
	buf_put_u8(&names, '\0');
	order.names = (const char *)names.data;
	/* Clients look at the names above; this one is for people. */
	snprintf(cn, sizeof(cn), "%s", first);
	stem = xasprintf(
	    "server-%s", strncmp(first, "*.", 2) == 0 ? first + 2 : first);
	code = make_signed(o, &order, stem);
	buf_clear(&names);
	return code;
}

static int
ca_client(const struct ctl_options *o, int days)
{
	const char *name = o->words[1];
	struct order order = { .cn = name,
		.usage = "critical,digitalSignature",
		.extended = "clientAuth",
		.days = days > 0 ? days : DAYS_CLIENT };
	_cleanup_free_ char *stem = NULL;

	if (name == NULL || !conf_is_name(name) || strlen(name) > CN_MAX)
		return ctl_usage_error(
		    "ca client: a name of letters, digits, dots, underscores "
		    "and hyphens is needed: ",
		    name != NULL ? name : "");
	stem = xasprintf("client-%s", name);
	return make_signed(o, &order, stem);
}

int
ctl_ca(const struct ctl_options *o)
{
	const char *what = o->words[0] != NULL ? o->words[0] : "";
	bool server = strcmp(what, "server") == 0;
	unsigned long days = 0;
	char *end;

	if (o->days != NULL) {
		days = strtoul(o->days, &end, 10);
		if (o->days[0] < '1' || o->days[0] > '9' || *end != '\0' ||
		    days > DAYS_MAX)
			return ctl_usage_error(
			    "--days: a number of 1 to 36500 is expected: ",
			    o->days);
	}
	if (!server && o->words[1] != NULL &&
	    (strcmp(what, "init") == 0 || o->words[2] != NULL))
		return ctl_usage_error(
		    "unexpected ", o->words[strcmp(what, "init") == 0 ? 1 : 2]);
	if (strcmp(what, "init") == 0)
		return ca_init(o, (int)days);
	if (server)
		return ca_server(o, (int)days);
	if (strcmp(what, "client") == 0)
		return ca_client(o, (int)days);
	return ctl_usage_error("ca: say init, server or client", "");
}
_Static_assert(DAYS_MAX == 36500, "the sentence above");
