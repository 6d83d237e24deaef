/* SPDX-License-Identifier: ISC */
/*
 * [signed-tokens] of execd.conf(5): how a client's signed token is checked, and
 * with which keys. The identities say to whom a token belongs.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "conf.h"
#include "secret.h"
#include "util.h"

#define KEY(keyword, type, member, ...)                                        \
	{                                                                      \
		keyword, &type, offsetof(struct token_rules, member),          \
		    __VA_ARGS__                                                \
	}

static const struct conf_key keys[] = {
	KEY("secret-file", conf_path, secret_file, NULL),
	KEY("jwks-file", conf_path, jwks_file, NULL),
	KEY("issuer", conf_string, issuer, NULL),
	KEY("audience", conf_string, audience, NULL),
	KEY("subject-claim", conf_string, subject_claim, "sub"),
	KEY("max-clock-skew-seconds", conf_seconds, skew_s, "30"),
};

static void *
add(struct conf *c, const char *name, char *why)
{
	return &c->tokens;
}

static void *
object(const struct conf *c, size_t i)
{
	return i == 0 && conf_has_signed_tokens(c)
		   ? (void *)(uintptr_t)&c->tokens
		   : NULL;
}

bool
conf_has_signed_tokens(const struct conf *c)
{
	return c->tokens.secret_file != NULL || c->tokens.jwks_file != NULL;
}

static int
read_secret(struct token_rules *t, char *why)
{
	if (secret_read_trimmed(t->secret_file, SECRET_PRIVATE, &t->secret,
		&t->secret_len, why) < 0)
		return -EINVAL;
	return t->secret_len < SHARED_SECRET_MIN
		   ? conf_refuse(
			 why, "must be at least %d bytes", SHARED_SECRET_MIN)
		   : 0;
}

static int
read_jwks(struct token_rules *t, char *why)
{
	uint8_t *text;
	size_t len;
	int err;

	if (secret_read_trimmed(t->jwks_file, SECRET_PUBLIC, &text, &len, why) <
	    0)
		return -EINVAL;
	EVP_Digest(text, len, t->jwks_digest, NULL, EVP_sha256(), NULL);
	err = jwks_parse(&t->jwks, t->jwks_file, (const char *)text, len, why);
	free(text);
	return err;
}

static int
read_file(struct token_rules *t, const char *path,
    int (*read)(struct token_rules *t, char *why), char *why)
{
	char text[CONF_WHY_MAX];

	if (path == NULL || read(t, text) == 0)
		return 0;
	return conf_refuse(why, "%.200s: %.300s", path, text);
}

static int
check(struct conf *c, void *o, char *why)
{
	struct token_rules *t = o;

	if (!conf_has_signed_tokens(c))
		return conf_refuse(why, "secret-file or jwks-file is missing");
	/* An issuer with public keys gives tokens to many clients, also for
	 * other services. */
	if (t->jwks_file != NULL && (t->issuer == NULL || t->audience == NULL))
		return conf_refuse(why, "jwks-file needs issuer and audience");
	if (read_file(t, t->secret_file, read_secret, why) < 0)
		return -EINVAL;
	return read_file(t, t->jwks_file, read_jwks, why);
}

const struct conf_section conf_tokens = { "signed-tokens", false, keys,
	nitems(keys), add, object, check };
