/* SPDX-License-Identifier: ISC */
/*
 * The sections of execd.conf(5) that occur once: their keys, and whether these
 * fit together. [listener NAME] and [identity NAME] have files of their own.
 */
#include <errno.h>
#include <grp.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "redact_limits.h"
#include "secret.h"
#include "util.h"

/* --- [audit] ------------------------------------------------------------ */

static const char *const files_words[] = { [AUDIT_FILES_NONE] = "none",
	[AUDIT_FILES_WRITES] = "writes",
	[AUDIT_FILES_ALL] = "all" };

static int
parse_files(void *at, const char *text, char *why)
{
	for (size_t i = 0; i < nitems(files_words); i++)
		if (strcmp(files_words[i], text) == 0) {
			*(uint8_t *)at = (uint8_t)i;
			return 0;
		}
	return conf_refuse(why, "`%.100s` is not none, writes or all", text);
}

static void
show_files(struct buf *b, const void *at)
{
	uint8_t files = *(const uint8_t *)at;

	if (files != AUDIT_FILES_UNSET)
		buf_printf(b, "%s\n", files_words[files]);
}

const struct conf_type audit_files_type = { parse_files, show_files, NULL,
	false, false };

#define AUDIT_KEY(keyword, type, member)                                       \
	{                                                                      \
		keyword, &type, offsetof(struct audit_rules, member)           \
	}

static const struct conf_key audit_keys[] = {
	AUDIT_KEY("file", conf_path, sinks[AUDIT_FILE].path),
	AUDIT_KEY("syslog", conf_path, sinks[AUDIT_SYSLOG].path),
	AUDIT_KEY("journal", conf_path, sinks[AUDIT_JOURNAL].path),
	AUDIT_KEY("required", conf_bool, required),
	AUDIT_KEY("files", audit_files_type, files),
	AUDIT_KEY("redact-names", conf_words, redact_names),
	AUDIT_KEY("redact-values", conf_words, redact_values),
};

static bool
says_audit(const struct conf *c)
{
	return audit_is_kept(&c->audit);
}

/* The patterns are sent to every runner, and compared with every word of a
 * command, so they are limited. */
static int
check_patterns(const struct strings *patterns, const char *keyword, char *why)
{
	if (patterns->count > REDACT_PATTERNS_MAX)
		return conf_refuse(why, "%s: more than %d patterns", keyword,
		    REDACT_PATTERNS_MAX);
	for (size_t i = 0; i < patterns->count; i++)
		if (strlen(patterns->items[i]) > REDACT_PATTERN_CHARS)
			return conf_refuse(why,
			    "%s: `%.100s` is longer than %d characters",
			    keyword, patterns->items[i], REDACT_PATTERN_CHARS);
	return 0;
}

static int
check_audit(struct conf *c, void *o, char *why)
{
	struct audit_rules *a = o;
	const char *place;
	int err;

	if (!audit_is_kept(a))
		return conf_refuse(
		    why, "one of file, syslog and journal is needed");
	if (check_patterns(&a->redact_names, "redact-names", why) < 0 ||
	    check_patterns(&a->redact_values, "redact-values", why) < 0)
		return -EINVAL;
	err = audit_place(a, &place);
	if (err == 0)
		return 0;
	snprintf(why, CONF_WHY_MAX, "%.200s: %s", place, strerror(-err));
	return -EINVAL;
}

const struct conf_section conf_audit = {
	.name = "audit",
	.keys = audit_keys,
	.nkeys = nitems(audit_keys),
	.offset = offsetof(struct conf, audit),
	.says = says_audit,
	.check = check_audit,
};

/* --- [control]: the socket of `execd ctl`, and who may use it ----------- */

#define SOCKET_PATH_MAX 107 /* of sockaddr_un, without the NUL */

static int
parse_socket(void *at, const char *text, char *why)
{
	if (strcmp(text, "none") != 0 && (text[0] != '/' || text[1] == '/' ||
					     strlen(text) > SOCKET_PATH_MAX))
		return conf_refuse(why,
		    "`%.120s` is neither none nor an absolute path of at most "
		    "%d characters",
		    text, SOCKET_PATH_MAX);
	return conf_string.parse(at, text, why);
}

static void
show_socket(struct buf *b, const void *at)
{
	conf_string.show(b, at);
}

static void
clear_socket(void *at)
{
	conf_string.clear(at);
}

static const struct conf_type conf_ctl_socket = { parse_socket, show_socket,
	clear_socket, false, false };

#define CONTROL_KEY(keyword, type, member)                                     \
	{                                                                      \
		keyword, &type, offsetof(struct control_rules, member)         \
	}

static const struct conf_key control_keys[] = {
	CONTROL_KEY("ctl-socket", conf_ctl_socket, socket),
	CONTROL_KEY("ctl-group", conf_string, group),
};

static bool
says_control(const struct conf *c)
{
	return c->control.socket != NULL || c->control.group != NULL;
}

static int
check_control(struct conf *c, void *o, char *why)
{
	struct control_rules *r = o;
	const struct group *gr = r->group != NULL ? getgrnam(r->group) : NULL;

	if (r->group != NULL && gr == NULL)
		return conf_refuse(
		    why, "ctl-group: there is no group `%.100s`", r->group);
	r->gid = gr != NULL ? gr->gr_gid : 0;
	if (r->group == NULL || r->socket == NULL ||
	    strcmp(r->socket, "none") != 0)
		return 0;
	return conf_refuse(why, "ctl-group: there is no ctl-socket to permit");
}

const struct conf_section conf_control = {
	.name = "control",
	.keys = control_keys,
	.nkeys = nitems(control_keys),
	.offset = offsetof(struct conf, control),
	.says = says_control,
	.check = check_control,
};

/* --- [limits]; many of them are flags as well, as --detached-ttl -------- */

#define LIMIT(keyword, type, member, ...)                                      \
	{ keyword, &conf_##type, offsetof(struct limits, member), __VA_ARGS__, \
		.size = sizeof(VALUE_##type) },
#define FRONTEND_LIMIT(keyword, type, member, ...)                             \
	LIMIT(keyword, type, frontend.member, __VA_ARGS__)

/* clang-format off */
static const struct conf_key limits_keys[] = {
	BROKER_LIMITS(LIMIT)
#include "frontend_keys.def"
};
/* clang-format on */
_Static_assert(nitems(limits_keys) <= 64, "conf_text.c counts them in 64 bits");

static int
check_limits(struct conf *c, void *o, char *why)
{
	const struct frontend_limits *l = &((const struct limits *)o)->frontend;

	if (l->max_frame_bytes > l->max_message_bytes)
		return conf_refuse(
		    why, "max-frame-bytes is more than max-message-bytes");
	if (l->penalty_max_ms > 0 &&
	    l->penalty_max_ms <= l->penalty_threshold_ms)
		return conf_refuse(why,
		    "penalty-max is not more than penalty-threshold: "
		    "nobody would be refused");
	return 0;
}

const struct conf_section conf_limits = {
	.name = "limits",
	.keys = limits_keys,
	.nkeys = nitems(limits_keys),
	.offset = offsetof(struct conf, limits),
	.check = check_limits,
};

/* --- [sandbox] ---------------------------------------------------------- */

#define SANDBOX_KEY(keyword, type, rule, limit, unset)                         \
	{ keyword, &type, offsetof(struct sandbox_rules, rule) },
#define SANDBOX_LIST(keyword, type, member, added)                             \
	{ keyword, &type, offsetof(struct sandbox_rules, member) },

/* clang-format off */
static const struct conf_key sandbox_keys[] = {
#include "sandbox_keys.def"
};
/* clang-format on */

static int
check_sandbox(struct conf *c, void *o, char *why)
{
	return sandbox_rules_check(o, why) < 0 ? -EINVAL : 0;
}

const struct conf_section conf_sandbox = {
	.name = "sandbox",
	.keys = sandbox_keys,
	.nkeys = nitems(sandbox_keys),
	.offset = offsetof(struct conf, sandbox),
	.check = check_sandbox,
};

/* --- [signed-tokens]: how a client's token is checked, with which keys -- */

#define TOKENS_KEY(keyword, type, member, ...)                                 \
	{                                                                      \
		keyword, &type, offsetof(struct token_rules, member),          \
		    __VA_ARGS__                                                \
	}

static const struct conf_key tokens_keys[] = {
	TOKENS_KEY("secret-file", conf_path, secret_file, NULL),
	TOKENS_KEY("jwks-file", conf_path, jwks_file, NULL),
	TOKENS_KEY("issuer", conf_string, issuer, NULL),
	TOKENS_KEY("audience", conf_string, audience, NULL),
	TOKENS_KEY("subject-claim", conf_string, subject_claim, "sub"),
	TOKENS_KEY("max-clock-skew-seconds", conf_seconds, skew_s, "30"),
};

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
check_tokens(struct conf *c, void *o, char *why)
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

const struct conf_section conf_tokens = {
	.name = "signed-tokens",
	.keys = tokens_keys,
	.nkeys = nitems(tokens_keys),
	.offset = offsetof(struct conf, tokens),
	.says = conf_has_signed_tokens,
	.check = check_tokens,
};
