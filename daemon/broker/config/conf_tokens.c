/* SPDX-License-Identifier: ISC */
/*
 * [signed-tokens] of execd.conf(5): how the signed token of a client is
 * checked. Whose it is, the identities say.
 */
#include <errno.h>
#include <stdio.h>

#include "conf.h"
#include "secret.h"
#include "util.h"

#define SHARED_SECRET_MIN 32

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct token_rules, member)           \
	}

static const struct conf_key keys[] = {
	KEY("secret-file", conf_path, secret_file),
	KEY("issuer", conf_string, issuer),
	KEY("audience", conf_string, audience),
	KEY("max-clock-skew-seconds", conf_seconds, skew_s),
};

static void *
add(struct conf *c, const char *name, char *why)
{
	return &c->tokens;
}

static void *
object(const struct conf *c, size_t i)
{
	return i == 0 && c->tokens.secret_file ? (void *)(uintptr_t)&c->tokens
					       : NULL;
}

static int
check(struct conf *c, void *o, char *why)
{
	struct token_rules *t = o;
	char text[CONF_WHY_MAX] = "";

	if (t->secret_file == NULL) {
		snprintf(why, CONF_WHY_MAX, "secret-file is missing");
		return -EINVAL;
	}
	if (secret_read_trimmed(t->secret_file, SECRET_PRIVATE, &t->secret,
		&t->secret_len, text) == 0 &&
	    t->secret_len < SHARED_SECRET_MIN)
		snprintf(text, sizeof(text), "must be at least %d bytes",
		    SHARED_SECRET_MIN);
	if (text[0] == '\0')
		return 0;
	snprintf(why, CONF_WHY_MAX, "%.200s: %.200s", t->secret_file, text);
	return -EINVAL;
}

const struct conf_section conf_tokens = { "signed-tokens", false, keys,
	nitems(keys), add, object, check };
