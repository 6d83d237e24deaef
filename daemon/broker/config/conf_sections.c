/* SPDX-License-Identifier: ISC */
/*
 * The sections of execd.conf(5): their keys, and whether these fit together.
 * [identity NAME] has a file of its own.
 */
#include <grp.h>
#include <openssl/evp.h>

#include "base.h"
#include "conf.h"
#include "control_limits.h"
#include "secret.h"

/* --- [audit] ------------------------------------------------------------ */

static const char *const files_words[] = { [AUDIT_FILES_NONE] = "none",
	[AUDIT_FILES_WRITES] = "writes",
	[AUDIT_FILES_ALL] = "all",
	NULL };

const struct conf_type audit_files_type = { CONF_CHOICE(uint8_t),
	.words = files_words, .may_be_unset = true,
	.fault = "is not none, writes or all" };

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
	char reason[CONTROL_WHY_MAX];
	const char *place;
	int err;

	if (!audit_is_kept(a))
		return conf_refuse(
		    why, "one of file, syslog and journal is needed");
	if (check_patterns(&a->redact_names, "redact-names", why) < 0 ||
	    check_patterns(&a->redact_values, "redact-values", why) < 0)
		return -EINVAL;
	err = audit_place(a, &place, reason);
	return err == 0 ? 0 : conf_refuse(why, "%.200s: %s", place, reason);
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
parse_socket(const struct conf_type *t, void *at, const char *text, char *why)
{
	if (strcmp(text, "none") != 0 && (text[0] != '/' || text[1] == '/' ||
					     strlen(text) > SOCKET_PATH_MAX))
		return conf_refuse(why,
		    "`%.120s` is neither none nor an absolute path of at most "
		    "%d characters",
		    text, SOCKET_PATH_MAX);
	return conf_parse_string(t, at, text, why);
}

static const struct conf_type conf_ctl_socket = { parse_socket,
	conf_show_string, conf_clear_string };

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
	{ keyword, &conf_##type, offsetof(struct limits, member), __VA_ARGS__ },
#define FRONTEND_LIMIT(keyword, type, member, ...)                             \
	LIMIT(keyword, type, frontend.member, __VA_ARGS__)
#define COMMAND_LIMIT(keyword, type, member)                                   \
	{ "command-" keyword, &type, offsetof(struct limits, command.member) },

/* clang-format off */
static const struct conf_key limits_keys[] = {
	BROKER_LIMITS(LIMIT)
	{ "max-kept-sessions", &sandbox_count,
	    offsetof(struct limits, max_kept_sessions) },
	{ "memory-max", &memory_limit,
	    offsetof(struct limits, all.memory_bytes) },
	{ "tasks-max", &sandbox_count, offsetof(struct limits, all.tasks) },
	GROUP_LIMIT_KEYS(COMMAND_LIMIT)
#include "frontend_keys.def"
};
/* clang-format on */
_Static_assert(nitems(limits_keys) <= CONF_KEYS_MAX, "conf_text.c counts them");

static int
check_limits(struct conf *c, void *o, char *why)
{
	const struct frontend_limits *l = &((const struct limits *)o)->frontend;

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
	TOKENS_KEY(
	    "resume-after-expiry", conf_bool, resume_after_expiry, "yes"),
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
read_file(struct token_rules *t, const char *key, const char *path,
    int (*read)(struct token_rules *t, char *why), char *why)
{
	char text[CONF_WHY_MAX];

	if (path == NULL || read(t, text) == 0)
		return 0;
	return conf_refuse(why, "%s: %.200s: %.300s", key, path, text);
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
	if (read_file(t, "secret-file", t->secret_file, read_secret, why) < 0)
		return -EINVAL;
	return read_file(t, "jwks-file", t->jwks_file, read_jwks, why);
}

const struct conf_section conf_tokens = {
	.name = "signed-tokens",
	.keys = tokens_keys,
	.nkeys = nitems(tokens_keys),
	.offset = offsetof(struct conf, tokens),
	.says = conf_has_signed_tokens,
	.check = check_tokens,
};

/*
 * [listener NAME] of execd.conf(5).
 */

#define TAG_CHARACTERS                                                         \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

static const char *const certificate_words[] = {
	[CLIENT_CERTIFICATE_NONE] = "none",
	[CLIENT_CERTIFICATE_OPTIONAL] = "optional",
	[CLIENT_CERTIFICATE_REQUIRED] = "required",
	NULL,
};
static const char *const auth_words[] = { "credential", "peer-user", NULL };
static const char *const serve_words[] = { "sessions", "agent", NULL };

static const struct conf_type conf_client_certificate = {
	CONF_CHOICE(VALUE_client_certificate), .words = certificate_words,
	.fault = "is neither none, optional nor required"
};
static const struct conf_type conf_auth = { CONF_CHOICE(VALUE_auth),
	.words = auth_words, .fault = "is neither credential nor peer-user" };
static const struct conf_type conf_serve = { CONF_CHOICE(VALUE_serve),
	.words = serve_words, .fault = "is neither sessions nor agent" };

/* A tag of a host; %H is the name of this one. It becomes part of a message, so
 * it has no blanks and no characters that end words there. */
static int
parse_host_tag(const struct conf_type *t, void *at, const char *text, char *why)
{
	char name[CONTROL_HOST_TAG_MAX];

	if (strcmp(text, "%H") == 0) {
		if (gethostname(name, sizeof(name)) < 0)
			return conf_refuse(why,
			    "the name of this host has more than %zu bytes",
			    sizeof(name) - 1);
		name[sizeof(name) - 1] = '\0';
		text = name;
	}
	if (strlen(text) >= CONTROL_HOST_TAG_MAX ||
	    strspn(text, TAG_CHARACTERS) != strlen(text))
		return conf_refuse(why,
		    "`%.100s` is neither %%H nor up to %d letters, digits and "
		    "any of `.-_`",
		    text, CONTROL_HOST_TAG_MAX - 1);
	return conf_parse_string(t, at, text, why);
}

static const struct conf_type host_tag_type = { parse_host_tag,
	conf_show_string, conf_clear_string };

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct listener, member)              \
	}

#define FRONTEND_LISTENER(keyword, type, member, ...)                          \
	{ keyword, &conf_##type, offsetof(struct listener, keys.member),       \
		__VA_ARGS__ },

/* clang-format off */
static const struct conf_key listener_keys[] = {
	KEY("address", conf_string, address),
	KEY("certificate", conf_path, certificate),
	KEY("certificate-key", conf_path, certificate_key),
	KEY("client-ca", conf_path, client_ca),
	KEY("client-crl", conf_path, client_crl),
	KEY("mode", conf_mode, mode),
	KEY("group", conf_string, group),
	KEY("ipv6-only", conf_bool, ipv6_only),
	KEY("identities", conf_words, identities),
	KEY("operators", conf_words, operators),
	KEY("trusted-proxy", conf_nets, trusted_proxies),
	KEY("host-tag", host_tag_type, host_tag),
	KEY("allow-unauthenticated", conf_string, allow_unauthenticated),
#include "frontend_keys.def"
};
/* clang-format on */

static void *
add_listener(struct conf *c, const char *name, char *why)
{
	for (size_t i = 0; i < c->nlisteners; i++)
		if (strcmp(c->listeners[i]->name, name) == 0) {
			snprintf(why, CONF_WHY_MAX,
			    "[listener %s] already exists", name);
			return NULL;
		}
	if (c->nlisteners == CONTROL_LISTENERS_MAX) {
		snprintf(why, CONF_WHY_MAX, "more than %d listeners",
		    CONTROL_LISTENERS_MAX);
		return NULL;
	}
	c->listeners[c->nlisteners] = listener_new(name);
	conf_set_defaults(&conf_listener, c->listeners[c->nlisteners]);
	return c->listeners[c->nlisteners++];
}

static void *
get_listener(const struct conf *c, size_t i)
{
	return i < c->nlisteners ? c->listeners[i] : NULL;
}

/* Returns what is wrong with the keys of TLS, or NULL. */
static const char *
check_tls(const struct listener *l)
{
	bool may = l->scheme == ADDRESS_WSS || l->scheme == ADDRESS_SYSTEMD;

	if (l->scheme == ADDRESS_WSS && l->certificate == NULL)
		return "address: wss:// needs a certificate";
	if ((l->certificate == NULL) != (l->certificate_key == NULL))
		return "certificate and certificate-key come together";
	if (l->certificate != NULL && !may)
		return "a certificate is for wss:// or systemd:";
	if (l->client_ca != NULL && l->certificate == NULL)
		return "client-ca needs a certificate";
	if (l->client_crl != NULL && l->client_ca == NULL)
		return "client-crl needs a client-ca";
	if (l->keys.client_certificate != CLIENT_CERTIFICATE_NONE &&
	    l->client_ca == NULL)
		return "client-certificate needs a client-ca";
	return NULL;
}

/* ::ffff:0:0/96 is all of IPv4. A listener that believes this network, or a
 * larger one, believes everybody. */
static bool
trusts_everybody(const struct nets *n)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	for (uint32_t i = 0; i < n->count; i++) {
		const uint8_t *net = n->items[i];
		unsigned bits = net[16], bytes = bits / 8;

		if (bits <= 96 && memcmp(net, mapped, bytes) == 0 &&
		    (bits % 8 == 0 ||
			(net[bytes] ^ mapped[bytes]) >> (8 - bits % 8) == 0))
			return true;
	}
	return false;
}

/* An agent answers everybody with the same line. Returns what is wrong with its
 * keys, or NULL. */
static const char *
check_agent(const struct listener *l)
{
	if (l->scheme != ADDRESS_TCP && l->scheme != ADDRESS_SYSTEMD)
		return "serve = agent needs the address tcp://IP:PORT or "
		       "systemd:NAME";
	if (l->certificate != NULL || l->keys.operate ||
	    l->identities.count > 0 || l->operators.count > 0 ||
	    l->trusted_proxies.count > 0 || l->keys.peer_user ||
	    l->allow_unauthenticated != NULL)
		return "serve = agent knows no clients: the section may have "
		       "no key about them";
	return NULL;
}

/* The kernel knows the users of this host alone. Whether an address of systemd
 * is a loopback one, listener_open() finds out. */
static const char *
check_peer_user(const struct listener *l)
{
	if (!l->loopback || l->scheme == ADDRESS_WSS || l->certificate != NULL)
		return "auth = peer-user is for unix:/PATH, and for ws:// with "
		       "a loopback address: the kernel knows the users of this "
		       "host alone";
	if (l->trusted_proxies.count > 0)
		return "auth = peer-user and trusted-proxy exclude each other: "
		       "the kernel knows the proxy, and not its client";
	if (l->allow_unauthenticated != NULL)
		return "auth = peer-user and allow-unauthenticated exclude "
		       "each other";
	return NULL;
}

static int
refuse_address(const struct listener *l, char *why)
{
	const char *host = strstr(l->address, "://");
	bool is_name = host != NULL && l->scheme != ADDRESS_STDIO &&
		       strchr("0123456789[/", host[3]) == NULL;

	return conf_refuse(why,
	    "address: `%.100s` is neither ws://IP:PORT, wss://IP:PORT, "
	    "unix:/PATH nor systemd:NAME%s",
	    l->address, is_name ? "; names of hosts are not looked up" : "");
}

static int
check_listener(struct conf *c, void *o, char *why)
{
	struct listener *l = o;
	const char *text = NULL;

	if (l->address == NULL)
		text = "a listener needs an address";
	else if (listener_parse(l) < 0 || l->scheme == ADDRESS_STDIO)
		return refuse_address(l, why);
	else if (l->scheme != ADDRESS_UNIX &&
		 (l->mode != CONF_MODE_UNSET || l->group != NULL))
		text = "mode and group are for unix:/PATH";
	else if (l->group != NULL && getgrnam(l->group) == NULL)
		return conf_refuse(
		    why, "group: %.100s: no such group", l->group);
	else if (l->operators.count > 0 && !l->keys.operate)
		text = "operators needs operate = yes";
	else if (l->keys.operate && l->operators.count == 0 &&
		 (!l->loopback || l->scheme == ADDRESS_SYSTEMD))
		text = "without operators, operate is for unix:/PATH and "
		       "loopback addresses";
	else if (l->scheme == ADDRESS_UNIX && l->trusted_proxies.count > 0)
		text = "trusted-proxy is for TCP";
	else if (trusts_everybody(&l->trusted_proxies))
		text = "trusted-proxy would believe whoever connects";
	else if (l->keys.agent)
		text = check_agent(l);
	else if (l->scheme == ADDRESS_TCP)
		text = "tcp://IP:PORT is for serve = agent";
	else if (l->keys.peer_user && (text = check_peer_user(l)) != NULL)
		;
	else
		text = check_tls(l);
	if (text != NULL)
		return conf_refuse(why, "%s", text);
	/* An operator who names a CA expects that certificates are checked
	 * against it. */
	if (l->client_ca != NULL &&
	    l->keys.client_certificate == CLIENT_CERTIFICATE_NONE)
		l->keys.client_certificate = CLIENT_CERTIFICATE_REQUIRED;
	return l->certificate ? tls_files_load(l, why) : 0;
}

/* Warns of an identity that nobody can come in as, by this key or at all. */
static void
warn_of_identity(const struct conf *c, const struct identity *id)
{
	bool certificates =
	    id->certificates.count > 0 || id->certificate_subjects.count > 0;
	bool users = id->peer_users.count > 0 || id->peer_group != NULL;
	bool has_ca = false, knows_users = false, is_open = false;
	bool has_token = id->tokens.count > 0 || id->subjects.count > 0;

	for (size_t i = 0; i < c->nlisteners; i++) {
		const struct listener *l = c->listeners[i];

		has_ca |= l->client_ca != NULL;
		knows_users |= l->keys.peer_user || l->scheme == ADDRESS_UNIX ||
			       l->scheme == ADDRESS_SYSTEMD;
		is_open |= l->allow_unauthenticated != NULL &&
			   strcmp(l->allow_unauthenticated, id->name) == 0;
	}
	for (size_t i = 0; i < c->nnamed; i++)
		has_token |= strcmp(c->named[i]->identity, id->name) == 0;
	if (certificates && !has_ca)
		conf_warn_at(c,
		    "[identity %s] certificate-%s: no listener has a client-ca",
		    id->name,
		    id->certificates.count > 0 ? "sha256" : "subject");
	if (users && !knows_users)
		conf_warn_at(c,
		    "[identity %s] peer-%s: no listener is a unix socket or "
		    "has auth = peer-user",
		    id->name, id->peer_group != NULL ? "group" : "user");
	if (!is_open && !certificates && !has_token && !users)
		conf_warn_at(c,
		    "[identity %s] has no credential, so nobody can come in "
		    "as it: a [token NAME], token-sha256, token-subject, certificate-sha256, "
		    "certificate-subject or peer-user is missing",
		    id->name);
}

/* execd may be told to start before the directory is made. */
static void
warn_of_directory(const struct conf *c, const char *key, const char *socket)
{
	_cleanup_free_ char *path = xstrdup(socket);
	char *slash = strrchr(path, '/');

	if (slash == NULL)
		return;
	slash[slash == path] = '\0';
	if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
		conf_warn_at(
		    c, "%s: the directory %.200s is missing", key, path);
}

static void
warn_of_subjects(const struct conf *c)
{
	for (size_t i = 0; i < c->nidentities; i++)
		if (c->tokens.jwks_file != NULL &&
		    strings_has(&c->identities[i]->subjects, "*"))
			log_warn(0,
			    "[identity %s]: token-subject `*` lets in whoever "
			    "has a token of %s for %s",
			    c->identities[i]->name, c->tokens.issuer,
			    c->tokens.audience);
}

void
conf_warn(const struct conf *c)
{
	char key[CONF_WHY_MAX];

	warn_of_subjects(c);
	if (c->control.socket != NULL)
		warn_of_directory(c, "[control] ctl-socket", c->control.socket);
	for (size_t i = 0; i < c->nidentities - c->nmembers && c->path != NULL;
	     i++)
		warn_of_identity(c, c->identities[i]);
	for (size_t i = 0; i < c->nlisteners; i++) {
		const struct listener *l = c->listeners[i];

		snprintf(key, sizeof(key), "[listener %s] address", l->name);
		if (l->scheme == ADDRESS_UNIX)
			warn_of_directory(c, key, l->address + strlen("unix:"));
		if (l->kind == LISTENER_WS && !l->keys.agent && !l->loopback &&
		    !listener_has_tls(l))
			log_warn(0,
			    "%s: tokens and all that commands read and write "
			    "cross the network as plain text there: use wss://",
			    l->url);
		if (l->kind == LISTENER_WS && l->allow_unauthenticated != NULL)
			log_warn(0,
			    "%s: no authentication: whoever connects starts "
			    "commands as %s: use a token",
			    l->url, l->allow_unauthenticated);
	}
}

void
conf_tell_proxies(const struct conf *c)
{
	for (size_t i = 0; i < c->nlisteners; i++) {
		const struct listener *l = c->listeners[i];
		struct buf nets;

		if (l->trusted_proxies.count == 0)
			continue;
		buf_init(&nets, CONF_LINE_MAX_CHARS * CONTROL_NETS_MAX);
		conf_nets.show(&conf_nets, &nets, &l->trusted_proxies);
		for (size_t j = 0; j < nets.len; j++)
			if (nets.data[j] == '\n')
				nets.data[j] = ' ';
		log_info("[listener %s]: what connects from %.*sis a trusted "
			 "proxy, and is believed where its clients are",
		    l->name, (int)nets.len, (char *)nets.data);
		buf_clear(&nets);
	}
}

const struct conf_section conf_listener = {
	.name = "listener",
	.keys = listener_keys,
	.nkeys = nitems(listener_keys),
	.add = add_listener,
	.object = get_listener,
	.check = check_listener,
};
