/*
 * Who may connect.
 */
#include "credential.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jwt.h"
#include "util.h"

#define SECRET_FILE_MAX	  (64u << 10)
#define SHARED_SECRET_MIN 32

static int
refuse(const char *path, const char *why)
{
	fprintf(stderr, "execd: websocket auth secret %s %s\n", path, why);
	return EXIT_CONFIG;
}

static int
refuse_reading(const char *path, int err)
{
	fprintf(stderr, "execd: failed to read websocket auth secret %s: %s\n",
	    path, strerror(-err));
	return err == -EACCES ? EXIT_PERMISSION : EXIT_CONFIG;
}

static bool
is_white(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The content of a file without white space around it. The memory is the
 * caller's. */
static int
read_secret(const char *path, uint8_t **secret, size_t *len)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t *text, *from;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse_reading(path, -errno);
	if (st.st_mode & S_IWOTH)
		return refuse(path, "can be written by everybody");
	text = xmalloc(SECRET_FILE_MAX + 1);
	n = read(fd, text, SECRET_FILE_MAX + 1);
	if (n < 0 || n > (ssize_t)SECRET_FILE_MAX) {
		free(text);
		return n < 0 ? refuse_reading(path, -errno)
			     : refuse(path, "is longer than 65536 bytes");
	}
	for (from = text; n > 0 && is_white(*from); n--)
		from++;
	while (n > 0 && is_white(from[n - 1]))
		n--;
	memmove(text, from, (size_t)n);
	*secret = text;
	*len = (size_t)n;
	return n > 0 ? 0 : refuse(path, "must not be empty");
}

static void
digest_of(const void *token, size_t len, uint8_t digest[32])
{
	EVP_Digest(token, len, digest, NULL, EVP_sha256(), NULL);
}

static int
parse_digest(const char *hex, uint8_t digest[32])
{
	for (size_t i = 0; i < 64; i++) {
		char c = (char)tolower((unsigned char)hex[i]);
		int v = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
					       : -1;

		if (v < 0)
			break;
		digest[i / 2] = (uint8_t)(i % 2 ? digest[i / 2] | v : v << 4);
		if (i == 63 && hex[64] == '\0')
			return 0;
	}
	fputs("execd: --ws-token-sha256 must be a 64-character hex SHA-256 "
	      "digest\n",
	    stderr);
	return EXIT_USAGE;
}

static int
take_token(struct credential_rules *r, const struct options *o)
{
	uint8_t *token = NULL;
	size_t len = 0;
	int code;

	if (o->ws_token_sha256 != NULL)
		return parse_digest(o->ws_token_sha256, r->digest);
	code = read_secret(o->ws_token_file, &token, &len);
	if (code == 0)
		digest_of(token, len, r->digest);
	if (token != NULL)
		explicit_bzero(token, len);
	free(token);
	return code;
}

static int
take_shared_secret(struct credential_rules *r, const struct options *o)
{
	const char *path = o->ws_shared_secret_file;
	int code = read_secret(path, &r->secret, &r->secret_len);

	if (code == 0 && r->secret_len < SHARED_SECRET_MIN) {
		fprintf(stderr,
		    "execd: signed websocket bearer secret %s must be at "
		    "least %d bytes\n",
		    path, SHARED_SECRET_MIN);
		code = EXIT_CONFIG;
	}
	return code;
}

int
credential_init(struct credential_rules *r, const struct options *o)
{
	*r = (struct credential_rules){ .mode = o->ws_auth, .options = o };
	switch (r->mode) {
	case AUTH_CAPABILITY_TOKEN:
		return take_token(r, o);
	case AUTH_SIGNED_TOKEN:
		return take_shared_secret(r, o);
	default:
		return 0;
	}
}

static enum verdict
verify_token(const struct credential_rules *r, const char *token)
{
	uint8_t digest[32];

	digest_of(token, strlen(token), digest);
	return CRYPTO_memcmp(digest, r->digest, sizeof(digest)) == 0
		   ? VERDICT_GRANTED
		   : VERDICT_INVALID_TOKEN;
}

enum verdict
credential_verify(const struct credential_rules *r,
    const struct control_authenticate *presented, int64_t now_s)
{
	struct jwt_rules rules = { .secret = r->secret,
		.secret_len = r->secret_len,
		.issuer = r->options->ws_issuer,
		.audience = r->options->ws_audience,
		.skew_s = r->options->ws_skew_s };

	if (r->mode == AUTH_NONE)
		return VERDICT_GRANTED;
	if (presented->kind == CREDENTIAL_NONE)
		return VERDICT_MISSING_TOKEN;
	if (presented->kind != CREDENTIAL_BEARER)
		return VERDICT_INVALID_HEADER;
	if (r->mode == AUTH_CAPABILITY_TOKEN)
		return verify_token(r, presented->credential);
	return jwt_verify(&rules, presented->credential, now_s);
}
