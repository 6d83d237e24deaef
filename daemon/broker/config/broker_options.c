/* SPDX-License-Identifier: ISC */
#include "broker_options.h"

#include <getopt.h>
#include <openssl/evp.h>

#include "conf.h"
#include "config.h"
#include "exit_code.h"
#include "secret.h"
#include "spawn_client.h"

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
    "  --exit-on-stdin-close     end as at SIGTERM when standard input ends\n"
    "  --detached-ttl DURATION   keep a session without connection (150s)\n"
    "  --closed-ttl DURATION     remember a closed process (80s)\n"
    "  --drain-timeout DURATION  sessions may go on so long at SIGTERM (0s)\n"
    "  --drain-notice DURATION   new sessions may begin so long at a drain (0s)\n"
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

static int __attribute__((format(printf, 1, 2)))
usage_error(const char *fmt, ...)
{
	va_list ap;

	fputs("execd: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\nTry 'execd --help'.\n", stderr);
	return EXIT_USAGE;
}

/* Returns -1 if the option's value was taken, else the exit status. */
static int
taken(int err, const char *name, const char *why)
{
	if (err == 0)
		return -1;
	fprintf(stderr, "execd: --%s: %s\n", name, why);
	return EXIT_USAGE;
}

/* It is checked, and has no effect. */
static int
take_concurrent(struct options *o, const char *name, const char *text)
{
	char why[CONF_WHY_MAX];
	uint32_t ignored;

	return taken(
	    conf_count.parse(&conf_count, &ignored, text, why), name, why);
}

/*
 * `codex exec-server` takes -c key=value, and scripts that were written for it
 * pass it. A name of a file has no "=" before its first "/".
 */
static int
take_config(struct options *o, const char *name, const char *text)
{
	if (text[strcspn(text, "=/")] != '=')
		o->config_file = text;
	else
		fprintf(stderr,
		    "execd: -c %s: Codex's configuration has no effect here; a "
		    "file of this name is ./%s\n",
		    text, text);
	return -1;
}

/* A feature of Codex, or how strictly Codex reads its own configuration. */
static int
take_ignored(struct options *o, const char *name, const char *feature)
{
	fprintf(stderr, "execd: --%s%s%s has no effect here\n", name,
	    feature ? " " : "", feature ? feature : "");
	return -1;
}

static int
take_pid_namespace(struct options *o, const char *name, const char *mode)
{
	if (strcmp(mode, "isolate") == 0)
		return -1;
	return usage_error("--%s %s: each sandboxed command has a pid "
			   "namespace of its own, and nothing else is offered",
	    name, mode);
}

/* What would change what holds for a command, and is not here. */
static int
refuse_network(struct options *o, const char *name, const char *arg)
{
	return usage_error("--%s: execd does not have it; network-allow and "
			   "network-deny of execd.conf(5) say what a command "
			   "reaches",
	    name);
}

static int
refuse_remote(struct options *o, const char *name, const char *arg)
{
	return usage_error("--%s: execd registers nowhere; `codex exec-server "
			   "forward --connect ws://IP:PORT` registers one that "
			   "listens",
	    name);
}

static int
take_ws_auth(struct options *o, const char *name, const char *mode)
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
take_skew(struct options *o, const char *name, const char *text)
{
	char why[CONF_WHY_MAX];

	if (conf_seconds.parse(&conf_seconds, &o->ws_skew_s, text, why) < 0)
		return usage_error(
		    "--%s: `%s` is not a number of seconds", name, text);
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
	const char *wrong = NULL;

	if (o->ws_auth == AUTH_NONE && (token || secret))
		wrong = "websocket auth flags require `--ws-auth "
			"capability-token` or `--ws-auth signed-bearer-token`";
	else if (o->ws_auth == AUTH_CAPABILITY_TOKEN && !token)
		wrong = "`--ws-token-file` or `--ws-token-sha256` is required "
			"when `--ws-auth capability-token` is set";
	else if (o->ws_token_file && o->ws_token_sha256)
		wrong = "`--ws-token-file` and `--ws-token-sha256` are "
			"mutually exclusive";
	else if (o->ws_auth == AUTH_CAPABILITY_TOKEN && secret)
		wrong = "`--ws-shared-secret-file` and the flags of its claims "
			"require `--ws-auth signed-bearer-token`, not "
			"`capability-token`";
	else if (o->ws_auth == AUTH_SIGNED_TOKEN && token)
		wrong = "`--ws-token-file` and `--ws-token-sha256` require "
			"`--ws-auth capability-token`, not "
			"`signed-bearer-token`";
	else if (o->ws_auth == AUTH_SIGNED_TOKEN && !o->ws_shared_secret_file)
		wrong = "`--ws-shared-secret-file` is required when `--ws-auth "
			"signed-bearer-token` is set";
	return wrong != NULL ? usage_error("%s", wrong) : -1;
}

/* Keeps a limit until the file was read. A wrong value is reported now. */
static int
take_limit(struct options *o, const char *keyword, const char *value)
{
	struct limits scratch = { 0 };
	char why[CONF_WHY_MAX];

	if (conf_set(&conf_limits, &scratch, keyword, value, why) < 0)
		return taken(-EINVAL, keyword, why);
	if (o->nlimits == OPTIONS_LIMITS_MAX)
		return usage_error("--%s: too many limits", keyword);
	o->limits[o->nlimits].keyword = keyword;
	o->limits[o->nlimits++].value = value;
	return -1;
}

static int
take_ctl_socket(struct options *o, const char *name, const char *value)
{
	struct control_rules scratch = { .socket = NULL };
	char why[CONF_WHY_MAX];
	int err = conf_set(&conf_control, &scratch, name, value, why);

	free(scratch.socket);
	o->ctl_socket = value;
	return taken(err, name, why);
}

static int
take_listen(struct options *o, const char *name, const char *url)
{
	if (o->listeners == OPTIONS_LISTENERS_MAX)
		return usage_error("--listen %s: too many listeners", url);
	o->listen[o->listeners++] = url;
	return -1;
}

static int
take_variable(struct options *o, const char *option, const char *name)
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
take_path_map(struct options *o, const char *name, const char *text)
{
	struct path_map scratch = { .count = 0 };
	char why[PATH_MAP_WHY_MAX];
	int err = 0;

	for (size_t i = 0; i < o->npath_maps; i++)
		path_map_add(&scratch, o->path_maps[i], why);
	err = path_map_add(&scratch, text, why);
	path_map_clear(&scratch);
	if (err < 0)
		return taken(err, name, why);
	o->path_maps[o->npath_maps++] = text;
	return -1;
}

static int
print_help(struct options *o, const char *name, const char *arg)
{
	fputs(usage_text, stdout);
	return EXIT_STOPPED;
}

static int
print_version(struct options *o, const char *name, const char *arg)
{
	puts("execd " EXECD_VERSION);
	return EXIT_STOPPED;
}

/* What an option of one letter or with a name does: it calls take(), keeps its
 * argument at `text', or sets the bool at `set' (and at `also'). */
#define TEXT(member)   .argument = true, .text = offsetof(struct options, member)
#define SET(member)    .set = offsetof(struct options, member)
#define CALL(function) .argument = true, .take = (function)
#define WORD(function) .take = (function)

static const struct flag {
	const char *name;
	char letter;
	bool argument;
	int (*take)(struct options *o, const char *name, const char *arg);
	size_t text, set, also; /* 0: none */
} flags[] = {
	{ "listen", CALL(take_listen) },
	{ "user", TEXT(user) },
	{ "environment", CALL(take_variable) },
	{ "path-map", CALL(take_path_map) },
	{ "allow-unauthenticated", SET(allow_unauthenticated) },
	{ "ws-auth", CALL(take_ws_auth) },
	{ "ws-token-file", TEXT(ws_token_file) },
	{ "ws-token-sha256", TEXT(ws_token_sha256) },
	{ "ws-shared-secret-file", TEXT(ws_shared_secret_file) },
	{ "ws-issuer", TEXT(ws_issuer) },
	{ "ws-audience", TEXT(ws_audience) },
	{ "ws-max-clock-skew-seconds", CALL(take_skew) },
	{ "concurrent-requests", CALL(take_concurrent) },
	{ "exit-on-stdin-close", SET(exit_on_stdin_close) },
	{ "strict-config", WORD(take_ignored) },
	{ "enable", CALL(take_ignored) },
	{ "disable", CALL(take_ignored) },
	{ "linux-sandbox-pid-namespace", CALL(take_pid_namespace) },
	{ "linux-sandbox-transparent-tcp", WORD(refuse_network) },
	{ "tcp-upstream-proxy", CALL(refuse_network) },
	{ "proxy-private-ips-via-upstream", WORD(refuse_network) },
	{ "remote", CALL(refuse_remote) },
	{ "environment-id", CALL(refuse_remote) },
	{ "name", CALL(refuse_remote) },
	{ "use-agent-identity-auth", WORD(refuse_remote) },
	{ "registration-bearer-stdin", WORD(refuse_remote) },
	{ "executor-credential-stdin", WORD(refuse_remote) },
	{ "chatgpt-token-stdin", WORD(refuse_remote) },
	{ "chatgpt-account-id", CALL(refuse_remote) },
	{ "aws-sigv4", WORD(refuse_remote) },
	{ "aws-profile", CALL(refuse_remote) },
	{ "aws-region", CALL(refuse_remote) },
	{ "aws-service", CALL(refuse_remote) },
	{ "detached-ttl", CALL(take_limit) },
	{ "closed-ttl", CALL(take_limit) },
	{ "drain-timeout", CALL(take_limit) },
	{ "drain-notice", CALL(take_limit) },
	{ "exit-when-idle", CALL(take_limit) },
	{ "pre-auth-deadline", CALL(take_limit) },
	{ "max-connections", CALL(take_limit) },
	{ "retention", CALL(take_limit) },
	{ "max-sessions", CALL(take_limit) },
	{ "sessions", TEXT(sessions) },
	{ "ctl-socket", CALL(take_ctl_socket) },
	{ "help", 'h', .take = print_help },
	{ "version", .take = print_version },
	{ "config", 'c', CALL(take_config) },
	{ NULL, 't', SET(check) },
	{ NULL, 'T', SET(check), .also = offsetof(struct options, print) },
	{ NULL, 'd', SET(debug) },
	{ NULL, 'f' },
};

_Static_assert(offsetof(struct options, listen) == 0, "0 is no option");

#define LETTERS	   "c:dfhtT"
#define FLAG_VALUE 256 /* what getopt_long() returns for the first name */

static int
take_option(struct options *o, int value, const char *arg)
{
	const struct flag *f = NULL;
	char *at = (char *)o;

	for (size_t i = 0; i < nitems(flags); i++)
		if (value == FLAG_VALUE + (int)i || value == flags[i].letter)
			f = &flags[i];
	if (f == NULL) {
		fputs("Try 'execd --help'.\n", stderr);
		return EXIT_USAGE;
	}
	if (f->take != NULL)
		return f->take(o, f->name, arg);
	if (f->text != 0)
		*(const char **)(void *)(at + f->text) = arg;
	if (f->set != 0)
		*(bool *)(at + f->set) = true;
	if (f->also != 0)
		*(bool *)(at + f->also) = true;
	return -1;
}

int
options_parse(struct options *o, int argc, char **argv)
{
	struct option names[nitems(flags) + 1] = { 0 };
	int opt, code;

	for (int i = 0; flags[i].name != NULL; i++)
		names[i] = (struct option){ flags[i].name,
			flags[i].argument ? required_argument : no_argument,
			NULL, FLAG_VALUE + i };
	*o = defaults;
	while ((opt = getopt_long(argc, argv, LETTERS, names, NULL)) != -1)
		if ((code = take_option(o, opt, optarg)) >= 0)
			return code;
	/* Scripts that start Codex's server may keep its first word. */
	if (optind < argc && strcmp(argv[optind], "exec-server") == 0)
		optind++;
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
