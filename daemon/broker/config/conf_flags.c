/* SPDX-License-Identifier: ISC */
/*
 * The configuration that the command line describes: listeners, and one
 * identity for everybody who connects there. Messages are the reference
 * server's where it has the same ones (doc/protocol.md sections 1.1 and 1.5).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "broker_options.h"
#include "conf.h"
#include "exit_code.h"
#include "secret.h"
#include "spawn_client.h"
#include "util.h"

/* Only the name is given, because every local user can read the arguments of a
 * process. */
static void
add_variables(struct identity *id, const struct options *o)
{
	for (size_t i = 0; i < o->nvariables; i++) {
		_cleanup_free_ char *entry = xasprintf(
		    "%s=%s", o->variables[i], getenv(o->variables[i]));

		strings_add(&id->environment, entry);
	}
}

static int
take_identity(struct conf *c, const struct options *o)
{
	const char *name = o->user ? o->user : "self";
	bool root = spawn_is_root();
	char why[CONF_WHY_MAX];
	struct identity *id;
	int err;

	if (!root && o->user != NULL) {
		fputs("execd: --user needs root; without it every session "
		      "runs as you\n",
		    stderr);
		return EXIT_PERMISSION;
	}
	if (root && o->user == NULL) {
		fputs("execd: started by root, but no session may run as "
		      "root: name an ordinary user with --user NAME, or write "
		      "a " CONF_DEFAULT_PATH "\n",
		    stderr);
		return EXIT_USAGE;
	}
	id = conf_identity.add(c, name, why);
	id->user = o->user ? xstrdup(o->user) : NULL;
	add_variables(id, o);
	for (size_t i = 0; i < o->npath_maps; i++)
		path_map_add(&id->path_map, o->path_maps[i], why);
	err = identity_resolve(id, why);
	if (err == 0) {
		free(id->name);
		id->name = xstrdup(id->user_name);
		return 0;
	}
	fprintf(stderr, "execd: --user %s\n", why);
	return root ? EXIT_CONFIG : EXIT_FAILED;
}

/* --- credentials -------------------------------------------------------- */

static int
refuse_secret(const char *path, int err, const char *why)
{
	if (err == -EINVAL)
		fprintf(
		    stderr, "execd: websocket auth secret %s %s\n", path, why);
	else
		fprintf(stderr,
		    "execd: failed to read websocket auth secret %s: %s\n",
		    path, why);
	return err == -EACCES ? EXIT_PERMISSION : EXIT_CONFIG;
}

static int
take_token(struct identity *id, const struct options *o)
{
	uint8_t digest[32], *token = NULL;
	char why[CONF_WHY_MAX];
	size_t len = 0;
	int err;

	if (o->ws_token_sha256 != NULL) {
		if (digest_parse(digest, o->ws_token_sha256) < 0) {
			fputs("execd: --ws-token-sha256 must be a "
			      "64-character hex SHA-256 digest\n",
			    stderr);
			return EXIT_USAGE;
		}
	} else {
		err = secret_read_trimmed(
		    o->ws_token_file, SECRET_OF_FLAG, &token, &len, why);
		if (err < 0)
			return refuse_secret(o->ws_token_file, err, why);
		EVP_Digest(token, len, digest, NULL, EVP_sha256(), NULL);
		secret_free(token, len);
	}
	digests_add(&id->tokens, digest);
	return 0;
}

static int
take_shared_secret(struct conf *c, struct identity *id, const struct options *o)
{
	const char *path = o->ws_shared_secret_file;
	struct token_rules *t = &c->tokens;
	char why[CONF_WHY_MAX];
	int err;

	t->secret_file = xstrdup(path);
	t->issuer = o->ws_issuer ? xstrdup(o->ws_issuer) : NULL;
	t->audience = o->ws_audience ? xstrdup(o->ws_audience) : NULL;
	t->skew_s = o->ws_skew_s;
	strings_add(&id->subjects, "*");
	err = secret_read_trimmed(
	    path, SECRET_OF_FLAG, &t->secret, &t->secret_len, why);
	if (err < 0)
		return refuse_secret(path, err, why);
	if (t->secret_len >= SHARED_SECRET_MIN)
		return 0;
	fprintf(stderr,
	    "execd: signed websocket bearer secret %s must be at least %d "
	    "bytes\n",
	    path, SHARED_SECRET_MIN);
	return EXIT_CONFIG;
}

static int
take_credentials(struct conf *c, const struct options *o)
{
	switch (o->ws_auth) {
	case AUTH_CAPABILITY_TOKEN:
		return take_token(c->identities[0], o);
	case AUTH_SIGNED_TOKEN:
		return take_shared_secret(c, c->identities[0], o);
	default:
		return 0;
	}
}

/* --- listeners ---------------------------------------------------------- */

static int
refuse_url(const char *url)
{
	if (strncmp(url, "ws://", 5) == 0)
		fprintf(stderr,
		    "execd: invalid websocket --listen URL `%s`; expected "
		    "`ws://IP:PORT`\n",
		    url);
	else if (strncmp(url, "wss://", 6) == 0)
		fprintf(stderr,
		    "execd: --listen %s: TLS needs a certificate, and that a "
		    "configuration file; see execd.conf(5)\n",
		    url);
	else
		fprintf(stderr,
		    "execd: unsupported --listen URL `%s`; expected "
		    "`ws://IP:PORT` or `stdio`, or `unix:/PATH` or "
		    "`systemd:NAME`\n",
		    url);
	return EXIT_USAGE;
}

static int
take_listener(struct conf *c, const char *url)
{
	_cleanup_free_ char *name = xasprintf("flag-%zu", c->nlisteners + 1);
	char why[CONF_WHY_MAX];
	struct listener *l = conf_listener.add(c, name, why);

	l->address = xstrdup(url);
	if (listener_parse(l) < 0 || l->scheme == ADDRESS_WSS ||
	    l->scheme == ADDRESS_TCP)
		return refuse_url(url);
	return 0;
}

static int
take_listeners(struct conf *c, const struct options *o)
{
	int code = 0;

	if (o->listeners == 0)
		return take_listener(c, "ws://127.0.0.1:0");
	for (size_t i = 0; i < o->listeners && code == 0; i++)
		code = take_listener(c, o->listen[i]);
	return code;
}

/* stdio is a single connection and needs no credential. */
static int
check_stdio(const struct conf *c, const struct options *o)
{
	bool stdio = false;

	for (size_t i = 0; i < c->nlisteners; i++)
		stdio |= c->listeners[i]->scheme == ADDRESS_STDIO;
	if (stdio && c->nlisteners > 1)
		fputs("execd: stdio is one connection and cannot be combined "
		      "with other listeners\n",
		    stderr);
	else if (stdio && o->ws_auth != AUTH_NONE)
		fputs("execd: WebSocket auth requires a WebSocket listener, "
		      "not stdio\n",
		    stderr);
	else
		return 0;
	return EXIT_USAGE;
}

int
conf_from_flags(struct conf *c, const struct options *o)
{
	int code = take_identity(c, o);

	if (code == 0)
		code = take_credentials(c, o);
	if (code == 0)
		code = take_listeners(c, o);
	if (code == 0)
		code = check_stdio(c, o);
	for (size_t i = 0;
	     code == 0 && o->ws_auth == AUTH_NONE && i < c->nlisteners; i++)
		c->listeners[i]->allow_unauthenticated =
		    xstrdup(c->identities[0]->name);
	return code;
}
