/*
 * What the operator said on the command line (execd(8)).
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "util.h"

enum {
	OPT_LISTEN = 256,
	OPT_USER,
	OPT_ALLOW_UNAUTHENTICATED,
	OPT_CONCURRENT_REQUESTS,
	OPT_WS_AUTH,
	OPT_WS_TOKEN_FILE,
	OPT_WS_TOKEN_SHA256,
	OPT_WS_SHARED_SECRET_FILE,
	OPT_WS_ISSUER,
	OPT_WS_AUDIENCE,
	OPT_WS_MAX_CLOCK_SKEW,
	OPT_DETACHED_TTL,
	OPT_CLOSED_TTL,
	OPT_RETENTION,
	OPT_PRE_AUTH_DEADLINE,
	OPT_MAX_CONNECTIONS,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "user", required_argument, NULL, OPT_USER },
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
	{ "detached-ttl", required_argument, NULL, OPT_DETACHED_TTL },
	{ "closed-ttl", required_argument, NULL, OPT_CLOSED_TTL },
	{ "retention", required_argument, NULL, OPT_RETENTION },
	{ "pre-auth-deadline", required_argument, NULL, OPT_PRE_AUTH_DEADLINE },
	{ "max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char usage_text[] =
    "usage: execd [--listen URL]... [--user NAME] [--allow-unauthenticated] "
    "[-dfh]\n"
    "  --listen URL              ws://IP:PORT or stdio (default "
    "ws://127.0.0.1:0)\n"
    "  --user NAME               as root: run every session as this user\n"
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
    "  --retention SIZE          output kept of each process (1M)\n"
    "  --pre-auth-deadline DURATION  from accept to initialize (10s)\n"
    "  --max-connections N       at once (10000)\n"
    "  -d                        log debug messages\n"
    "  -f                        stay in the foreground (always so)\n"
    "  -h, --help                this text\n"
    "  --version                 the version\n";

/* An answer holds all of it, in base64. */
#define RETENTION_MAX_BYTES (256u << 20)

static const struct options defaults = {
	.ws_skew_s = 30,
	.detached_ttl_ms = 80000,
	.closed_ttl_ms = 80000,
	.kill_grace_ms = 1000,
	.ping_interval_ms = 30000,
	.pre_auth_deadline_ms = 10000,
	.max_connections = 10000,
	.max_sessions = 10000,
	.max_frame_bytes = 16u << 20,
	.max_message_bytes = 64u << 20,
	.retention_bytes = 1u << 20,
};

int
options_duration(const char *text, uint32_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {
		{ "ms", 1 },
		{ "s", 1000 },
		{ "m", 60000 },
		{ "h", 3600000 },
	};
	unsigned long long n;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno != 0)
		return -ERANGE;
	for (size_t i = 0; i < nitems(units); i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		if (n > UINT32_MAX / units[i].ms)
			return -ERANGE;
		*ms = (uint32_t)(n * units[i].ms);
		return 0;
	}
	return -EINVAL;
}

static int
usage_error(const char *fmt, const char *arg)
{
	fputs("execd: ", stderr);
	/* The formats are this file's literals. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	fprintf(stderr, fmt, arg);
#pragma GCC diagnostic pop
	fputs("\nTry 'execd --help'.\n", stderr);
	return EXIT_USAGE;
}

static int
parse_count(const char *text, uint32_t *out)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
	    n == 0 || n > UINT32_MAX)
		return -EINVAL;
	*out = (uint32_t)n;
	return 0;
}

static int
take_duration(const char *name, const char *text, uint32_t *out)
{
	if (options_duration(text, out) == 0)
		return -1;
	fprintf(stderr,
	    "execd: --%s: `%s` is not a duration like 500ms, 80s, "
	    "2m or 1h\n",
	    name, text);
	return EXIT_USAGE;
}

/* "65536", "64K", "1M". 0 or -EINVAL. */
static int
parse_size(const char *text, uint64_t max, uint64_t *bytes)
{
	unsigned long long n;
	unsigned shift = 0;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno != 0)
		return -EINVAL;
	if (strcmp(end, "K") == 0)
		shift = 10;
	else if (strcmp(end, "M") == 0)
		shift = 20;
	else if (*end != '\0')
		return -EINVAL;
	if (n == 0 || n > max >> shift)
		return -EINVAL;
	*bytes = n << shift;
	return 0;
}

static int
take_retention(struct options *o, const char *text)
{
	if (parse_size(text, RETENTION_MAX_BYTES, &o->retention_bytes) == 0)
		return -1;
	fprintf(stderr,
	    "execd: --retention: `%s` is not a size like 65536, 64K or 1M, "
	    "at most %uM\n",
	    text, RETENTION_MAX_BYTES >> 20);
	return EXIT_USAGE;
}

static int
take_count(const char *name, const char *text, uint32_t *out)
{
	if (parse_count(text, out) == 0)
		return -1;
	fprintf(stderr, "execd: --%s: `%s` is not a number from 1 to %u\n",
	    name, text, UINT32_MAX);
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
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || n > UINT32_MAX)
		return usage_error("--ws-max-clock-skew-seconds: `%s` is not "
				   "a number of seconds",
		    text);
	o->ws_skew_s = (uint32_t)n;
	return -1;
}

/* What belongs together, in the peer's words. */
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

static int
take_listen(struct options *o, const char *url)
{
	if (o->listeners == OPTIONS_LISTENERS_MAX)
		return usage_error("--listen %s: too many listeners", url);
	o->listen[o->listeners++] = url;
	return -1;
}

static int
print_and_stop(const char *text)
{
	fputs(text, stdout);
	return EXIT_STOPPED;
}

static int
take_option(struct options *o, int opt, const char *arg)
{
	uint32_t ignored;

	switch (opt) {
	case OPT_LISTEN:
		return take_listen(o, arg);
	case OPT_USER:
		o->user = arg;
		return -1;
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
	case OPT_DETACHED_TTL:
		return take_duration("detached-ttl", arg, &o->detached_ttl_ms);
	case OPT_CLOSED_TTL:
		return take_duration("closed-ttl", arg, &o->closed_ttl_ms);
	case OPT_RETENTION:
		return take_retention(o, arg);
	case OPT_PRE_AUTH_DEADLINE:
		return take_duration(
		    "pre-auth-deadline", arg, &o->pre_auth_deadline_ms);
	case OPT_MAX_CONNECTIONS:
		return take_count("max-connections", arg, &o->max_connections);
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
	int opt, code;

	*o = defaults;
	while ((opt = getopt_long(argc, argv, "dfh", long_options, NULL)) != -1)
		if ((code = take_option(o, opt, optarg)) >= 0)
			return code;
	if (optind < argc)
		return usage_error("unexpected argument `%s`", argv[optind]);
	if (o->listeners == 0)
		o->listen[o->listeners++] = "ws://127.0.0.1:0";
	return check_ws_auth(o);
}
