/* SPDX-License-Identifier: ISC */
/*
 * The command line (execd(8)).
 */
#include "broker_options.h"

#include <errno.h>
#include <getopt.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "config.h"
#include "exit_code.h"
#include "secret.h"
#include "spawn_client.h"
#include "util.h"

enum {
	OPT_LISTEN = 256,
	OPT_USER,
	OPT_ENVIRONMENT,
	OPT_PATH_MAP,
	OPT_ALLOW_UNAUTHENTICATED,
	OPT_CONCURRENT_REQUESTS,
	OPT_WS_AUTH,
	OPT_WS_TOKEN_FILE,
	OPT_WS_TOKEN_SHA256,
	OPT_WS_SHARED_SECRET_FILE,
	OPT_WS_ISSUER,
	OPT_WS_AUDIENCE,
	OPT_WS_MAX_CLOCK_SKEW,
	OPT_SESSIONS,
	OPT_CTL_SOCKET,
	OPT_LIMIT, /* a key of [limits] by its own name */
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "user", required_argument, NULL, OPT_USER },
	{ "environment", required_argument, NULL, OPT_ENVIRONMENT },
	{ "path-map", required_argument, NULL, OPT_PATH_MAP },
	{ "allow-unauthenticated", no_argument, NULL,
	    OPT_ALLOW_UNAUTHENTICATED },
	{ "ws-auth", required_argument, NULL, OPT_WS_AUTH },
	{ "ws-token-file", required_argument, NULL, OPT_WS_TOKEN_FILE },
	{ "ws-token-sha256", required_argument, NULL, OPT_WS_TOKEN_SHA256 },
	{ "ws-shared-secret-file", required_argument, NULL,
	    OPT_WS_SHARED_SECRET_FILE },
	{ "ws-issuer", required_argument, NULL, OPT_WS_ISSUER },
	{ "ws-audience", required_argument, NULL, OPT_WS_AUDIENCE },
	{ "ws-max-clock-skew-seconds", required_argument, NULL,
	    OPT_WS_MAX_CLOCK_SKEW },
	{ "concurrent-requests", required_argument, NULL,
	    OPT_CONCURRENT_REQUESTS },
	{ "detached-ttl", required_argument, NULL, OPT_LIMIT },
	{ "closed-ttl", required_argument, NULL, OPT_LIMIT },
	{ "drain-timeout", required_argument, NULL, OPT_LIMIT },
	{ "drain-notice", required_argument, NULL, OPT_LIMIT },
	{ "exit-when-idle", required_argument, NULL, OPT_LIMIT },
	{ "pre-auth-deadline", required_argument, NULL, OPT_LIMIT },
	{ "max-connections", required_argument, NULL, OPT_LIMIT },
	{ "retention", required_argument, NULL, OPT_LIMIT },
	{ "max-sessions", required_argument, NULL, OPT_LIMIT },
	{ "sessions", required_argument, NULL, OPT_SESSIONS },
	{ "ctl-socket", required_argument, NULL, OPT_CTL_SOCKET },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char usage_text[] =
    "usage: execd ctl [--json] [--socket PATH] COMMAND, see `execd ctl "
    "--help`\n"
    "       execd doctor [--user NAME] [--path-map MAP]...\n"
    "       execd [-c FILE | --listen URL... [--user NAME] "
    "[--allow-unauthenticated]] [-dfhtT]\n"
    "  -c FILE                   read this configuration, execd.conf(5)\n"
    "  -t                        only check the configuration\n"
    "  -T                        check, and print the effective values\n"
    "  --listen URL              ws://IP:PORT, unix:/PATH, systemd:NAME or "
    "stdio\n"
    "                            (default ws://127.0.0.1:0)\n"
    "  --user NAME               as root: run every session as this user\n"
    "  --environment NAME        sessions of --user have this variable of "
    "root's, too\n"
    "  --path-map 'C:\\DIR=/DIR'  what a client calls C:\\DIR is /DIR "
    "(repeatable)\n"
    "  --allow-unauthenticated   let clients in that present no credential\n"
    "  --ws-auth MODE            capability-token or signed-bearer-token, "
    "with:\n"
    "    --ws-token-file PATH | --ws-token-sha256 HEX\n"
    "    --ws-shared-secret-file PATH [--ws-issuer S] [--ws-audience S]\n"
    "      [--ws-max-clock-skew-seconds N (30)]\n"
    "  --concurrent-requests N   accepted for codex exec-server; requests "
    "never wait for each other\n"
    "  --detached-ttl DURATION   keep a session without connection (80s)\n"
    "  --closed-ttl DURATION     remember a closed process (80s)\n"
    "  --drain-timeout DURATION  sessions may go on so long at SIGTERM (0s)\n"
    "  --drain-notice DURATION   new sessions may begin so long at SIGTERM (0s)\n"
    "  --exit-when-idle DURATION stop when there was no session for so long (none)\n"
    "  --retention SIZE          output kept of each process (1M)\n"
    "  --pre-auth-deadline DURATION  from accept to initialize (10s)\n"
    "  --max-connections N       at once (10000)\n"
    "  --max-sessions N          at once (10000)\n"
    "  --ctl-socket PATH         where `execd ctl` reaches this execd; or "
    "none\n"
    "  --sessions PATH           for execd-broker: the socket of `execd sessions`\n"
    "  -d                        log debug messages\n"
    "  -f                        stay in the foreground (always so)\n"
    "  -h, --help                this text\n"
    "  --version                 the version\n";

static const struct options defaults = { .ws_skew_s = 30 };

static int
usage_error(const char *fmt, const char *arg)
{
	fputs("execd: ", stderr);
	/* The formats are literals of this file. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	fprintf(stderr, fmt, arg);
#pragma GCC diagnostic pop
	fputs("\nTry 'execd --help'.\n", stderr);
	return EXIT_USAGE;
}

static int
take_count(const char *name, const char *text, uint32_t *out)
{
	char why[CONF_WHY_MAX];

	if (conf_count.parse(out, text, why) == 0)
		return -1;
	fprintf(stderr, "execd: --%s: %s\n", name, why);
	return EXIT_USAGE;
}

static int
take_ws_auth(struct options *o, const char *mode)
{
	if (strcmp(mode, "capability-token") == 0)
		o->ws_auth = AUTH_CAPABILITY_TOKEN;
	else if (strcmp(mode, "signed-bearer-token") == 0)
		o->ws_auth = AUTH_SIGNED_TOKEN;
	else
		return usage_error("--ws-auth: `%s` is neither "
				   "capability-token nor signed-bearer-token",
		    mode);
	return -1;
}

static int
take_skew(struct options *o, const char *text)
{
	const char *end;
	uint64_t n;

	if (conf_digits(text, &n, &end) < 0 || *end != '\0' || n > UINT32_MAX)
		return usage_error("--ws-max-clock-skew-seconds: `%s` is not "
				   "a number of seconds",
		    text);
	o->ws_skew_s = (uint32_t)n;
	return -1;
}

/* Checks which options need or exclude each other. The messages are the
 * reference server's. */
static int
check_ws_auth(const struct options *o)
{
	bool token = o->ws_token_file || o->ws_token_sha256;
	bool secret = o->ws_shared_secret_file || o->ws_issuer ||
		      o->ws_audience || o->ws_skew_s != defaults.ws_skew_s;

	if (o->ws_auth == AUTH_NONE && (token || secret))
		return usage_error("websocket auth flags require `--ws-auth "
				   "capability-token` or `--ws-auth "
				   "signed-bearer-token`%s",
		    "");
	if (o->ws_auth == AUTH_CAPABILITY_TOKEN && !token)
		return usage_error("`--ws-token-file` or `--ws-token-sha256` "
				   "is required when `--ws-auth "
				   "capability-token` is set%s",
		    "");
	if (o->ws_token_file && o->ws_token_sha256)
		return usage_error("`--ws-token-file` and "
				   "`--ws-token-sha256` are mutually "
				   "exclusive%s",
		    "");
	if (o->ws_auth == AUTH_CAPABILITY_TOKEN && secret)
		return usage_error("`--ws-shared-secret-file` and the flags "
				   "of its claims require `--ws-auth "
				   "signed-bearer-token`, not "
				   "`capability-token`%s",
		    "");
	if (o->ws_auth == AUTH_SIGNED_TOKEN && token)
		return usage_error("`--ws-token-file` and "
				   "`--ws-token-sha256` require `--ws-auth "
				   "capability-token`, not "
				   "`signed-bearer-token`%s",
		    "");
	if (o->ws_auth == AUTH_SIGNED_TOKEN && !o->ws_shared_secret_file)
		return usage_error("`--ws-shared-secret-file` is required "
				   "when `--ws-auth signed-bearer-token` is "
				   "set%s",
		    "");
	return -1;
}

/* Keeps a limit until the file was read. A wrong value is reported now. */
static int
take_limit(struct options *o, const char *keyword, const char *value)
{
	struct limits scratch = { 0 };
	char why[CONF_WHY_MAX];

	if (conf_set(&conf_limits, &scratch, keyword, value, why) < 0) {
		fprintf(stderr, "execd: --%s: %s\n", keyword, why);
		return EXIT_USAGE;
	}
	if (o->nlimits == OPTIONS_LIMITS_MAX)
		return usage_error("--%s: too many limits", keyword);
	o->limits[o->nlimits].keyword = keyword;
	o->limits[o->nlimits++].value = value;
	return -1;
}

static int
take_ctl_socket(struct options *o, const char *value)
{
	struct control_rules scratch = { .socket = NULL };
	char why[CONF_WHY_MAX];
	int err = conf_set(&conf_control, &scratch, "ctl-socket", value, why);

	free(scratch.socket);
	if (err < 0) {
		fprintf(stderr, "execd: --ctl-socket: %s\n", why);
		return EXIT_USAGE;
	}
	o->ctl_socket = value;
	return -1;
}

static int
take_listen(struct options *o, const char *url)
{
	if (o->listeners == OPTIONS_LISTENERS_MAX)
		return usage_error("--listen %s: too many listeners", url);
	o->listen[o->listeners++] = url;
	return -1;
}

static int
take_variable(struct options *o, const char *name)
{
	if (o->nvariables == OPTIONS_VARIABLES_MAX)
		return usage_error("--environment %s: too many of them", name);
	if (name[0] == '\0' || strchr(name, '=') != NULL)
		return usage_error(
		    "--environment: `%s` is not the name of a variable", name);
	if (getenv(name) == NULL)
		return usage_error(
		    "--environment: there is no variable %s", name);
	o->variables[o->nvariables++] = name;
	return -1;
}

/* Checks it against those before, so that a mistake is an error of this flag.
 */
static int
take_path_map(struct options *o, const char *text)
{
	struct path_map scratch = { .count = 0 };
	char why[PATH_MAP_WHY_MAX];
	int err = 0;

	for (size_t i = 0; i < o->npath_maps; i++)
		path_map_add(&scratch, o->path_maps[i], why);
	err = path_map_add(&scratch, text, why);
	path_map_clear(&scratch);
	if (err < 0) {
		fprintf(stderr, "execd: --path-map: %s\n", why);
		return EXIT_USAGE;
	}
	o->path_maps[o->npath_maps++] = text;
	return -1;
}

static int
print_and_stop(const char *text)
{
	fputs(text, stdout);
	return EXIT_STOPPED;
}

static int
take_option(struct options *o, int opt, const char *arg, int index)
{
	uint32_t ignored;

	switch (opt) {
	case OPT_LISTEN:
		return take_listen(o, arg);
	case OPT_USER:
		o->user = arg;
		return -1;
	case OPT_ENVIRONMENT:
		return take_variable(o, arg);
	case OPT_PATH_MAP:
		return take_path_map(o, arg);
	case OPT_ALLOW_UNAUTHENTICATED:
		o->allow_unauthenticated = true;
		return -1;
	case OPT_WS_AUTH:
		return take_ws_auth(o, arg);
	case OPT_WS_TOKEN_FILE:
		o->ws_token_file = arg;
		return -1;
	case OPT_WS_TOKEN_SHA256:
		o->ws_token_sha256 = arg;
		return -1;
	case OPT_WS_SHARED_SECRET_FILE:
		o->ws_shared_secret_file = arg;
		return -1;
	case OPT_WS_ISSUER:
		o->ws_issuer = arg;
		return -1;
	case OPT_WS_AUDIENCE:
		o->ws_audience = arg;
		return -1;
	case OPT_WS_MAX_CLOCK_SKEW:
		return take_skew(o, arg);
	case OPT_CONCURRENT_REQUESTS:
		return take_count("concurrent-requests", arg, &ignored);
	case OPT_LIMIT:
		return take_limit(o, long_options[index].name, arg);
	case OPT_CTL_SOCKET:
		return take_ctl_socket(o, arg);
	case OPT_SESSIONS:
		o->sessions = arg;
		return -1;
	case 'c':
		o->config_file = arg;
		return -1;
	case 't':
		o->check = true;
		return -1;
	case 'T':
		o->check = o->print = true;
		return -1;
	case 'd':
		o->debug = true;
		return -1;
	case 'f':
		return -1;
	case 'h':
		return print_and_stop(usage_text);
	case OPT_VERSION:
		return print_and_stop("execd " EXECD_VERSION "\n");
	default:
		fputs("Try 'execd --help'.\n", stderr);
		return EXIT_USAGE;
	}
}

int
options_parse(struct options *o, int argc, char **argv)
{
	int opt, code, index = 0;

	*o = defaults;
	while ((opt = getopt_long(
		    argc, argv, "c:dfhtT", long_options, &index)) != -1)
		if ((code = take_option(o, opt, optarg, index)) >= 0)
			return code;
	if (optind < argc)
		return usage_error("unexpected argument `%s`", argv[optind]);
	if (o->config_file != NULL && options_describe_service(o))
		return usage_error("with -c %s the file says who may come in "
				   "where; --listen, --user, --path-map, "
				   "--allow-unauthenticated and --ws-... are "
				   "for execd without a file",
		    o->config_file);
	return check_ws_auth(o);
}

bool
options_describe_service(const struct options *o)
{
	return o->listeners > 0 || o->user || o->nvariables > 0 ||
	       o->npath_maps > 0 || o->allow_unauthenticated ||
	       o->ws_auth != AUTH_NONE;
}

/* --- the configuration that the flags describe -------------------------- */

/*
 * Listeners, and one identity for everybody who connects there. Messages are
 * the reference server's where it has the same ones (doc/protocol.md
 * sections 1.1 and 1.5).
 */

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
