/* SPDX-License-Identifier: ISC */
#include "proxy_environment.h"

#include <stdio.h>
#include <string.h>

#include "util.h"

enum value { TO_HTTP, TO_SOCKS, NOT_THROUGH, LITERAL };

/* Those of the peer. */
static const struct variable {
	const char *name;
	enum value value;
	const char *literal;
} variables[] = {
	{ "HTTP_PROXY", TO_HTTP, NULL },
	{ "http_proxy", TO_HTTP, NULL },
	{ "HTTPS_PROXY", TO_HTTP, NULL },
	{ "https_proxy", TO_HTTP, NULL },
	{ "WS_PROXY", TO_HTTP, NULL },
	{ "ws_proxy", TO_HTTP, NULL },
	{ "WSS_PROXY", TO_HTTP, NULL },
	{ "wss_proxy", TO_HTTP, NULL },
	{ "NPM_CONFIG_PROXY", TO_HTTP, NULL },
	{ "npm_config_proxy", TO_HTTP, NULL },
	{ "NPM_CONFIG_HTTP_PROXY", TO_HTTP, NULL },
	{ "npm_config_http_proxy", TO_HTTP, NULL },
	{ "NPM_CONFIG_HTTPS_PROXY", TO_HTTP, NULL },
	{ "npm_config_https_proxy", TO_HTTP, NULL },
	{ "YARN_HTTP_PROXY", TO_HTTP, NULL },
	{ "YARN_HTTPS_PROXY", TO_HTTP, NULL },
	{ "BUNDLE_HTTP_PROXY", TO_HTTP, NULL },
	{ "BUNDLE_HTTPS_PROXY", TO_HTTP, NULL },
	{ "DOCKER_HTTP_PROXY", TO_HTTP, NULL },
	{ "DOCKER_HTTPS_PROXY", TO_HTTP, NULL },
	{ "PIP_PROXY", TO_HTTP, NULL },
	{ "ALL_PROXY", TO_SOCKS, NULL },
	{ "all_proxy", TO_SOCKS, NULL },
	{ "FTP_PROXY", TO_SOCKS, NULL },
	{ "ftp_proxy", TO_SOCKS, NULL },
	{ "NO_PROXY", NOT_THROUGH, NULL },
	{ "no_proxy", NOT_THROUGH, NULL },
	{ "NPM_CONFIG_NOPROXY", NOT_THROUGH, NULL },
	{ "npm_config_noproxy", NOT_THROUGH, NULL },
	{ "BUNDLE_NO_PROXY", NOT_THROUGH, NULL },
	{ "CODEX_NETWORK_PROXY_ACTIVE", LITERAL, "1" },
	{ "NODE_USE_ENV_PROXY", LITERAL, "1" },
	{ "ELECTRON_GET_USE_PROXY", LITERAL, "true" },
};

#define LOCAL	  "localhost,127.0.0.1,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16"
#define VALUE_MAX sizeof(LOCAL)
#define NAME_MAX  32 /* of the longest variable above */

static bool
is_ours(const char *variable)
{
	size_t len = strcspn(variable, "=");

	for (size_t i = 0; i < nitems(variables); i++)
		if (strlen(variables[i].name) == len &&
		    memcmp(variables[i].name, variable, len) == 0)
			return true;
	return false;
}

static void
write_value(
    char *to, const struct variable *v, const struct proxy_environment *proxy)
{
	switch (v->value) {
	case TO_HTTP:
	case TO_SOCKS:
		snprintf(to, VALUE_MAX, "%s://127.0.0.1:%u",
		    v->value == TO_SOCKS && proxy->socks ? "socks5h" : "http",
		    proxy->port);
		break;
	case NOT_THROUGH:
		snprintf(to, VALUE_MAX, "%s", proxy->allow_local ? LOCAL : "");
		break;
	case LITERAL:
		snprintf(to, VALUE_MAX, "%s", v->literal);
	}
}

char **
proxy_environment(char *const *envp, const struct proxy_environment *proxy)
{
	size_t n = nitems(variables) + 1;
	size_t bytes = nitems(variables) * (NAME_MAX + 1 + VALUE_MAX);
	char **vector, *at;

	for (char *const *e = envp; *e != NULL; e++, n++)
		bytes += strlen(*e) + 1;
	vector = xmalloc(n * sizeof(char *) + bytes);
	at = (char *)(vector + n);
	n = 0;
	for (char *const *e = envp; *e != NULL; e++) {
		if (is_ours(*e))
			continue;
		vector[n++] = at;
		at = stpcpy(at, *e) + 1;
	}
	for (size_t i = 0; i < nitems(variables); i++) {
		vector[n++] = at;
		at = stpcpy(stpcpy(at, variables[i].name), "=");
		write_value(at, &variables[i], proxy);
		at += strlen(at) + 1;
	}
	vector[n] = NULL;
	return vector;
}
