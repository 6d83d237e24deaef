/* SPDX-License-Identifier: ISC */
/*
 * [listener NAME] of execd.conf(5).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker_listener.h"
#include "conf.h"
#include "log.h"
#include "util.h"

#define TAG_CHARACTERS                                                         \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

static const char *const certificate_words[] = {
	[CLIENT_CERTIFICATE_NONE] = "none",
	[CLIENT_CERTIFICATE_OPTIONAL] = "optional",
	[CLIENT_CERTIFICATE_REQUIRED] = "required",
};

static int
parse_client_certificate(void *at, const char *text, char *why)
{
	for (uint32_t i = 0; i < nitems(certificate_words); i++)
		if (strcmp(text, certificate_words[i]) == 0) {
			*(uint32_t *)at = i;
			return 0;
		}
	snprintf(why, CONF_WHY_MAX,
	    "`%.100s` is neither none, optional nor required", text);
	return -EINVAL;
}

static void
show_client_certificate(struct buf *b, const void *at)
{
	buf_printf(b, "%s\n", certificate_words[*(const uint32_t *)at]);
}

static const struct conf_type conf_client_certificate = {
	parse_client_certificate, show_client_certificate, NULL, false, false
};

/* A tag of a host; %H is the name of this one. It becomes part of a message, so
 * it has no blanks and no characters that end words there. */
static int
parse_host_tag(void *at, const char *text, char *why)
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
	return conf_string.parse(at, text, why);
}

static void
show_host_tag(struct buf *b, const void *at)
{
	conf_string.show(b, at);
}

static void
clear_host_tag(void *at)
{
	conf_string.clear(at);
}

static const struct conf_type host_tag_type = { parse_host_tag, show_host_tag,
	clear_host_tag, false, false };

static int
parse_serve(void *at, const char *text, char *why)
{
	bool agent = strcmp(text, "agent") == 0;

	if (!agent && strcmp(text, "sessions") != 0)
		return conf_refuse(
		    why, "`%.100s` is neither sessions nor agent", text);
	*(bool *)at = agent;
	return 0;
}

static void
show_serve(struct buf *b, const void *at)
{
	buf_puts(b, *(const bool *)at ? "agent\n" : "sessions\n");
}

static const struct conf_type conf_serve = { parse_serve, show_serve, NULL,
	false, false };

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct listener, member)              \
	}

#define FRONTEND_LISTENER(keyword, type, member, ...)                          \
	{ keyword, &conf_##type, offsetof(struct listener, keys.member),       \
		__VA_ARGS__, .size = sizeof(VALUE_##type) },

/* clang-format off */
static const struct conf_key listener_keys[] = {
	KEY("address", conf_string, address),
	KEY("certificate", conf_path, certificate),
	KEY("certificate-key", conf_path, certificate_key),
	KEY("client-ca", conf_path, client_ca),
	KEY("client-crl", conf_path, client_crl),
	KEY("mode", conf_mode, mode),
	KEY("group", conf_string, group),
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
		return "wss:// needs a certificate";
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
	    l->trusted_proxies.count > 0 || l->allow_unauthenticated != NULL)
		return "serve = agent knows no clients: the section may have "
		       "no key about them";
	return NULL;
}

static int
check_listener(struct conf *c, void *o, char *why)
{
	struct listener *l = o;
	const char *text = NULL;

	if (l->address == NULL)
		text = "a listener needs an address";
	else if (listener_parse(l) < 0 || l->scheme == ADDRESS_STDIO)
		text = "the address is neither ws://IP:PORT, wss://IP:PORT, "
		       "unix:/PATH nor systemd:NAME";
	else if (l->scheme != ADDRESS_UNIX &&
		 (l->mode != CONF_MODE_UNSET || l->group != NULL))
		text = "mode and group are for unix:/PATH";
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
	else
		text = check_tls(l);
	if (text != NULL) {
		snprintf(why, CONF_WHY_MAX, "%s", text);
		return -EINVAL;
	}
	/* An operator who names a CA expects that certificates are checked
	 * against it. */
	if (l->client_ca != NULL &&
	    l->keys.client_certificate == CLIENT_CERTIFICATE_NONE)
		l->keys.client_certificate = CLIENT_CERTIFICATE_REQUIRED;
	return l->certificate ? tls_files_load(l, why) : 0;
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
	warn_of_subjects(c);
	for (size_t i = 0; i < c->nlisteners; i++) {
		const struct listener *l = c->listeners[i];

		if (l->kind == LISTENER_WS && !l->keys.agent && !l->loopback &&
		    !listener_has_tls(l))
			log_warn(0,
			    "%s: tokens and all that commands read and write "
			    "cross the network as plain text there: use wss://",
			    l->url);
		if (l->kind == LISTENER_WS && l->allow_unauthenticated != NULL)
			log_warn(0,
			    "%s: no authentication: whoever connects starts "
			    "commands as %s, and a sandboxed command with "
			    "network access that connects leaves its sandbox: "
			    "use a token",
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
		conf_nets.show(&nets, &l->trusted_proxies);
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
